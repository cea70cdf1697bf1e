package monitor

import (
	"errors"
	"fmt"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// Config is what a user may set, with every default of the sampling in one place.
type Config struct {
	Interval time.Duration // between two readings of every source
	Root     string        // the folder that stands for "/": "/hostfs" in a container
	History  history.Config

	// Accelerator is read beside the machine's own sources: an emulated one.
	Accelerator sample.Source

	// Recorded makes a monitor of a recording: it reads nothing of this machine, its readings come through Feed, and
	// its clock is theirs.
	Recorded bool
	Boot     time.Time // of the recorded machine; zero where that is not known
}

// Defaults.
const (
	DefaultInterval  = 100 * time.Millisecond
	shortestInterval = 10 * time.Millisecond
	longestInterval  = 10 * time.Second
)

func (c *Config) complete() error {
	if c.Interval == 0 {
		c.Interval = DefaultInterval
	}
	if c.Interval < shortestInterval || c.Interval > longestInterval {
		return fmt.Errorf("the sampling interval is %v: choose one from %v to %v", c.Interval, shortestInterval, longestInterval)
	}
	if c.Recorded && c.Accelerator != nil {
		return errors.New("a recording has its own accelerators: leave the other one out")
	}
	return nil
}

package monitor

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
)

// Config has the settings of a monitor.
type Config struct {
	Interval time.Duration // between two readings of every source
	Root     string        // the folder that stands for "/": "/hostfs" in a container
	History  history.Config

	// Accelerator is read beside the machine's own sources: an emulated one. The machine's GPUs are then left alone.
	Accelerator sample.Source

	// NVML is the path of libnvidia-ml.so.1, where the loader does not find it by itself.
	NVML string

	// Drives has the machine's drives asked for their health; nil leaves them alone.
	Drives *Drives

	// Slow says when a window took too long. Windows are not compared with earlier ones where it names no file.
	Slow config.Slow

	// Journal is told of everything that reports follow from, in the order in which it took effect. It must not call
	// the monitor. After an error it is told of nothing any more; the error is one of Problems.
	Journal Journal

	// Recorded makes a monitor of a recording: it reads nothing of this machine, its readings come through Feed, and
	// its clock is theirs.
	Recorded bool
	Boot     time.Time // of the recorded machine; zero where that is not known
}

// Journal is what a *recording.Writer does.
type Journal interface {
	Write(e *recording.Entry) error
}

func (c *Config) complete() error {
	if c.Interval == 0 {
		c.Interval = config.DefaultInterval
	}
	if err := (config.Sampling{Interval: c.Interval}).Validate(); err != nil {
		return err
	}
	if err := c.Slow.Validate(); err != nil {
		return err
	}
	if c.Recorded && c.Accelerator != nil {
		return errors.New("a recording has its own accelerators: leave the other one out")
	}
	return nil
}

// NewConfig returns the settings of a monitor that samples as the user configured.
func NewConfig(s config.Sampling) Config {
	return Config{Interval: s.Interval, Root: s.RootPath, NVML: s.NVML}
}

// sampling is what of a Config two components that share a monitor must agree on.
type sampling struct {
	interval   time.Duration
	root, nvml string
}

func (c Config) sampling() sampling {
	_ = c.complete() // a wrong interval is New's to refuse
	return sampling{c.Interval, filepath.Clean("/" + c.Root), c.NVML}
}

func (s sampling) String() string {
	text := "interval " + s.interval.String() + ", root_path " + s.root
	if s.nvml != "" {
		text += ", nvml " + s.nvml
	}
	return text
}

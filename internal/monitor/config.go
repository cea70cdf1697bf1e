package monitor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/helper"
	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/monitor/sampling"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/bpf"
	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/window"
)

// Config configures a Monitor.
type Config struct {
	Interval time.Duration // between two readings of every source
	Root     string        // the folder that stands for "/": "/hostfs" in a container
	History  history.Config

	// Accelerator is an emulated GPU. It replaces the GPUs of this machine.
	Accelerator sample.Source

	// Reader reads of other users' processes what this process may not; nil for none.
	Reader process.Reader
	// Tracing opens what follows the scheduler and counts how long disks take; nil for a tracer of this process.
	Tracing bpf.Opener

	// Latency counts how long each operation of a disk takes, where the kernel and the rights allow it.
	Latency bool

	// NVML is the path of libnvidia-ml.so.1, if the loader does not find it.
	NVML string

	// Schedule follows the threads of jobs through the scheduler, where the kernel and the rights allow it.
	Schedule bool

	// Jobs follows every process that holds memory of a GPU or uses CUDA.
	Jobs bool
	// Device is the path of the device that a process opens which uses CUDA, for tests; "" for that of the driver.
	Device string

	// Detect looks for loads of followed jobs that no program announces, once a client takes them: see
	// windows.Client.TakeDetected. With DetectAll it looks for checkpoints, too.
	Detect, DetectAll bool

	// Cgroups are patterns of cgroups that are followed, too, each as one job.
	Cgroups []string

	// PodResources is the kubelet's socket: see identity.Options.
	PodResources string

	// Drives configures the health checks of drives; nil for none.
	Drives *Drives

	// Slow configures when a window took too long.
	Slow config.Slow

	// Journal receives everything that reports follow from, in the order in which it took effect. It must not call the
	// monitor. After an error, which becomes one of the Problems, it receives nothing more.
	Journal Journal

	// Reports receives the report of each window that ends, on the goroutine that ends it; nil for none.
	Reports func(*window.Report)

	// Recorded makes a monitor of a recording: it reads nothing of this machine, and its readings arrive through Feed.
	Recorded bool
	Boot     time.Time // of the recorded machine; zero if unknown
}

// Journal records entries. It is implemented by *recording.Writer.
type Journal = sampling.Journal

// Use has helpers read what this process may not. The one that reads, reads one /proc and no other.
func (c *Config) Use(h helper.Helpers) {
	if h.Reader != nil && h.Root == filepath.Join("/", c.Root) {
		c.Reader = h.Reader
	}
	if h.Tracer != nil {
		c.Tracing = h.Tracer.Open
	}
}

// NewConfig returns the settings of a monitor that samples as the user configured.
func NewConfig(s config.Sampling) Config {
	follow := s.Schedule != config.Off && WithSchedule()
	return Config{Interval: s.Interval, Root: s.RootPath, NVML: s.NVML, Schedule: follow, Latency: s.Latency != config.Off,
		Jobs: s.Jobs != config.Off, Detect: s.Detect != config.Off,
		DetectAll: s.Detect == config.All, Cgroups: s.Cgroups, PodResources: s.PodResources}
}

// WithSchedule reports whether the environment lets the scheduler be used.
func WithSchedule() bool { return os.Getenv("STALLSPAN_SCHEDULE") != config.Off }

func (c *Config) complete() error {
	if c.Interval == 0 {
		c.Interval = config.DefaultInterval
	}
	if err := (config.Sampling{Interval: c.Interval, Cgroups: c.Cgroups}).Validate(); err != nil {
		return err
	}
	if err := c.Slow.Validate(); err != nil {
		return err
	}
	if c.Tracing == nil {
		c.Tracing = bpf.Local(c.Root)
	}
	if c.Recorded && c.Accelerator != nil {
		return errors.New("a recording has its own accelerators: leave the other one out")
	}
	return nil
}

// settings are the part of a Config that components with a common monitor must agree on, as a text.
func (c Config) settings() string {
	_ = c.complete() // New refuses an invalid interval
	text := "interval " + c.Interval.String() + ", root_path " + filepath.Clean("/"+c.Root)
	for _, one := range []struct {
		differs bool
		how     string
	}{
		{c.NVML != "", "nvml " + c.NVML},
		{!c.Schedule, "schedule off"},
		{!c.Latency, "latency off"},
		{!c.Jobs, "jobs off"},
		{!c.Detect, "detect off"},
		{c.DetectAll, "detect all"},
		{len(c.Cgroups) > 0, "cgroups " + strings.Join(c.Cgroups, " ")},
		{c.PodResources != "", "pod_resources " + c.PodResources},
	} {
		if one.differs {
			text += ", " + one.how
		}
	}
	return text
}

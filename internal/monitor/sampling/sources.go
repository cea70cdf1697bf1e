package sampling

import (
	"context"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/bpf"
	"github.com/stallspan/stallspan/internal/source/cpu"
	"github.com/stallspan/stallspan/internal/source/disk"
	"github.com/stallspan/stallspan/internal/source/moments"
	"github.com/stallspan/stallspan/internal/source/netfs"
	"github.com/stallspan/stallspan/internal/source/pressure"
	"github.com/stallspan/stallspan/internal/source/process"
)

// latencySource is the name of the source in recordings.
const latencySource = "latency"

// Sources are the sources of this machine. Disks is nil if /proc/diskstats cannot be read.
type Sources struct {
	Disks    *disk.Source
	Pressure *pressure.Source
	Process  *process.Source

	kernel  *bpf.Source // nil if neither the scheduler nor disks are wanted
	follows bool        // the scheduler is wanted
	moments *moments.Source
	mounts  *netfs.Source
	sampler *sample.Sampler
	gpus    gpus // without a stream where no GPU can be read
}

// Scheduler is a source of what the kernel's scheduler reports of the threads of jobs. It is implemented by
// bpf.Source and moments.Source.
type Scheduler interface {
	sample.Source

	// Follow reports on the threads of these processes, and on all that they create from now on.
	Follow(job string, pids []int) error
	// Sync adds processes of a job that its followed threads did not create. It is cheap if no process is new.
	Sync(job string, pids []int) error
	Unfollow(job string)
	Close() error
}

// SourceConfig selects what is read, and how often.
type SourceConfig struct {
	Interval time.Duration  // between two readings
	Schedule bool           // follow the threads of jobs through the scheduler, where that is possible
	Latency  bool           // count how long each operation of a disk takes, where that is possible
	Tracing  bpf.Opener     // what does both
	Root     string         // the folder that stands for "/"
	Reader   process.Reader // for what this process may not read; nil for none
	NVML     string         // the path of libnvidia-ml.so.1; "" leaves it to the loader

	// Accelerator is an emulated GPU. It replaces the GPUs of this machine.
	Accelerator sample.Source
}

// NewSources opens the sources. A source that is missing or forbidden becomes one of the problems.
func NewSources(c SourceConfig, problems *Problems) *Sources {
	s := &Sources{
		Pressure: pressure.New(c.Root), Process: process.New(c.Root).WithReader(c.Reader), mounts: netfs.New(c.Root),
	}
	// The ledger compares pressure with the accelerator, so these two readings should lie closest together.
	named := []sample.Named{{Name: "pressure", Source: s.Pressure}}
	if c.Accelerator != nil {
		named = append(named, sample.Named{Name: "accelerator", Source: c.Accelerator})
	}
	named = append(named,
		sample.Named{Name: "process", Source: s.Process},
		sample.Named{Name: "cpu", Source: cpu.New(c.Root)})
	if c.Accelerator == nil {
		s.gpus = newGPUs(&c)
	}
	disks, err := disk.New(c.Root)
	if err != nil {
		problems.Note("disk", err)
	} else {
		s.Disks = disks
		named = append(named, sample.Named{Name: "disk", Source: disks})
	}
	named = append(named, sample.Named{Name: "netfs", Source: s.mounts})
	// A machine or a user without BPF is nothing to complain about: the reports say why, and the threads of jobs are
	// looked at instead.
	if c.Schedule || c.Latency {
		s.kernel, s.follows = bpf.NewFrom(c.Tracing, bpf.Wanted{Threads: c.Schedule, Disks: c.Latency}, c.Root), c.Schedule
	}
	s.moments = moments.New()
	if c.Latency {
		named = append(named, sample.Named{Name: latencySource, Source: s.kernel.Latencies()})
	}
	// The last: they reach beyond the moment of every other reading.
	named = append(named, sample.Named{Name: "moments", Source: s.moments})
	if c.Schedule {
		s.Process.Watch(s.kernel)
		named = append(named, sample.Named{Name: "schedule", Source: s.kernel})
	}
	s.sampler = sample.NewSampler(c.Interval, named)
	return s
}

// NoSources returns those of a recording, which reads nothing.
func NoSources(interval time.Duration) *Sources {
	return &Sources{sampler: sample.NewSampler(interval, nil)}
}

// Run reads all sources at every tick until ctx ends. GPUs have a goroutine and a time axis of their own.
func (s *Sources) Run(ctx context.Context, sink sample.Sink, tick func()) {
	if s.gpus.stream == nil {
		s.sampler.Run(ctx, sink, tick)
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		take := s.gpus.sink(sink)
		failed := func(err error) { take("gpu", &sample.Sample{At: sample.Now()}, err) }
		sample.Restart(ctx, failed, func() { s.gpus.stream.Run(ctx, take) })
	}()
	s.sampler.Run(ctx, sink, tick)
	<-done
}

// Read reads every source now, but not the driver of a GPU. It returns the moment at which the reading began.
func (s *Sources) Read(sink sample.Sink) sample.Stamp { return s.sampler.Read(sink) }

// FollowsScheduler reports whether the kernel gives this process the scheduler's events, and why not.
func (s *Sources) FollowsScheduler() (follows bool, why string) {
	if !s.follows {
		return false, switchedOff
	}
	if refused := s.kernel.Refused(); refused != nil {
		return false, refused.Error()
	}
	return true, ""
}

// Retry has the next reading try again what the kernel refused.
func (s *Sources) Retry() {
	if s.kernel != nil {
		s.kernel.Retry()
	}
}

// Lacks lists the parts of the evidence that the kernel refuses.
func (s *Sources) Lacks() bpf.Refusals {
	if s.kernel == nil {
		return nil
	}
	return s.kernel.Lacks()
}

// Watch sets whether an open window, or a load under way, needs a job.
func (s *Sources) Watch(job string, open bool) {
	s.Process.Rare(job, !open)
	s.moments.Watch(job, open)
}

// OperationsLeft returns how many operations of disks were not counted, because there are too many disks and jobs.
func (s *Sources) OperationsLeft() uint64 {
	if s.kernel == nil {
		return 0
	}
	return s.kernel.Latencies().Left()
}

// Late returns how many ticks came more than one interval late.
func (s *Sources) Late() uint64 { return s.sampler.Late() }

// Rounds returns how many rounds of readings are complete.
func (s *Sources) Rounds() uint64 { return s.sampler.Rounds() }

// Last returns when the last round of readings was complete: see sample.Sampler.
func (s *Sources) Last() time.Duration { return s.sampler.Last() }

// Close closes the files of the sources. Call it after Run has returned.
func (s *Sources) Close() {
	if s.Disks != nil {
		_ = s.Disks.Close()
	}
	s.Process.Close()
	s.mounts.Close()
	_ = s.moments.Close() // its goroutine has ended
	if s.kernel != nil {
		_ = s.kernel.Close() // the kernel frees the rest when the process ends
	}
}

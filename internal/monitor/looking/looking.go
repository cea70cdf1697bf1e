// Package looking looks at followed jobs from the outside, once a second, and gives what it sees to detectors of
// windows: see package detect.
package looking

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/monitor/sampling"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/process"
)

// How often jobs are looked at, and what that may cost.
const (
	every     = time.Second            // every job that does something
	often     = 100 * time.Millisecond // jobs in which a load may be going on
	idle      = 10 * time.Second       // a job that does nothing
	maxOften  = 8                      // jobs that are looked at often
	maxLooks  = 256                    // processes in a second
	maxMaps   = 32                     // lists of mappings in a second: 0.3 ms each for a large program
	mapsEvery = time.Second            // of one process
	mapsOften = 500 * time.Millisecond // of one that has a model mapped

	stirs   = 20 * time.Millisecond // of CPU time: a job that used less, and moved less, did nothing
	moves   = 64 << 10              // bytes
	larger  = 1 << 20               // bytes of address space: a model is not smaller
	staleBy = 1100 * time.Millisecond
)

// Config connects a Looker with the rest of a monitor.
type Config struct {
	Root     string
	Reader   process.Reader // for processes of other users; nil for none
	Readings *sampling.Readings
	New      []detect.New
	// Watch has a job read at every interval as long as it is true.
	Watch func(job string, on bool)
	// Found receives windows, in the order in which they ended; on the goroutine of Run.
	Found func([]detect.Found)
	// Wanted reports whether a client takes windows; nil for yes.
	Wanted func() bool
	Now    func() time.Duration // the present monotonic time; nil for that of the system
}

// Looker looks at jobs. Only one goroutine may use it.
type Looker struct {
	config Config
	direct files
	jobs   map[string]*job
	list   []sampling.JobLook
	full   time.Duration // when all jobs are looked at next
	looks  int           // processes in this second
	maps   int
}

type job struct {
	detectors []detect.Detector
	look      sampling.JobLook // the newest one
	last      time.Duration    // up to when it is known what is open
	looked    time.Duration
	cpu       time.Duration // at the last look
	moved     uint64
	busy      bool
	watched   bool
	hadGPU    bool
	processes map[int]*program
	facts     detect.Facts
	steady    steady
	present   bool
}

// program is what is remembered of a process.
type program struct {
	started time.Duration
	highest int64 // size of its address space when its mappings were read
	mapsAt  time.Duration
	mapped  []process.File // files of models
	seen    time.Duration
}

// files lists the files of processes. It is implemented by process.Direct.
type files interface {
	ModelFiles(of process.Key, want process.FilesWanted) (process.Files, error)
}

// New returns a Looker.
func New(c Config) *Looker {
	if c.Now == nil {
		c.Now = func() time.Duration { return sample.Now().Mono }
	}
	return &Looker{config: c, direct: own(filepath.Join("/", c.Root, "proc")), jobs: map[string]*job{}}
}

// Run looks at jobs until ctx ends.
func (l *Looker) Run(ctx context.Context) {
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if l.config.Wanted != nil && !l.config.Wanted() {
			timer.Reset(every)
			continue
		}
		timer.Reset(l.Look())
	}
}

// Close reports what is going on in all jobs as unfinished. Run must have returned.
func (l *Looker) Close() {
	for id, j := range l.jobs {
		l.end(id, j, true)
	}
}

// Look looks at the jobs that are due, and returns when the next look is due.
func (l *Looker) Look() time.Duration {
	now := l.config.Now()
	all := now >= l.full
	if all {
		l.full = now + every
		l.looks, l.maps = 0, 0
	}
	l.list = l.config.Readings.Looks(l.list)
	for _, j := range l.jobs {
		j.present = false
	}
	busy := 0
	for i := range l.list {
		look := &l.list[i]
		j := l.jobs[look.ID]
		if j == nil {
			j = l.begin(look)
		}
		gpus, drivers := j.look.GPUs, j.look.Drivers
		if !slices.Equal(gpus, look.GPUs) {
			gpus = slices.Clone(look.GPUs)
		}
		if !slices.Equal(drivers, look.Drivers) {
			drivers = slices.Clone(look.Drivers)
		}
		j.present, j.look = true, *look
		j.look.GPUs, j.look.Drivers = gpus, drivers
		if all && j.due(now) && !l.steady(j, now) || j.busy && busy < maxOften {
			l.look(j, now)
		}
		if j.busy {
			busy++
		}
		if j.busy != j.watched {
			j.watched = j.busy
			l.config.Watch(look.ID, j.busy)
		}
	}
	for id, j := range l.jobs {
		if !j.present {
			l.end(id, j, false)
		}
	}
	if busy > 0 {
		return often
	}
	return max(often, l.full-l.config.Now())
}

func (l *Looker) begin(look *sampling.JobLook) *job {
	j := &job{last: look.Since, processes: map[int]*program{}}
	for _, make := range l.config.New {
		j.detectors = append(j.detectors, make(look.ID))
	}
	l.jobs[look.ID] = j
	return j
}

// end reports what the end of a job, or that of the agent, ends.
func (l *Looker) end(id string, j *job, stopping bool) {
	delete(l.jobs, id)
	j.facts.Job, j.facts.Last, j.facts.At = id, j.last, l.config.Now()
	j.facts.Processes, j.facts.Files, j.facts.Events, j.facts.Listening = nil, nil, nil, -1
	j.facts.Past = past{l.config.Readings.History(), id, j.look.GPUs}
	j.facts.Stopping = stopping
	for _, d := range j.detectors {
		if found := d.Close(&j.facts); len(found) > 0 {
			l.config.Found(found)
		}
	}
	if j.watched {
		l.config.Watch(id, false)
	}
}

// due reports whether a job has done something since the last look at it. One that used no CPU time read nothing.
func (j *job) due(now time.Duration) bool {
	if j.looked == 0 || j.busy || now-j.looked >= idle {
		return true
	}
	if j.look.CPUTime-j.cpu >= stirs || j.look.Moved-min(j.moved, j.look.Moved) >= moves {
		return true
	}
	j.last = max(j.last, min(j.look.ReadAt, now-staleBy))
	return false
}

// look gives the facts of a job to its detectors.
func (l *Looker) look(j *job, now time.Duration) {
	f := &j.facts
	f.Job, f.At, f.Last = j.look.ID, now, min(j.last, now)
	f.Files, f.Processes, f.Events = f.Files[:0], f.Processes[:0], nil
	f.Listening = -1
	j.hadGPU = j.hadGPU || len(j.look.GPUs) > 0
	f.HasGPU, f.GPUMemory = j.hadGPU, j.look.GPUMemory
	f.Past = past{l.config.Readings.History(), j.look.ID, j.look.GPUs}
	for i := range j.look.Processes {
		p := &j.look.Processes[i]
		if l.looks >= maxLooks && !j.busy {
			j.facts.Processes = append(j.facts.Processes, j.process(p, now)) // it lives, and that is all
			continue
		}
		l.looks++
		l.process(j, p, now)
	}
	for pid, p := range j.processes {
		if p.seen != now {
			delete(j.processes, pid)
			delete(j.steady.memory, pid)
		}
	}
	j.steady.learn(f, j.look.Moved, uint64((now-j.looked+every/2)/every))
	j.looked, j.last, j.cpu, j.moved = now, now, j.look.CPUTime, j.look.Moved
	j.busy = false
	for _, d := range j.detectors {
		found := d.Look(f)
		if len(found) > 0 {
			l.config.Found(found)
		}
		j.busy = j.busy || d.Busy()
	}
}

// process adds the files of a process to the facts of its job.
func (l *Looker) process(j *job, of *sample.Process, now time.Duration) {
	p := j.processes[of.PID]
	if p == nil || p.started != of.Started {
		p = &program{started: of.Started}
		j.processes[of.PID] = p
	}
	p.seen = now
	size, inMemory := process.Memory(l.config.Root, of.PID)
	if size == 0 {
		return // it has ended
	}
	j.steady.note(of.PID, size, inMemory)
	want := process.FilesWanted{Sockets: j.busy, Others: true}
	since := now - p.mapsAt
	switch {
	case l.maps >= maxMaps && !j.busy:
	case p.mapsAt == 0, size > p.highest+larger && since >= mapsEvery:
		want.Maps = true
	case len(p.mapped) > 0 && since >= mapsOften && size != p.highest:
		want.Maps = true
	}
	all, err := l.filesOf(of, want)
	seen := j.process(of, now)
	seen.Denied, seen.Memory = err != nil, inMemory
	j.facts.Processes = append(j.facts.Processes, seen)
	if err != nil {
		return
	}
	if want.Maps {
		l.maps++
		p.mapsAt, p.highest = now, size
		p.mapped = p.mapped[:0]
	}
	if want.Sockets {
		j.facts.Listening = max(0, j.facts.Listening) + all.Listening
	}
	for i := range all.List {
		x := &all.List[i]
		if x.Mapped > 0 {
			p.mapped = append(p.mapped, *x)
		}
		if x.FD >= 0 {
			j.facts.Files = append(j.facts.Files, fact(of.PID, x))
		}
	}
	for i := range p.mapped {
		x := p.mapped[i]
		x.FD = -1
		j.facts.Files = append(j.facts.Files, fact(of.PID, &x))
	}
}

// process returns the facts of a process that its reading has. Its files are not known.
func (j *job) process(of *sample.Process, now time.Duration) detect.Process {
	started := of.Started - sample.Origin()
	if of.Started == 0 || started > now {
		started = 0 // it is not known, or the machine was suspended
	}
	return detect.Process{
		PID: of.PID, Started: started, Denied: true, CPUTime: of.CPUTime, Drives: slices.Contains(j.look.Drivers, of.PID),
	}
}

func fact(pid int, x *process.File) detect.File {
	f := detect.File{
		PID: pid, FD: x.FD, Path: x.Path, Key: detect.FileKey{Device: x.Device, Inode: x.Inode}, Size: x.Size,
		Offset: x.Offset, Write: x.Write, Mapped: x.Mapped,
	}
	if x.FD >= 0 {
		f.Mapped = 0 // the mapping is a fact of its own
	}
	return f
}

// files asks for the files of a process, with more rights where there are any.
func (l *Looker) filesOf(of *sample.Process, want process.FilesWanted) (process.Files, error) {
	key := process.Key{PID: of.PID}
	all, err := l.direct.ModelFiles(key, want)
	if err != nil && l.config.Reader != nil && (errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM)) {
		return l.config.Reader.ModelFiles(key, want)
	}
	return all, err
}

// past answers from the history of a job.
type past struct {
	history *history.History
	job     string
	gpus    []string
}

// series of quantities; GPUs have a column each.
var series = [...]history.Series{
	detect.ReadBytes: history.JobReadBytes, detect.ReadChars: history.JobReadChars,
	detect.WriteBytes: history.JobWriteBytes,
	detect.CPUTime:    history.JobCPUTime, detect.GPUBusy: history.GPUBusyTime,
}

// Level implements detect.Past.
func (p past) Level(q detect.Quantity, at time.Duration) (level float64, known bool) {
	if newest, ok := p.Reading(q); ok {
		at = min(at, newest)
	}
	if q != detect.GPUBusy {
		return p.history.Level(history.Key{Series: series[q], ID: p.job}, history.Point{At: at})
	}
	for _, gpu := range p.gpus {
		if busy, ok := p.history.Level(history.Key{Series: history.GPUBusyTime, ID: gpu}, history.Point{At: at}); ok {
			level, known = level+busy, true
		}
	}
	return level, known
}

// Reading implements detect.Past.
func (p past) Reading(q detect.Quantity) (time.Duration, bool) { return p.history.Last(series[q]) }

// Package looking looks at followed jobs from the outside, once a second, and gives what it sees to a detector of
// windows: see package detect.
package looking

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
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
	often     = 100 * time.Millisecond // jobs in which a load may be going on, and young ones that do something
	idle      = 10 * time.Second       // a job that does nothing
	alertFor  = time.Second            // since it was known that a job began to read much
	youngFor  = 30 * time.Second       // since a job is followed: programs load models at their start
	maxOften  = 8                      // jobs that are looked at often, in one look
	maxAsks   = 256                    // processes that are asked for their files in the look of a second
	maxQuick  = 32                     // the same in each of the looks between
	maxMaps   = 32                     // lists of mappings in a second, and as many of busy jobs: 0.3 ms each
	mapsEvery = time.Second            // of one process
	mapsSoon  = 100 * time.Millisecond // of one whose address space grew as by a model
	mapsOften = 500 * time.Millisecond // of one that has a model mapped
	mapsLate  = 10 * time.Second       // of one whose mappings the kernel does not list
	maxOwners = 256                    // of processes that are remembered of a job

	stirs   = 20 * time.Millisecond // of CPU time: a job that used less, and moved less, did nothing
	moves   = 64 << 10              // bytes
	larger  = 1 << 20               // bytes of address space: a model is not smaller
	model   = 32 << 20              // the same of most models
	staleBy = 1100 * time.Millisecond

	watchFor = 1500 * time.Millisecond // the memory of a job's GPUs is read often since a look that may see a load
)

// Config connects a Looker with the rest of a monitor.
type Config struct {
	Root     string
	Reader   process.Reader // for processes of other users; nil for none
	Readings *sampling.Readings
	Jobs     Jobs
	GPUs     GPUs // nil for the memory of rows
	New      detect.New
	// Added receives when a job is followed, or began to read much: it is looked at at once. It may be nil.
	Added <-chan struct{}
	// Found receives windows, in the order in which they ended; on the goroutine of Run or Close.
	Found func([]detect.Found)
	// Owner returns whose a living process is; nil for this program's user.
	Owner func(pid int) string
	// Wanted reports whether a client takes windows; nil for yes.
	Wanted func() bool
	Now    func() time.Duration // the present monotonic time; nil for that of the system
}

// Jobs are the followed jobs. It is implemented by *follow.Jobs.
type Jobs interface {
	// Watch has a job read at every interval as long as it is true.
	Watch(job string, on bool)
	// Keep has a job stay until Release, so that what it was doing can be reported after it was Left.
	Keep(job string)
	Left(job string) bool
	Release(job string)
	// EachStirred calls mark for the jobs that began to read much since the last call.
	EachStirred(mark func(job string))
}

// GPUs are read more often where a load may be going on. It is implemented by *sampling.Sources.
type GPUs interface {
	// WatchMemory has the memory of GPUs read ten times a second until a moment.
	WatchMemory(ids []string, until time.Duration)
	// Memory returns the newest reading of the memory in use, and when that was; 0 if it is not known.
	Memory(gpu string) (used uint64, at time.Duration)
}

// Looker looks at jobs.
type Looker struct {
	config Config
	direct files

	mu    sync.Mutex // held during a look
	jobs  map[string]*job
	list  []sampling.JobLook
	files []detect.File // of a look
	full  time.Duration // when all jobs are looked at next
	asks  int           // processes that may still be asked in this look
	maps  [2]int        // lists of mappings that may still be read in this second: of all jobs, and of busy ones
	turns [2]int        // the job that is first: in the look of a second, and in those between
}

type job struct {
	detector  detect.Detector
	look      sampling.JobLook // the newest one
	last      time.Duration    // up to when it is known what is open
	looked    time.Duration
	cpu       time.Duration // at the last look
	moved     uint64
	busy      bool
	alert     time.Duration // up to when it is looked at often because it began to read much
	watched   bool
	hadGPU    bool
	processes map[int]*program
	owners    map[int]string // by PID, also of processes that have ended
	parent    int            // of its first process
	turn      int            // the process that is asked first
	facts     detect.Facts
	present   bool
}

// program is what is remembered of a process.
type program struct {
	started   time.Duration
	highest   int64 // size of its address space when its mappings were read
	mapsAt    time.Duration
	mapsLate  time.Duration  // until then its mappings are not asked for
	mapped    []process.File // files of models
	seen      time.Duration
	queried   bool // in this look
	ended     bool // at the last look that asked it
	models    bool // it has files of models open or mapped
	facts     detect.Process
	files     []detect.File
	listening int // -1 if unknown
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
	return &Looker{config: c, direct: process.NewDirect(filepath.Join("/", c.Root, "proc")), jobs: map[string]*job{}}
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
		case <-l.config.Added:
		}
		if l.config.Wanted != nil && !l.config.Wanted() {
			l.leave()
			timer.Reset(every)
			continue
		}
		timer.Reset(l.Look())
	}
}

// Close reports what is going on in all jobs as unfinished.
func (l *Looker) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, j := range l.jobs {
		l.end(id, j, true)
	}
}

// leave forgets all jobs: no client wants windows.
func (l *Looker) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, j := range l.jobs {
		l.forget(id, j)
	}
}

// Look looks at the jobs that are due, and returns when the next look is due.
func (l *Looker) Look() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.config.Now()
	all := now >= l.full
	l.asks = maxQuick
	if all {
		l.full = now + every
		l.asks, l.maps = maxAsks, [2]int{maxMaps, maxMaps}
	}
	l.list = l.config.Readings.Looks()
	l.learn()
	for id, j := range l.jobs {
		switch {
		case !j.present:
			l.end(id, j, false)
		case l.config.Jobs.Left(id): // what its processes have open is of no interest any more
			l.end(id, j, len(j.look.Processes) > 0)
		}
	}
	l.config.Jobs.EachStirred(func(id string) {
		if j := l.jobs[id]; j != nil {
			j.alert = now + alertFor
		}
	})
	if all {
		l.take(now, &l.turns[0], len(l.list), func(j *job) bool { return now < j.alert || j.due(now) })
	} else {
		l.take(now, &l.turns[1], maxOften, func(j *job) bool { return j.looked == 0 || j.often(now) })
	}
	busy := false
	for id, j := range l.jobs {
		busy = busy || j.often(now) || j.young(now)
		l.watchMemory(j, now)
		if j.busy != j.watched {
			j.watched = j.busy
			l.config.Jobs.Watch(id, j.busy)
		}
	}
	if busy {
		return often
	}
	return max(often, l.full-l.config.Now())
}

// watchMemory has the memory of the GPUs of a job read often, if a load may be going on.
func (l *Looker) watchMemory(j *job, now time.Duration) {
	if l.config.GPUs != nil && len(j.look.GPUs) > 0 && (j.often(now) || j.young(now)) {
		l.config.GPUs.WatchMemory(j.look.GPUs, now+watchFor)
	}
}

// take looks at the jobs that want it, at most so many, and as long as processes may be asked. Those that are left out
// are first in the next turn.
func (l *Looker) take(now time.Duration, turn *int, most int, wants func(*job) bool) {
	first := *turn
	for k := range l.list {
		at := (first + k) % len(l.list)
		j := l.jobs[l.list[at].ID]
		if j == nil {
			continue // it has just been left
		}
		if l.asks <= 0 || most <= 0 {
			*turn = at
			return
		}
		if wants(j) {
			most--
			l.look(j, now)
		}
	}
}

// learn takes over the newest readings of all jobs.
func (l *Looker) learn() {
	for _, j := range l.jobs {
		j.present = false
	}
	for i := range l.list {
		look := &l.list[i]
		j := l.jobs[look.ID]
		if j == nil {
			j = &job{last: look.Since, processes: map[int]*program{}, owners: map[int]string{}}
			j.detector = l.config.New(look.ID)
			l.jobs[look.ID] = j
			l.config.Jobs.Keep(look.ID)
		}
		j.present, j.look = true, *look
	}
}

// end reports what the end of a job ends, or that of the agent or of following the job.
func (l *Looker) end(id string, j *job, stopping bool) {
	j.facts.Job, j.facts.Last, j.facts.At = id, j.last, l.config.Now()
	j.facts.Processes, j.facts.Files, j.facts.Listening = nil, nil, -1
	j.facts.Past = past{l.config.Readings.History(), id, j.look.GPUs}
	j.facts.Stopping = stopping
	l.report(j, j.detector.Close(&j.facts))
	l.forget(id, j)
}

// forget ends the looks at a job.
func (l *Looker) forget(id string, j *job) {
	delete(l.jobs, id)
	if j.watched {
		l.config.Jobs.Watch(id, false)
	}
	l.config.Jobs.Release(id)
}

// report passes on what was found, with whose it is. It drops that of a process whose owner is not known.
func (l *Looker) report(j *job, all []detect.Found) {
	if l.config.Owner != nil {
		all = slices.DeleteFunc(all, func(f detect.Found) bool {
			_, known := j.owners[f.PID]
			return !known
		})
		for i := range all {
			all[i].Owner = j.owners[all[i].PID]
		}
	}
	for i := range all {
		all[i].Parent = j.parent
	}
	if len(all) > 0 {
		l.config.Found(all)
	}
}

// own notes whose a process is, which cannot be found out once it has ended.
func (l *Looker) own(j *job, pid int) {
	if len(j.processes) == 1 && j.parent == 0 {
		of, _ := process.StatOf(l.config.Root, pid)
		j.parent = of.Parent
	}
	if l.config.Owner == nil {
		return
	}
	if len(j.owners) >= maxOwners {
		for old := range j.owners {
			if j.processes[old] == nil {
				delete(j.owners, old)
			}
		}
	}
	j.owners[pid] = l.config.Owner(pid)
}

func (j *job) young(now time.Duration) bool { return now-j.look.Since < youngFor }

// often reports whether a load may be going on in a job: one is known of, it reads much, or it is young and has done
// something since the last look at it.
func (j *job) often(now time.Duration) bool {
	did := j.look.CPUTime != j.cpu || j.look.Moved != j.moved
	return j.busy || now < j.alert || did && j.young(now)
}

// due reports whether a job has done something since the last look at it. One that used no CPU time read nothing.
func (j *job) due(now time.Duration) bool {
	if j.looked == 0 || j.busy || now-j.looked >= idle || len(j.look.Processes) != len(j.processes) {
		return true
	}
	if j.look.CPUTime-j.cpu >= stirs || j.look.Moved-min(j.moved, j.look.Moved) >= moves {
		return true
	}
	j.last = max(j.last, min(j.look.ReadAt, now-staleBy))
	return false
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
	detect.WriteBytes: history.JobWriteBytes, detect.GPUBusy: history.GPUBusyTime,
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

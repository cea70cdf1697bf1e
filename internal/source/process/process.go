// Package process reads jobs: trees of processes, with their CPU time, the bytes that they read and write, and the
// mounts on which they have files open. It reads /proc/PID/stat, io and fdinfo (Documentation/filesystems/proc.rst)
// and, for a job with its own cgroup, cgroup.procs and cpu.stat (Documentation/admin-guide/cgroup-v2.rst).
package process

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/cgroup"
	"github.com/stallspan/stallspan/internal/source/procfile"
)

// MaxJobs bounds the jobs of a Source: 64 that hold GPUs, and 16 for windows.
const MaxJobs = 80

const (
	// scanInterval is a second, with ticks that are a little early.
	scanInterval = 950 * time.Millisecond
	// A new job with few processes is scanned at every reading, because what a wrapper starts may end within a second.
	startPeriod  = 2 * time.Second
	startMembers = 32
)

// Source reads one sample.Job for each job, and one sample.Process for each living process of it. Scans for new members
// take place once a second. Between them, a reading takes two small files for each process. Where the scheduler reports
// which processes begin others, only their children are listed. Source is safe for concurrent use.
//
// The counters of a job start at 0 when it is added and never decrease. A process that starts later counts from its
// start, even if the scan finds it a second later: then its first bytes arrive together. A child that ended before any
// scan counts when a member has waited for it. Without that it is not counted: an orphan, or a child of a process that
// ignores SIGCHLD. The same holds for what a process does between its last reading and its end, which is at most a
// Tick, usually of the first process. Where its parent takes a reading before it waits, as stallspan run does, that
// reading is complete. For a job with its own cgroup, the CPU time always is.
//
// A process is read once in a round for all jobs, and once a second if the scheduler knows that it does not run, or if
// no window needs it: see cadence.go.
//
// sample.Process has the counters of the process since its start, and those inherited from children that no scan found.
type Source struct {
	root string
	proc string

	mu   sync.Mutex
	jobs []*job

	procs     map[int]*proc   // followed processes, by ID
	pass                      // the reading that is under way
	wanted    []*proc         // in it
	scheduler Scheduler       // nil for none
	wake      chan<- struct{} // see Stirs
	stirred   []string        // jobs
	found     findings

	searched, searchTime time.Duration // Stamp.Mono of the last search for feeders, and how long it took

	caps *cgroup.Limits

	free      uint64           // bytes of memory that are available to programs
	pageCache sample.PageCache // of the machine
	machineAt time.Duration    // Stamp.Mono of that reading, which serves all jobs; 0 before

	buf [4096]byte

	stats     *procfile.Batch[*proc, statRead]
	due       []*proc // of one call of readStats
	reading   []*proc
	statReads []statRead

	candidates candidates // processes that a span may name

	connections *connections // nil for the processes of another root

	direct  *Direct
	reader  Reader // direct, or one with more rights than this process
	asking  []*proc
	keys    []Key
	answers []Bytes

	holding sync.Mutex       // not held while files are read
	holders map[string][]int // processes that hold memory of a GPU, by job
}

// Options describe a job.
type Options struct {
	// Cgroup is the path, as in /proc/PID/cgroup, of the cgroup v2 in which the job waits; "" for the host.
	Cgroup string
	// OwnScope states that Cgroup holds only this job. Then the job is all processes in it and in the cgroups below, and
	// the CPU time is that of the cgroup, in microseconds.
	OwnScope bool
	// Client is who has the job followed: it has a share of the room for connections. "" for no client.
	Client string
}

// New returns a source without jobs for root+"/proc" and the cgroup v2 tree below root; root is "" or "/" for this
// machine.
func New(root string) *Source {
	root = filepath.Join("/", root)
	s := &Source{root: root, proc: filepath.Join(root, "proc"), caps: cgroup.NewLimits(root),
		procs: map[int]*proc{}, holders: map[string][]int{}}
	s.direct = NewDirect(s.proc)
	s.reader = s.direct
	s.stats = procfile.NewBatch(s.proc, func(p *proc) int { return p.pid }, readStat,
		func(p *proc) statRead { return statRead{err: procfile.LateError{PID: p.pid}} })
	if root == "/" {
		s.connections = newConnections()
	}
	return s
}

// Add follows the tree of processes below pid, or the cgroup if opts has one, under the name id. After an error the job
// is not followed: the process does not exist, the cgroup cannot be read, the name is in use, or there are
// MaxJobs jobs already.
func (s *Source) Add(id string, pid int, opts Options) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobNamed(id) != nil {
		return fmt.Errorf("job %s is followed already: give this one another name", id)
	}
	if len(s.jobs) == MaxJobs {
		return fmt.Errorf("job %s cannot be followed: %d others are, end one of those first", id, MaxJobs)
	}
	j := s.candidates.find(id)
	known := j != nil
	if !known {
		j = newJob(id, pid)
	}
	j.scope, j.client = opts.Cgroup, cmp.Or(opts.Client, j.client)
	j.begun, j.added = sample.Now().Mono, Uptime(s.root)
	j.scanned = j.begun
	switch {
	case opts.OwnScope:
		if err := s.useCgroup(j); err != nil {
			return err
		}
	case !known:
		root, err := s.admit(pid)
		if err != nil {
			return fmt.Errorf("job %s cannot be followed, check that process %d runs and that /proc shows it: %w", id, pid, err)
		}
		j.members, j.byPID[pid] = []*member{root}, root
	}
	s.candidates.remove(id)
	j.byParent = pid > 0 && !s.hasChildrenFiles(pid)
	s.round++
	s.now = j.begun
	s.noteRan()
	j.scan(s)
	j.read(s, &sample.Problems{}) // the first reading is the base of the others
	j.round, j.readAt = s.round, j.scanned
	for _, m := range j.members {
		m.ioReported = false // report it at the next reading
	}
	s.jobs = append(s.jobs, j)
	return nil
}

func newJob(id string, pid int) *job {
	return &job{id: id, first: pid, byPID: make(map[int]*member), hasIO: true}
}

// useCgroup makes a job that of a cgroup. CPU time that it had as a candidate stays.
func (s *Source) useCgroup(j *job) error {
	dir, err := cgroup.Dir(s.root, j.scope)
	if err != nil {
		return err
	}
	base, err := s.readUsage(dir)
	if err != nil {
		return fmt.Errorf("job %s cannot be followed, check that cgroup %s exists and can be read: %w", j.id, j.scope, err)
	}
	j.dir, j.statBase = dir, usage{base.all - j.cpu.all, base.system - j.cpu.system}
	return nil
}

// jobNamed returns a followed job; nil for none.
func (s *Source) jobNamed(id string) *job {
	if i := slices.IndexFunc(s.jobs, func(j *job) bool { return j.id == id }); i >= 0 {
		return s.jobs[i]
	}
	return nil
}

// Rare makes a job one that is read once a second, or ends that. It ignores an unknown name.
func (s *Source) Rare(id string, rare bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobNamed(id)
	if j == nil {
		return
	}
	if j.rare = rare; !rare { // it does what a reading a second would miss: it may stir again right after that
		j.stirring.wait, j.stirring.next = 0, 0
	}
}

// Remove stops following a job. It ignores an unknown name.
func (s *Source) Remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobNamed(id); j != nil {
		s.dismissAll(j)
		s.connections.leave(j)
		s.jobs = slices.DeleteFunc(s.jobs, func(other *job) bool { return other == j })
	}
	s.release(id)
}

// Read appends the jobs in the order of Add. A process that ended since the last reading is not an error.
func (s *Source) Read(out *sample.Sample) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := sample.Now()
	out.At = now
	var problems sample.Problems
	s.begin(now.Mono, out.Edge)
	for _, j := range s.jobs {
		if s.reads(j) {
			j.round, j.readAt = s.round, now.Mono
			s.want(j)
		}
	}
	s.readWanted()
	for _, j := range s.jobs {
		if j.round != s.round {
			j.emit(out)
			problems.AddAll(&j.problems)
			continue
		}
		due := now.Mono-j.scanned >= scanInterval
		j.read(s, &problems)
		s.compare(j)
		if due {
			j.scanned = now.Mono
		}
		scans := due || j.unfinished || now.Mono-j.begun < startPeriod && len(j.members) <= startMembers
		if scans {
			j.scan(s)
			j.readNew(s, &problems)
		}
		if scans {
			j.findLeaders(s, now.Mono)
			j.scanFiles(s, maxFDs/len(s.jobs), now.Mono)
		}
		if scans && j.findFeeders(s, now.Mono) {
			j.readNew(s, &problems)
		}
		j.readLimits(s, out.Edge, now.Mono)
		j.emit(out)
		problems.AddAll(&j.problems)
	}
	s.readCandidates(out, now.Mono)
	problems.Add(s.connections.read(out, now.Mono))
	return problems.Err()
}

// Close closes what lists connections. Read opens it again.
func (s *Source) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections.close()
}

// dismissAll ends what admit began for the members of a job.
func (s *Source) dismissAll(j *job) {
	for _, m := range j.members {
		s.dismiss(m)
	}
}

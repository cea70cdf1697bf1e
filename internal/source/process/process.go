// Package process reads what jobs do: trees of processes, with their CPU time, the bytes they read and write, and
// the mounts on which they have files open. Its sources are /proc/PID/stat, io and fdinfo
// (Documentation/filesystems/proc.rst) and, for a job in a cgroup of its own, cgroup.procs and cpu.stat
// (Documentation/admin-guide/cgroup-v2.rst).
package process

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/cgroup"
)

const (
	mostJobs = 64
	// lookEvery is once a second, for ticks that come a little early.
	lookEvery = 950 * time.Millisecond
	// A new job of few processes is looked at with every reading for so long: what it starts then, as a wrapper does, may
	// be over within a second.
	young = 2 * time.Second
	few   = 32
)

// Source reads one sample.Job a job, and one sample.Process a process of it that is alive. Between two looks for
// new members, once a second, a reading costs two small files a process. Of one that sleeps and has done nothing for a
// second the bytes are read twice a second, and at every reading for an edge; one that has done nothing since the last
// look is looked at every five seconds. Add, Remove, Read and Close may be called
// concurrently.
//
// A job's counters begin at 0 when it is added and only grow. A process born later counts from its birth, also when
// it is found up to a second after that: its first bytes then arrive together. A child that nobody saw, because it
// lived for less than a second, counts from the moment a member has waited for it; one that no member waits for
// (an orphan, or a child of a process that ignores SIGCHLD) is lost. So is what a process does between its last
// reading and its end, if no member waits for it: usually the job's first process, and at most a tick of it. With a
// cgroup of its own, the CPU time has no such gaps.
//
// sample.Process has what the process itself has done since its birth, and what it has inherited from children that
// nobody saw.
type Source struct {
	root string
	proc string

	mu   sync.Mutex
	jobs []*job
	open int        // files kept
	buf  [4096]byte // one /proc/PID/stat: at most about 1.2 KiB

	holding sync.Mutex       // never held while files are read
	holders map[string][]int // by job, the processes that hold memory of a GPU
}

// Options say what is known about a job beyond its first process.
type Options struct {
	// Cgroup is the path, as in /proc/PID/cgroup, of the cgroup v2 in which the job waits; "" for the host.
	Cgroup string
	// OwnScope says that Cgroup holds this job and nothing else. The job is then all that is in it or in a cgroup
	// below it, and the CPU time is the cgroup's own count, in microseconds.
	OwnScope bool
}

// New prepares a source that reads root+"/proc" and the cgroup v2 tree below root; root is "" or "/" for this
// machine. There are no jobs yet.
func New(root string) *Source {
	root = filepath.Join("/", root)
	return &Source{root: root, proc: filepath.Join(root, "proc")}
}

// Add follows the tree of processes below pid, or the cgroup if opts says so, under the name id. On an error there
// is no such job: the process is not there, the cgroup cannot be read, the name is taken, or 64 jobs are followed
// already.
func (s *Source) Add(id string, pid int, opts Options) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.jobs, func(j *job) bool { return j.id == id }) {
		return fmt.Errorf("job %s is followed already: give this one another name", id)
	}
	if len(s.jobs) == mostJobs {
		return fmt.Errorf("job %s cannot be followed: %d others are, end one of those first", id, mostJobs)
	}
	j := &job{id: id, first: pid, scope: opts.Cgroup, byPID: make(map[int]*member), begun: sample.Now().Mono, hasIO: true}
	j.looked = j.begun
	if text, err := readAll(filepath.Join(s.proc, "uptime"), 64); err == nil {
		j.added, _ = parseUptime(text)
	}
	if opts.OwnScope {
		dir, err := cgroup.Dir(s.root, opts.Cgroup)
		if err != nil {
			return err
		}
		j.dir, j.stat.path = dir, filepath.Join(dir, "cpu.stat")
		if j.statBase, err = s.readUsage(j); err != nil {
			return fmt.Errorf("job %s cannot be followed, check that cgroup %s exists and can be read: %w", id, opts.Cgroup, err)
		}
	} else {
		root, err := s.admit(pid)
		if err != nil {
			return fmt.Errorf("job %s cannot be followed, check that process %d runs and that /proc shows it: %w", id, pid, err)
		}
		j.members, j.byPID[pid] = []*member{root}, root
	}
	j.byParent = pid > 0 && !s.hasChildrenFiles(pid)
	j.look(s)
	j.read(s, &sample.Problems{}, true, j.looked) // the first reading is what the others are counted from
	for _, m := range j.members {
		m.ioTold = false // nobody heard
	}
	s.jobs = append(s.jobs, j)
	return nil
}

// Remove ends the job. A name that is not known is ignored.
func (s *Source) Remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs = slices.DeleteFunc(s.jobs, func(j *job) bool {
		if j.id == id {
			s.closeJob(j)
		}
		return j.id == id
	})
	s.release(id)
}

// Read appends the jobs in the order they were added. A process that has ended since the last reading is no error.
func (s *Source) Read(out *sample.Sample) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := sample.Now()
	out.At = now
	var problems sample.Problems
	for _, j := range s.jobs {
		due := now.Mono-j.looked >= lookEvery
		j.read(s, &problems, out.Edge || due, now.Mono)
		j.threads.read(s, now.Mono)
		if due {
			j.lookedLast, j.looked = j.looked, now.Mono
		}
		looks := due || now.Mono-j.begun < young && len(j.members) <= few
		if looks {
			j.look(s)
			j.welcome(s, &problems, now.Mono)
		}
		if looks || j.begins() {
			j.lookAtThreads(s, mostThreadsLookedAt/len(s.jobs), now.Mono)
		}
		if looks {
			j.lookAtFiles(mostFDs/len(s.jobs), now.Mono)
		}
		j.emit(out)
		problems.AddAll(&j.trouble)
	}
	return problems.Err()
}

// Close gives the kept files back. A later Read opens them again.
func (s *Source) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		s.closeJob(j)
	}
}

func (s *Source) closeJob(j *job) {
	s.close(&j.stat)
	for _, m := range j.members {
		s.dismiss(m)
	}
	j.threads.close(s)
}

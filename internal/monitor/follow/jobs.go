// Package follow decides which processes of a machine are jobs: on request, and for processes that send spans.
package follow

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/monitor/sampling"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/cgroup"
	"github.com/stallspan/stallspan/internal/source/cuda"
	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/source/procfile"
	"github.com/stallspan/stallspan/internal/trust"
	"github.com/stallspan/stallspan/internal/window"
)

// Jobs are the followed jobs. It is safe for concurrent use.
type Jobs struct {
	root     string
	sources  *sampling.Sources // nil for a recording
	readings *sampling.Readings
	problems *sampling.Problems
	groups   *cgroup.View
	added    chan struct{} // see Added
	who      Who           // names jobs that are followed for windows or spans; nil for none
	auto     auto
	holders  holders
	matched  matched

	mu     sync.Mutex // held while a job is added or removed, with its first reading
	jobs   map[string]*job
	places *trust.Places // of jobs
}

type job struct {
	scope  string // of pressure
	client string // that followed it first
	users  int    // calls of Follow without Unfollow
	held   bool   // one of these is that it holds memory of a GPU or uses CUDA: it may be read rarely if that is all

	memory *cgroup.OOM // of its process, since it is followed; nil without one

	watched bool // it is read at every interval for now
	kept    bool // it stays without users until Release
}

// New returns Jobs without any job. sources is nil for a recording, which has jobs of its own.
func New(root string, sources *sampling.Sources, r *sampling.Readings, problems *sampling.Problems) *Jobs {
	return &Jobs{
		root: root, sources: sources, readings: r, problems: problems, groups: cgroup.NewView(root), jobs: map[string]*job{},
		places: trust.NewPlaces(process.MaxJobs), added: make(chan struct{}, 1),
		auto:    auto{now: func() time.Duration { return r.Present().Mono }, byPID: map[int]*autoJob{}},
		holders: holders{byPID: map[int]*holderJob{}, refused: map[int]time.Duration{}},
		matched: matched{byPath: map[string]*matchedJob{}, hidden: map[string]time.Duration{}},
	}
}

var errRecording = errors.New("a recording is being replayed: no process can be followed")

// Follow makes the process tree below pid a job with a ledger of its own. group is its cgroup v2; if it is "", Follow
// finds it. own means that this cgroup contains the job and nothing else. The first reading of the job is in the
// history when Follow returns. Each Follow needs an Unfollow.
func (j *Jobs) Follow(id string, pid int, group string, own bool) error {
	return j.follow("", sampling.Job{ID: id, Pressure: group, Own: own, Scope: window.Process}, pid)
}

// maxEnvironment bounds what is read of a process's environment.
const maxEnvironment = 1 << 20

// environment returns the environment with which a process began, if it may be read. A job without a process is
// one that this program will start, so that it inherits the environment.
func (j *Jobs) environment(pid int) func(key string) (string, bool) {
	if pid == 0 {
		return os.LookupEnv
	}
	text, _ := procfile.Text(filepath.Join("/", j.root, "proc"), pid, "environ", maxEnvironment)
	return func(key string) (string, bool) {
		for variable := range strings.SplitSeq(string(text), "\x00") {
			if value, found := strings.CutPrefix(variable, key+"="); found {
				return value, true
			}
		}
		return "", false
	}
}

// FollowFor is Follow for a client of the API, which has a share of the jobs: see window.Window.
func (j *Jobs) FollowFor(client, id string, pid int) error {
	if err := j.follow(client, sampling.Job{ID: id, Scope: window.Process}, pid); err != nil {
		return err
	}
	j.nameTime(id, pid)
	return nil
}

// Names has jobs that are followed for windows or spans named by who. Call it before any is followed.
func (j *Jobs) Names(who Who) { j.who = who }

func (j *Jobs) nameTime(id string, pid int) {
	if j.who != nil {
		j.readings.NameTime(nameOf(j.who, id, pid, nil))
	}
}

// FollowOwn is Follow for a program that may use no GPU: see sampling.Job.OwnTime.
func (j *Jobs) FollowOwn(id string, pid int) error {
	return j.follow("", sampling.Job{ID: id, Scope: window.Process, OwnTime: true}, pid)
}

func (j *Jobs) follow(client string, wanted sampling.Job, pid int) (err error) {
	if j.sources == nil {
		return errRecording
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if known := j.jobs[wanted.ID]; known != nil {
		known.users++
		j.pace(wanted.ID, known)
		return nil
	}
	err = j.places.Take(client)
	if err != nil && j.removeLeft() {
		err = j.places.Take(client)
	}
	if err != nil {
		return fmt.Errorf("process %d cannot be followed, end windows of other programs first: %w", pid, err)
	}
	defer func() {
		if err != nil {
			j.places.Release(client)
		}
	}()
	if wanted.Pressure == "" {
		if found, err := j.groups.ScopeOf(pid); err == nil {
			wanted.Pressure = found
		}
	}
	if j.groups.WholeMachine(wanted.Pressure) {
		wanted.Pressure = sample.HostScope
	}
	options := process.Options{Cgroup: wanted.Pressure, OwnScope: true, Client: client} // of all processes of a cgroup
	if wanted.Pressure != sample.HostScope {
		if err := j.sources.Pressure.Add(wanted.Pressure); err != nil {
			j.problems.Note("pressure", err)
			wanted.Pressure, wanted.Own, wanted.Scope = sample.HostScope, false, window.Process
		}
	}
	if pid != anyProcess {
		options = process.Options{Cgroup: wanted.Pressure, OwnScope: wanted.Own, Client: client}
	}
	if err := j.sources.Process.Add(wanted.ID, pid, options); err != nil {
		j.removePressure(wanted.Pressure)
		return err
	}
	wanted.Visible = sample.VisibleFrom(j.environment(pid))
	known := &job{scope: wanted.Pressure, client: client, users: 1}
	if pid > 0 {
		known.memory = j.groups.WatchOOM(pid)
	}
	j.jobs[wanted.ID] = known
	j.readings.Follow(wanted)
	select {
	case j.added <- struct{}{}:
	default: // it is known that there are new ones
	}
	return nil
}

// HowEnded says how a job without a process ended. Only its parent knows the exit code.
func (j *Jobs) HowEnded(id string) (ended string, failed bool) {
	if why := j.OutOfMemory(id); why != "" {
		return "its process was killed, " + why, true
	}
	return "its process ended", false
}

// OutOfMemory says why the kernel killed a process of a job for lack of memory; "" if it has not.
func (j *Jobs) OutOfMemory(id string) (why string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if known := j.jobs[id]; known != nil && known.memory != nil {
		return known.memory.Why()
	}
	return ""
}

// WatchMemory notes when the kernel kills for lack of memory in the cgroups of a job's process.
func (j *Jobs) WatchMemory(id string, pid int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if known := j.jobs[id]; known != nil {
		known.memory = j.groups.WatchOOM(pid)
	}
}

// SeeMoved notes the cgroups that the process of a job, or each with "", has entered.
func (j *Jobs) SeeMoved(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for other, known := range j.jobs {
		if known.memory != nil && (id == "" || id == other) {
			known.memory.Moved()
		}
	}
}

// Added receives after a job has been added. It is for one receiver.
func (j *Jobs) Added() <-chan struct{} { return j.added }

// Stirs has Added also receive after a job began to read much. EachStirred says which ones did.
func (j *Jobs) Stirs() {
	if j.sources != nil {
		j.sources.Process.Stirs(j.added)
	}
}

// EachStirred calls mark for the jobs that began to read much since the last call. It has none without Stirs.
func (j *Jobs) EachStirred(mark func(id string)) {
	if j.sources != nil {
		j.sources.Process.EachStirred(mark)
	}
}

// Environment returns a variable of a process's environment, if that may be read.
func (j *Jobs) Environment(pid int, key string) (value string, known bool) {
	if pid <= 0 {
		return "", false
	}
	return j.environment(pid)(key)
}

// Watch has a job read at every interval, or ends that, while a window may be going on that it did not
// announce.
func (j *Jobs) Watch(id string, on bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if known := j.jobs[id]; known != nil {
		known.watched = on
		j.pace(id, known)
	}
}

// Lead sets the thread of a job whose time its ledgers divide, where that is not the first thread of a process.
func (j *Jobs) Lead(id string, tid int) { j.readings.Lead(id, tid) }

// Unfollow ends what Follow began. Later reports have no readings of the job, unless it is kept.
func (j *Jobs) Unfollow(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	known := j.jobs[id]
	if known == nil {
		return
	}
	known.users--
	j.removeUnused(id, known)
}

// Keep has a job stay after the last Unfollow, until Release: what its end ends can be reported then. It stays no
// longer if its place is needed.
func (j *Jobs) Keep(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if known := j.jobs[id]; known != nil {
		known.kept = true
	}
}

// Left reports whether a kept job would be gone without Keep.
func (j *Jobs) Left(id string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	known := j.jobs[id]
	return known != nil && known.users <= 0
}

// Release ends what Keep began.
func (j *Jobs) Release(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if known := j.jobs[id]; known != nil {
		known.kept = false
		j.removeUnused(id, known)
	}
}

// removeUnused removes a job that is neither followed nor kept.
func (j *Jobs) removeUnused(id string, known *job) {
	if known.users > 0 || known.kept {
		j.pace(id, known)
		return
	}
	j.remove(id, known)
}

// removeLeft removes the jobs that are only kept, and reports whether there were any.
func (j *Jobs) removeLeft() (some bool) {
	for id, known := range j.jobs {
		if known.users <= 0 {
			j.remove(id, known)
			some = true
		}
	}
	return some
}

func (j *Jobs) remove(id string, known *job) {
	delete(j.jobs, id)
	j.places.Release(known.client)
	j.readings.Unfollow(id)
	j.sources.Process.Remove(id)
	j.removePressure(known.scope)
}

// hold notes whether a job is followed because it holds memory of a GPU or uses CUDA.
func (j *Jobs) hold(id string, held bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if known := j.jobs[id]; known != nil {
		known.held = held
		j.pace(id, known)
	}
}

// pace has a job read rarely that no window needs.
func (j *Jobs) pace(id string, of *job) {
	j.sources.Watch(id, !of.held || of.users != 1 || of.watched)
}

func (j *Jobs) removePressure(scope string) {
	if scope != sample.HostScope {
		j.sources.Pressure.Remove(scope)
	}
}

// SearchUsers makes FollowHolders look for processes that use CUDA. device is its path for tests, and "" otherwise;
// reader has more rights than this process, or is nil. Call it before, and Close after the last FollowHolders.
func (j *Jobs) SearchUsers(device string, reader process.Reader) {
	j.holders.search = cuda.New(j.root, device, reader)
}

// Close ends what SearchUsers began.
func (j *Jobs) Close() {
	if j.holders.search != nil {
		j.holders.search.Close()
	}
}

// JobOf returns the id of the job that consists of a process and its children: the process number with its start time,
// which is unique while the machine is up. It returns "" if there is no such process.
func (j *Jobs) JobOf(pid int) string {
	of, ok := process.StatOf(j.root, pid)
	if !ok {
		return ""
	}
	return process.ID(pid, of.Start)
}

// Candidates returns the processes that work and are not followed, once ExpectSpans was called: see
// process.Source.Candidates.
func (j *Jobs) Candidates() (list []process.Candidate, hidden int) {
	if j.sources == nil {
		return nil, 0
	}
	return j.sources.Process.Candidates()
}

// ExpectSpans has processes read before a span names them, from now on, so that the first span of a process can be
// judged. owner returns whose a process is.
func (j *Jobs) ExpectSpans(owner func(pid int) (client string)) {
	if j.sources != nil {
		j.sources.Process.WatchCandidates(owner)
	}
}

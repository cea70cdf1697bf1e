package monitor

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/mount"
	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/window"
)

// job is a tree of processes whose time has a ledger of its own.
type job struct {
	id       string
	scope    string // of pressure
	own      bool
	whose    window.Scope
	since    time.Duration  // the first reading of it
	attended bool           // because of spans; there may be as many as GPUs, each using one
	users    int            // Follows without a Leave
	mounts   []sample.Mount // without a disk of this machine, newest use
	gpus     []string       // on which a process of it has held memory
}

// errReplay says that a recording has no processes to follow.
var errReplay = errors.New("a recording is being replayed: no processes can be followed")

// Follow makes the process tree below pid a job of its own. cgroup is the v2 cgroup in which it waits, "" to look it
// up; own says that this cgroup holds the job and nothing else. The first reading of the job is in the history when
// Follow returns. Each Follow needs its Leave.
func (m *Monitor) Follow(id string, pid int, cgroup string, own bool) error {
	return m.follow(id, pid, cgroup, own, false)
}

// follow is Follow, also for spans that arrive.
func (m *Monitor) follow(id string, pid int, cgroup string, own, attended bool) error {
	if m.process == nil {
		return errReplay
	}
	m.following.Lock() // two that begin the same job would both find it missing
	defer m.following.Unlock()
	m.mu.Lock()
	if j := m.jobs[id]; j != nil {
		j.users++
		m.mu.Unlock()
		return nil
	}
	m.mu.Unlock()

	if cgroup == "" {
		if found, err := m.groups.ScopeOf(pid); err == nil {
			cgroup = found
		}
	}
	if m.groups.WholeMachine(cgroup) {
		cgroup = sample.HostScope
	}
	if cgroup != sample.HostScope {
		if err := m.pressure.Add(cgroup); err != nil {
			m.problems.note("pressure", err)
			cgroup, own = sample.HostScope, false
		}
	}
	if err := m.process.Add(id, pid, process.Options{Cgroup: cgroup, OwnScope: own}); err != nil {
		m.unwatch(cgroup)
		return err
	}
	m.mu.Lock()
	j := &job{id: id, scope: cgroup, own: own, users: 1, attended: attended, whose: window.Process, since: math.MaxInt64}
	if attended && own {
		j.whose = window.Container
	}
	m.adopt(j)
	m.mu.Unlock()
	m.sampler.Read(m.take)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.round()
	j.since = m.newest.Mono
	return nil
}

// adopt begins a job's ledger. m.mu is held.
func (m *Monitor) adopt(j *job) {
	m.jobs[j.id] = j
	m.stale = true
	m.journal.mark(recording.Mark{Op: recording.Follow, ID: j.id, Scope: j.scope, OwnScope: j.own})
}

// abandon ends it. m.mu is held.
func (m *Monitor) abandon(id string) {
	delete(m.jobs, id)
	m.latest.Unfollow(id)
	m.stale = true
	m.journal.mark(recording.Mark{Op: recording.Leave, ID: id})
}

// Leave ends what Follow began. Reports that are made later no longer see the job's own time.
func (m *Monitor) Leave(id string) {
	m.following.Lock()
	defer m.following.Unlock()
	m.mu.Lock()
	j := m.jobs[id]
	if j == nil || m.process == nil { // a recording's jobs are its own
		m.mu.Unlock()
		return
	}
	if j.users--; j.users > 0 {
		m.mu.Unlock()
		return
	}
	m.abandon(id)
	m.mu.Unlock()
	m.process.Remove(id)
	m.unwatch(j.scope)
}

func (m *Monitor) unwatch(scope string) {
	if scope != sample.HostScope {
		m.pressure.Remove(scope)
	}
}

// mostMounts bounds what a job is remembered for.
const mostMounts = 64

// remember keeps which mounts without a disk of this machine a job has had files open on.
func (m *Monitor) remember(jobs []sample.Job) {
	for i := range jobs {
		j := m.jobs[jobs[i].ID]
		if j == nil {
			continue
		}
		for _, found := range jobs[i].Mounts {
			if !remote(found) {
				continue
			}
			k := slices.IndexFunc(j.mounts, func(x sample.Mount) bool { return x.Point == found.Point })
			switch {
			case k >= 0:
				j.mounts[k] = found
			case len(j.mounts) < mostMounts:
				m.stale = m.stale || len(j.mounts) == 0
				j.mounts = append(j.mounts, found)
			}
		}
	}
}

// mostHeld bounds the GPUs that a job is remembered for.
const mostHeld = 64

// hold keeps which GPUs the processes of jobs hold memory of, and tells the process source who does. Where the driver
// numbers processes otherwise than we see them, as in a container, none match, and a job's GPUs stay unknown. m.mu is held.
func (m *Monitor) hold(held []sample.GPUProcess) {
	holders := map[string][]int{}
	for i := range m.latest.Jobs.Processes {
		p := &m.latest.Jobs.Processes[i]
		j := m.jobs[p.Job]
		for _, h := range held {
			if j == nil || h.PID != p.PID {
				continue
			}
			if !slices.Contains(holders[j.id], p.PID) {
				holders[j.id] = append(holders[j.id], p.PID)
			}
			if len(j.gpus) < mostHeld && !slices.Contains(j.gpus, h.GPU) {
				j.gpus = append(j.gpus, h.GPU)
				m.stale = m.stale || j.attended
			}
		}
	}
	if m.process == nil { // a recording
		return
	}
	for id, pids := range holders {
		m.process.Lead(id, pids)
	}
}

func remote(m sample.Mount) bool {
	kind := mount.Kind(m.Type)
	return (kind == mount.Network || kind == mount.Fuse) && !mount.HasBlockDevice(m)
}

// setTargets sets one ledger target for the whole machine and for each job, on each GPU. A job that is attended has targets
// only for the GPUs that it holds, if these are known.
func (m *Monitor) setTargets() {
	all := m.gpuIDs()
	var targets []ledger.Target
	add := func(t ledger.Target, gpus []string) {
		if len(gpus) == 0 {
			targets = append(targets, t)
		}
		for _, t.GPU = range gpus {
			targets = append(targets, t)
		}
	}
	add(ledger.Target{}, all)
	for _, j := range m.jobs {
		gpus := all
		if j.attended && len(j.gpus) > 0 {
			gpus = slices.DeleteFunc(slices.Clone(all), func(id string) bool { return !slices.Contains(j.gpus, id) })
		}
		add(j.target(), gpus)
	}
	m.ledger.SetTargets(targets)
	m.stale = false
}

func (j *job) target() ledger.Target {
	return ledger.Target{Job: j.id, Pressure: j.scope, Own: j.own, Remote: len(j.mounts) > 0}
}

func (m *Monitor) gpuIDs() []string {
	ids := m.history.IDs(history.GPUBusyTime)
	slices.Sort(ids)
	return ids
}

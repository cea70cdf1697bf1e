package monitor

import (
	"cmp"
	"strconv"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/source/process"
)

const (
	mostAttended = 8                // jobs that are followed because spans of them arrive
	attendEvery  = time.Second      // between two that begin to be followed: each costs a round of readings
	attendFor    = 10 * time.Minute // without a span, where another one needs the place
	attendDead   = time.Minute      // without a process: its last spans are still on their way
	lookAgain    = time.Second      // whether a process is still the one that it was
)

// attended are the jobs that are followed because spans of them arrive, by process ID.
type attended struct {
	mu    sync.Mutex // taken before Monitor.following
	jobs  map[int]*attendance
	begun time.Duration // the newest of them
}

type attendance struct {
	job    string
	used   time.Duration // when the last span came
	alive  time.Duration // when it was last seen to have a process
	looked time.Duration // when it was last made sure that the process is the same
}

// Attend follows a process and its children from now on, because spans of it arrive, and gives the job to which they
// belong then: "" where it is not followed, as when eight others are, when another one began within the last second, or
// when it has ended. cgroup and own are as for Follow; own says that it is a container. A job that has had no process for
// a minute is left; so is one of which no span came for ten minutes, when another one needs its place.
func (m *Monitor) Attend(pid int, cgroup string, own bool) (job string) {
	if m.process == nil || pid <= 0 {
		return ""
	}
	a := &m.attended
	a.mu.Lock()
	defer a.mu.Unlock()
	now := m.present()
	known := a.jobs[pid]
	if known != nil {
		known.used = now
		if now-known.looked < lookAgain {
			return known.job
		}
	}
	job = m.JobOf(pid)
	switch {
	case known != nil && (job == known.job || job == ""): // it is the same, or has ended
		known.looked = now
		return known.job
	case known != nil: // the number is another process's now
		m.forsake(pid)
	}
	if job == "" || a.begun > 0 && now-a.begun < attendEvery || !m.roomToAttend(now) {
		return ""
	}
	a.begun = now
	if m.follow(job, pid, cgroup, own, true) != nil {
		return ""
	}
	if a.jobs == nil {
		a.jobs = map[int]*attendance{}
	}
	a.jobs[pid] = &attendance{job, now, now, now}
	return job
}

// JobOf names the job that is a process and those that it started: by its number and its start, which tell it from all
// others of this machine's uptime. It is "" for a process that is not there.
func (m *Monitor) JobOf(pid int) string {
	started, ok := process.Started(m.config.Root, pid)
	if !ok {
		return ""
	}
	return "process " + strconv.Itoa(pid) + " of " + strconv.FormatUint(started, 10)
}

// roomToAttend makes room for another job. m.attended.mu is held.
func (m *Monitor) roomToAttend(now time.Duration) bool {
	a := &m.attended
	if len(a.jobs) < mostAttended {
		return true
	}
	oldest := 0
	for pid, j := range a.jobs {
		if oldest == 0 || cmp.Less(j.used, a.jobs[oldest].used) {
			oldest = pid
		}
	}
	if now-a.jobs[oldest].used < attendFor {
		return false
	}
	m.forsake(oldest)
	return true
}

// leaveDead leaves the jobs that have had no process for a while.
func (m *Monitor) leaveDead() {
	a := &m.attended
	a.mu.Lock()
	defer a.mu.Unlock()
	now := m.present()
	for pid, j := range a.jobs {
		if m.hasProcess(j.job) {
			j.alive = now
		} else if now-j.alive > attendDead {
			m.forsake(pid)
		}
	}
}

// forsake leaves a job. m.attended.mu is held.
func (m *Monitor) forsake(pid int) {
	m.Leave(m.attended.jobs[pid].job)
	delete(m.attended.jobs, pid)
}

// hasProcess says whether a job that is followed has a process that lives.
func (m *Monitor) hasProcess(job string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.latest.Jobs.Jobs {
		if j := &m.latest.Jobs.Jobs[i]; j.ID == job {
			return j.Processes > 0
		}
	}
	return false
}

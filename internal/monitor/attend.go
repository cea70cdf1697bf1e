package monitor

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

const (
	mostAttended = 8                // jobs that are followed because spans of them arrive
	attendEvery  = time.Second      // between two that begin to be followed: each costs a round of readings
	attendFor    = 10 * time.Minute // without a span
	attendDead   = time.Minute      // without a process: its last spans are still on their way
)

// attended are the jobs that are followed because spans of them arrive.
type attended struct {
	mu    sync.Mutex // taken before Monitor.following
	jobs  map[string]*attendance
	begun time.Duration // the newest of them
}

type attendance struct {
	used  time.Duration // when the last span came
	alive time.Duration // when it was last seen to have a process
}

// Attend follows a process and its children from now on, because spans of it arrive, and gives the job to which they
// belong then: "" where it is not followed, as when eight others are, when another one began within the last second, or
// when it has ended. cgroup and own are as for Follow; own says that it is a container. A job of which no span came for
// ten minutes, or that has had no process for one, is left when another one comes.
func (m *Monitor) Attend(pid int, cgroup string, own bool) (job string) {
	if m.process == nil || pid <= 0 {
		return ""
	}
	job = JobOf(pid)
	a := &m.attended
	a.mu.Lock()
	defer a.mu.Unlock()
	now := m.present()
	alive := m.hasProcess(job)
	if j := a.jobs[job]; j != nil {
		j.used = now
		if alive {
			j.alive = now
		}
		if alive || !m.runs(pid) {
			return job
		}
		m.Leave(job) // the number is another process's now
		delete(a.jobs, job)
	}
	if a.begun > 0 && now-a.begun < attendEvery {
		return ""
	}
	m.leaveIdle(now)
	if len(a.jobs) >= mostAttended || !m.runs(pid) {
		return ""
	}
	a.begun = now
	if m.follow(job, pid, cgroup, own, own) != nil {
		return ""
	}
	if a.jobs == nil {
		a.jobs = map[string]*attendance{}
	}
	a.jobs[job] = &attendance{now, now}
	return job
}

// JobOf names the job that is a process and those that it started.
func JobOf(pid int) string { return "process " + strconv.Itoa(pid) }

// leaveIdle leaves the jobs that are over. m.attended.mu is held.
func (m *Monitor) leaveIdle(now time.Duration) {
	for job, j := range m.attended.jobs {
		if m.hasProcess(job) {
			j.alive = now
		}
		if now-j.used > attendFor || now-j.alive > attendDead {
			m.Leave(job)
			delete(m.attended.jobs, job)
		}
	}
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

func (m *Monitor) runs(pid int) bool {
	_, err := os.Stat(filepath.Join("/", m.config.Root, "proc", strconv.Itoa(pid)))
	return err == nil
}

package follow

import (
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/monitor/sampling"
	"github.com/stallspan/stallspan/internal/window"
)

const (
	maxAuto     = 8                // jobs that are followed because of their spans
	autoEvery   = time.Second      // mean time between two new ones: each costs a round of readings
	autoIdle    = 10 * time.Minute // without a span, after which a job may be replaced by another
	autoDead    = time.Minute      // without a process: its last spans are still on their way
	verifyEvery = time.Second      // how often a process number is verified to be the same process
)

// auto are the jobs that are followed because they send spans.
type auto struct {
	now func() time.Duration // present monotonic time

	mu    sync.Mutex // taken before Jobs.mu
	byPID map[int]*autoJob
	spent time.Duration // a moment: the time since then, in units of autoEvery, is how many may be added at once
}

type autoJob struct {
	job      string
	used     time.Duration // the last span
	alive    time.Duration // the last time that it had a process
	verified time.Duration // the last time that the process was found to be the same
}

// AutoFollow follows a process and its children because they send spans, and returns their job. group and own are as
// for Follow; own means a container. AutoFollow returns "" if the process has ended, if eight others are followed, or
// if more than one a second were added recently. A job without a process for a minute is unfollowed. So is a
// job without a span for ten minutes, if another one needs the place.
func (j *Jobs) AutoFollow(pid int, group string, own bool) (job string) {
	if j.sources == nil || pid <= 0 {
		return ""
	}
	a := &j.auto
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	known := a.byPID[pid]
	if known != nil {
		known.used = now
		if now-known.verified < verifyEvery {
			return known.job
		}
	}
	job = j.JobOf(pid)
	switch {
	case known != nil && (job == known.job || job == ""): // the same process, or it has ended
		known.verified = now
		return known.job
	case known != nil: // another process has the number now
		a.remove(pid, j.Unfollow)
	}
	if job == "" || !a.mayAdd(now) || !a.makeRoom(now, j.Unfollow) {
		return ""
	}
	wanted := sampling.Job{ID: job, Pressure: group, Own: own, Scope: window.Process, OnlyHeldGPUs: true}
	if own {
		wanted.Scope = window.Container
	}
	if j.follow("", wanted, pid) != nil {
		return ""
	}
	if a.byPID == nil {
		a.byPID = map[int]*autoJob{}
	}
	a.byPID[pid] = &autoJob{job, now, now, now}
	return job
}

// RemoveDead unfollows the jobs that have sent spans and have had no process for a minute.
func (j *Jobs) RemoveDead() {
	a := &j.auto
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	for pid, known := range a.byPID {
		if j.readings.HasProcess(known.job) {
			known.alive = now
		} else if now-known.alive > autoDead {
			a.remove(pid, j.Unfollow)
		}
	}
}

// mayAdd reports whether another job may be added now. As many as there may be can be added at once: the ranks of a
// training job send their first spans together.
func (a *auto) mayAdd(now time.Duration) bool {
	if a.spent == 0 || a.spent < now-maxAuto*autoEvery {
		a.spent = now - maxAuto*autoEvery
	}
	if a.spent+autoEvery > now {
		return false
	}
	a.spent += autoEvery
	return true
}

// makeRoom reports whether there is room for another job. It may remove the one that was idle longest.
func (a *auto) makeRoom(now time.Duration, unfollow func(string)) bool {
	if len(a.byPID) < maxAuto {
		return true
	}
	oldest := 0
	for pid, j := range a.byPID {
		if oldest == 0 || j.used < a.byPID[oldest].used {
			oldest = pid
		}
	}
	if now-a.byPID[oldest].used < autoIdle {
		return false
	}
	a.remove(oldest, unfollow)
	return true
}

func (a *auto) remove(pid int, unfollow func(string)) {
	unfollow(a.byPID[pid].job)
	delete(a.byPID, pid)
}

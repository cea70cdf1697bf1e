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
	client   string        // the container or user whose process it is
	used     time.Duration // the last span
	alive    time.Duration // the last time that it had a process
	verified time.Duration // the last time that the process was found to be the same
}

// AutoFollow follows a process and its children because they send spans, and returns their job. client is the container
// or user whose process it is; group and own are as for Follow; own means a container. AutoFollow returns "" if the
// process has ended, if eight others are followed, or if more than one a second were added recently. A job without a
// process for a minute is unfollowed. If another one needs the place, so is a job without a span for ten minutes, or
// one of a client that has more places than the other's.
func (j *Jobs) AutoFollow(client string, pid int, group string, own bool) (job string) {
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
	if job == "" {
		return ""
	}
	replaced, room := a.room(client, now)
	if !room || !a.mayAdd(now) { // in this order: a client that has no room uses up no turn of others
		return ""
	}
	if replaced != 0 {
		a.remove(replaced, j.Unfollow)
	}
	wanted := sampling.Job{ID: job, Pressure: group, Own: own, Scope: window.Process, OnlyHeldGPUs: true}
	if own {
		wanted.Scope = window.Container
	}
	if j.follow("", wanted, pid) != nil {
		return ""
	}
	a.byPID[pid] = &autoJob{job, client, now, now, now}
	j.nameTime(job, pid)
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

// room reports whether there is room for another job of a client. replaced is the process to remove for it; 0 for none.
// One client may have all places, until another needs some of them: then each gets its share.
func (a *auto) room(client string, now time.Duration) (replaced int, ok bool) {
	if len(a.byPID) < maxAuto {
		return 0, true
	}
	held := map[string]int{}
	most := client // the client with most places
	oldest := 0
	for pid, j := range a.byPID {
		if held[j.client]++; held[j.client] > held[most] || held[j.client] == held[most] && j.client < most {
			most = j.client
		}
		if oldest == 0 || j.used < a.byPID[oldest].used {
			oldest = pid
		}
	}
	if now-a.byPID[oldest].used >= autoIdle {
		return oldest, true
	}
	if held[client]+1 >= held[most] {
		return 0, false
	}
	for pid, j := range a.byPID {
		if j.client == most && (replaced == 0 || j.used < a.byPID[replaced].used) {
			replaced = pid
		}
	}
	return replaced, true
}

func (a *auto) remove(pid int, unfollow func(string)) {
	unfollow(a.byPID[pid].job)
	delete(a.byPID, pid)
}

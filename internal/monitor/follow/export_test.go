package follow

import "time"

const (
	MaxAuto     = maxAuto
	AutoIdle    = autoIdle
	AutoDead    = autoDead
	VerifyEvery = verifyEvery
)

// AllowNext lets the next job be added at once.
func (j *Jobs) AllowNext() {
	j.auto.mu.Lock()
	defer j.auto.mu.Unlock()
	j.auto.spent = 0
}

// MayAdd returns how many jobs may be added when that is requested at these times.
func MayAdd(times []time.Duration) (count int) {
	var a auto
	for _, now := range times {
		if a.mayAdd(now) {
			count++
		}
	}
	return count
}

// Age moves all times of a process further back.
func (j *Jobs) Age(pid int, by time.Duration) {
	j.auto.mu.Lock()
	defer j.auto.mu.Unlock()
	a := j.auto.byPID[pid]
	a.used, a.alive, a.verified = a.used-by, a.alive-by, a.verified-by
}

// AutoCount returns the number of jobs that are followed because of their spans.
func (j *Jobs) AutoCount() int {
	j.auto.mu.Lock()
	defer j.auto.mu.Unlock()
	return len(j.auto.byPID)
}

// AutoJob returns the job of a process; "" for none.
func (j *Jobs) AutoJob(pid int) string {
	j.auto.mu.Lock()
	defer j.auto.mu.Unlock()
	if a := j.auto.byPID[pid]; a != nil {
		return a.job
	}
	return ""
}

// SetAutoJob replaces the job of a process, to be verified at the next span.
func (j *Jobs) SetAutoJob(pid int, job string) {
	j.auto.mu.Lock()
	defer j.auto.mu.Unlock()
	a := j.auto.byPID[pid]
	a.job, a.verified = job, a.verified-2*verifyEvery
}

// InHolder reports whether a process is in one of these jobs, by their first process.
func (j *Jobs) InHolder(pid int, jobs map[int]string) bool {
	j.holders.byPID = map[int]*holderJob{}
	for first, job := range jobs {
		j.holders.byPID[first] = &holderJob{job: job}
	}
	return j.inHolder(pid)
}

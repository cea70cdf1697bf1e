package process

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Limits change rarely, but may change while a job runs.
const (
	limitsInterval = 5 * time.Second
	limitsSoon     = time.Second // a window needs what holds now, and a job may enter its cgroup after its start
	limitsYoung    = 5 * time.Second
)

// readLimits reads the limits that the first running process of the job is under. All of a job are usually under the
// same. While none runs, the last ones stay.
func (j *job) readLimits(s *Source, edge bool, now time.Duration) {
	wait := limitsInterval
	if edge || now-j.begun < limitsYoung {
		wait = limitsSoon
	}
	if j.limitsAt != 0 && now-j.limitsAt < wait {
		return
	}
	if m := j.oldest(); m != nil {
		j.limits, j.limitsAt = s.caps.Of(m.pid), now
		j.remember(s.caps.Memory(m.pid))
	}
}

// remember takes over the memory of the job's cgroup. What that read again before the job, or before the job moved to
// it, does not count.
func (j *job) remember(now sample.MemoryLimit) {
	again := j.memory.Refaulted
	if now.Cgroup == j.memory.Cgroup && now.Refaulted > j.refaulted {
		again += now.Refaulted - j.refaulted
	}
	j.refaulted, j.memory = now.Refaulted, now
	j.memory.Refaulted = again
}

package process

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
	"github.com/stallspan/stallspan/internal/source/pagecache"
)

// Limits change rarely, but may change while a job runs.
const (
	limitsInterval = 5 * time.Second
	limitsSoon     = time.Second // a window needs what holds now, and a job may enter its cgroup after its start
	limitsYoung    = 5 * time.Second
	memoryAtEdges  = 100 * time.Millisecond // least time between readings of what the page cache did not keep
)

// readLimits reads the limits that the first running process of the job is under. All of a job are usually under the
// same. While none runs, the last ones stay.
func (j *job) readLimits(s *Source, edge bool, now time.Duration) {
	wait := limitsInterval
	if edge || now-j.begun < limitsYoung {
		wait = limitsSoon
	}
	m := j.oldest()
	switch {
	case m != nil && (j.limitsAt == 0 || now-j.limitsAt >= wait):
		j.limits, j.limitsAt = s.caps.Of(m.pid), now
		memory, folder := s.caps.Memory(m.pid)
		j.memoryFolder = folder
		j.remember(memory)
	case edge && now-j.memoryAt >= memoryAtEdges:
		// Two windows must not have each other's part. After the end of the last process its cgroup knows the last one.
		if memory := s.caps.MemoryIn(j.memory.Cgroup, j.memoryFolder); memory.Limit > 0 {
			j.remember(memory)
		}
	default:
		return
	}
	if s.machineAt != now {
		s.free, s.pageCache, s.machineAt = kernfile.MemInfo(s.root, "MemAvailable"), pagecache.OfMachine(s.root), now
	}
	j.memory.Free, j.memoryAt = s.free, now
	if j.pageCacheBase == (sample.PageCache{}) {
		j.pageCacheBase = s.pageCache
	}
	base := &j.pageCacheBase
	j.pageCache = sample.PageCache{Kept: s.pageCache.Kept - base.Kept, Drops: s.pageCache.Drops - base.Drops}
	if s.pageCache == (sample.PageCache{}) || s.pageCache.Drops < base.Drops {
		j.pageCache = sample.PageCache{} // it could not be read, or its counters restarted
	}
}

// remember takes over the memory of the job's cgroup. What that read again before the job, or before the job moved to
// it, does not count.
func (j *job) remember(now sample.MemoryLimit) {
	again := j.memory.Refaulted
	if now.Cgroup == j.memory.Cgroup && now.Refaulted > j.refaulted {
		again += now.Refaulted - j.refaulted
	}
	if now.Refaulted > 0 || now.Cgroup != j.memory.Cgroup { // 0 may be that it could not be read
		j.refaulted = now.Refaulted
	}
	j.memory = now
	j.memory.Refaulted = again
}

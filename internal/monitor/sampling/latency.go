package sampling

import (
	"github.com/stallspan/stallspan/internal/source/latency"
	"github.com/stallspan/stallspan/internal/source/schedule"
)

// latencySource is the name of the source in recordings.
const latencySource = "latency"

// newLatency opens the tracepoints of block devices; nil where it cannot. That is nothing to complain about: the metric
// is absent, and check says why. With the scheduler's programs in the same process, it also counts by job.
func newLatency(c *SourceConfig, s Scheduler) *latency.Source {
	if !c.Latency || c.Latencies == nil {
		return nil
	}
	var jobs latency.Jobs
	if own, ok := s.(*schedule.Source); ok {
		jobs = own
	}
	source, err := latency.NewFrom(c.Latencies, jobs, c.Root)
	if err != nil {
		return nil
	}
	return source
}

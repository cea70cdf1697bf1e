package sampling

import (
	"github.com/stallspan/stallspan/internal/source/latency"
	"github.com/stallspan/stallspan/internal/source/schedule"
)

// latencySource is the name of the source in recordings.
const latencySource = "latency"

// newLatency opens the tracepoints of block devices; nil and why where it cannot, which leaves the metric absent. With
// the scheduler's programs in the same process, it also counts by job.
func newLatency(c *SourceConfig, s Scheduler) (source *latency.Source, why error) {
	if !c.Latency || c.Latencies == nil {
		return nil, nil
	}
	var jobs latency.Jobs
	if own, ok := s.(*schedule.Source); ok {
		jobs = own
	}
	return latency.NewFrom(c.Latencies, jobs, c.Root)
}

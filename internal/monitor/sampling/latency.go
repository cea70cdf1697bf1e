package sampling

import (
	"github.com/stallspan/stallspan/internal/source/latency"
	"github.com/stallspan/stallspan/internal/source/schedule"
)

// latencySource is the name of the source in recordings.
const latencySource = "latency"

// newLatency opens the tracepoints of block devices; nil if it is not to. Where it cannot, the metric is absent. With
// the scheduler's programs in the same process, it also counts by job.
func newLatency(c *SourceConfig, s *schedule.Source) *latency.Source {
	if !c.Latency || c.Latencies == nil {
		return nil
	}
	var jobs latency.Jobs
	if s != nil {
		jobs = s
	}
	source, _ := latency.NewFrom(c.Latencies, jobs, c.Root) // Missing has the error
	return source
}

package process

import (
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
)

// What a cgroup has read again counts from when the job is added, and goes on when the job moves to another one.
func TestRefaulted(t *testing.T) {
	j := job{}
	for i, step := range []struct {
		now  sample.MemoryLimit
		want uint64
	}{
		{sample.MemoryLimit{Cgroup: "/a", Limit: 9, Refaulted: 100}, 0},
		{sample.MemoryLimit{Cgroup: "/a", Limit: 9, Refaulted: 130}, 30},
		{sample.MemoryLimit{Cgroup: "/b", Limit: 9, Refaulted: 5000}, 30},
		{sample.MemoryLimit{Cgroup: "/b", Limit: 9, Refaulted: 5007}, 37},
		{sample.MemoryLimit{}, 37},
	} {
		if j.remember(step.now); j.memory.Refaulted != step.want || j.memory.Cgroup != step.now.Cgroup {
			t.Errorf("reading %d: got %+v, want %d read again", i, j.memory, step.want)
		}
	}
}

package history

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// totals sum the growth of many devices into a few columns for the machine, so that 128 cores do not take 128 columns.
// A device that comes or goes does not change a total.
type totals struct {
	cores map[string]time.Duration // work
	disks map[string]diskTotal

	work        float64
	busiestCore float64
	bytes       float64
	queued      float64
}

type diskTotal struct {
	bytes    uint64
	weighted time.Duration
	reset    time.Duration
}

// cpu returns the totals after s: the work of all cores, and the integral of the busiest core's utilization.
func (t *totals) cpu(s *sample.Sample) (work, busiestCore float64) {
	var sum, busiest time.Duration
	for i := range s.Cores {
		core := &s.Cores[i]
		if last, ok := t.cores[core.Name]; ok {
			grown := max(0, core.Busy()-last)
			sum += grown
			busiest = max(busiest, grown)
		}
	}
	return t.work + sum.Seconds(), t.busiestCore + busiest.Seconds()
}

// disk returns the totals after s: the bytes of all leaf disks, and the integral of the longest queue.
func (t *totals) disk(s *sample.Sample) (bytes, queued float64) {
	var sum uint64
	var longest time.Duration
	for i := range s.Disks {
		d := &s.Disks[i]
		last, ok := t.disks[d.Name]
		if !ok || !d.Leaf || last.reset != d.Reset.Mono {
			continue
		}
		sum += d.ReadBytes + d.WriteBytes - last.bytes
		longest = max(longest, d.TimeInQueue-last.weighted)
	}
	return t.bytes + float64(sum), t.queued + longest.Seconds()
}

// advance makes s the previous reading and drops the names of absent devices.
func (t *totals) advance(a axisID, s *sample.Sample) {
	switch a {
	case cpuAxis:
		t.work, t.busiestCore = t.cpu(s)
		if len(t.cores) != len(s.Cores) {
			t.cores = make(map[string]time.Duration, len(s.Cores))
		}
		for i := range s.Cores {
			t.cores[s.Cores[i].Name] = s.Cores[i].Busy()
		}
	case diskAxis:
		t.bytes, t.queued = t.disk(s)
		if len(t.disks) != len(s.Disks) {
			t.disks = make(map[string]diskTotal, len(s.Disks))
		}
		for i := len(s.Disks) - 1; i >= 0; i-- { // of a duplicate name the first device counts
			d := &s.Disks[i]
			t.disks[d.Name] = diskTotal{d.ReadBytes + d.WriteBytes, d.TimeInQueue, d.Reset.Mono}
		}
	}
}

package history

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// large returns the readings of a machine with many disks and GPUs, and the ledgers of jobs, each on a GPU and in a
// cgroup of its own.
func large(at time.Duration, disks, gpus, jobs int) (readings []*sample.Sample, ledgers []LedgerTotals) {
	stamp := sample.Stamp{Mono: at}
	d, g, j := &sample.Sample{At: stamp}, &sample.Sample{At: stamp}, &sample.Sample{At: stamp}
	p := &sample.Sample{At: stamp, Pressures: []sample.Pressure{{Resource: sample.IO}, {Resource: sample.CPU}}}
	for i := range disks {
		done := 1 + uint64(at/tick)*uint64(i+1)
		name := "nvme" + strconv.Itoa(i)
		d.Disks = append(d.Disks, sample.Disk{Name: name, Leaf: true, ReadIOs: done, ReadBytes: done << 20})
	}
	for i := range gpus {
		id := strconv.Itoa(i)
		g.GPUs = append(g.GPUs, sample.GPU{ID: id, Busy: at / 2})
		g.GPUDetails = append(g.GPUDetails, sample.GPUDetail{GPU: id, At: at})
		ledgers = append(ledgers, LedgerTotals{ID: "\x00" + id, Busy: at / 2})
	}
	for i := range jobs {
		id := "job" + strconv.Itoa(i)
		j.Jobs = append(j.Jobs, sample.Job{ID: id})
		ledgers = append(ledgers, LedgerTotals{ID: id, Busy: at / 2, HasGain: true, Scheduled: &Scheduled{Time: at}})
		for _, resource := range []sample.Resource{sample.IO, sample.CPU} {
			p.Pressures = append(p.Pressures, sample.Pressure{Resource: resource, Scope: "/" + id, Some: at / 2})
		}
	}
	core := &sample.Sample{At: stamp, Cores: []sample.Core{{Name: "cpu0"}}}
	return []*sample.Sample{d, p, core, j, g}, ledgers
}

// 24 disks, 16 GPUs and 80 jobs fit into the memory.
func TestManyDisksAndGPUs(t *testing.T) {
	for _, jobs := range []int{16, 80} {
		t.Run(strconv.Itoa(jobs), func(t *testing.T) { manyDisksAndGPUs(t, jobs) })
	}
}

func manyDisksAndGPUs(t *testing.T, jobs int) {
	const disks, gpus = 24, 16
	h := newHistory(t)
	var start, end Point
	for i := range 3000 {
		at := time.Duration(i+1) * tick
		readings, ledgers := large(at, disks, gpus, jobs)
		for _, s := range readings {
			add(t, h, s)
		}
		if err := h.AppendLedgers(at, ledgers); err != nil {
			t.Fatal(err)
		}
		edge := func() Point {
			e := &Edge{}
			for _, s := range readings {
				h.Observe(e, s)
			}
			return Point{At: at, Edge: e}
		}
		if i == 0 {
			start = edge()
		}
		end = edge()
	}
	t.Logf("the rows of %d jobs, %d disks and %d GPUs take %.1f MiB", jobs, disks, gpus, float64(h.Bytes())/(1<<20))
	if h.Bytes() > DefaultMaxBytes {
		t.Errorf("got %d bytes, want at most %d", h.Bytes(), DefaultMaxBytes)
	}
	for name, got := range map[string][2]int{
		"disks": {len(h.IDs(DiskReadIOs)), disks}, "GPUs": {len(h.IDs(GPUBusyTime)), gpus},
		"details": {len(h.details), gpus}, "ledgers": {len(h.IDs(LedgerBusy)), gpus + jobs},
		"kinds of other": {len(h.IDs(OtherGPU)), jobs}, "jobs": {len(h.IDs(JobCPUTime)), jobs},
		"pressures": {len(h.IDs(IOSome)), jobs + 1},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: got %d, want %d", name, got[0], got[1])
		}
	}
	for i := range disks {
		key := Key{DiskReadIOs, "nvme" + strconv.Itoa(i)}
		if d, ok := h.Between(key, start, end); !ok || d.Reset || d.Low != d.High || d.Value != float64(2999*(i+1)) {
			t.Errorf("%s: got %+v, %v; want %d", key.ID, d, ok, 2999*(i+1))
		}
		// Without edges: four minutes.
		d, ok := h.Between(key, at(600*tick+50*time.Millisecond), at(2999*tick))
		if want := 2398.5 * float64(i+1); !ok || d.Low > want || d.High < want || d.High-d.Low > 1.001*float64(i+1) {
			t.Errorf("%s, from rows: got %+v, %v; want about %v", key.ID, d, ok, want)
		}
	}
}

// A device without room is named once, and asking again costs little.
func TestRefusedAreNamed(t *testing.T) {
	h := newHistory(t)
	s := &sample.Sample{At: sample.Stamp{Mono: tick}}
	for i := range 900 {
		s.Disks = append(s.Disks, sample.Disk{Name: "sd" + strconv.Itoa(1000+i), Leaf: true, ReadIOs: 1})
	}
	err := h.Append(s)
	kept := len(h.IDs(DiskReadIOs))
	if kept < 24 || err == nil || !strings.Contains(err.Error(), "disk sd"+strconv.Itoa(1000+kept)+", ") ||
		!strings.Contains(err.Error(), "and "+strconv.Itoa(900-kept-maxNamed)+" more") {
		t.Errorf("%d disks kept: got %v", kept, err)
	}
	if n := testing.AllocsPerRun(10, func() {
		s.At.Mono += tick
		if again := h.Append(s); !errors.Is(again, err) {
			t.Errorf("got %v, want the same error", again)
		}
	}); n > 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

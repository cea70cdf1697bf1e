package history

import (
	"errors"
	"math"
	"math/rand/v2"
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

// 24 disks, 16 GPUs and as many jobs fit into the memory. 80 jobs fit with what they may have besides. Windows with
// edges lose nothing.
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
	most := DefaultMaxBytes
	if jobs > gpus {
		most += DefaultJobBytes
	}
	t.Logf("the rows of %d jobs, %d disks and %d GPUs take %.1f MiB", jobs, disks, gpus, float64(h.Bytes())/(1<<20))
	if h.Bytes() > most {
		t.Errorf("got %d bytes, want at most %d", h.Bytes(), most)
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
		// Without edges: four minutes. Narrow columns have only the last one on the finest tier.
		d, ok := h.Between(key, at(600*tick+50*time.Millisecond), at(2999*tick))
		if want := 2398.5 * float64(i+1); !ok || d.Low > want || d.High < want || d.High-d.Low > 11*float64(i+1) {
			t.Errorf("%s, from rows: got %+v, %v; want about %v", key.ID, d, ok, want)
		}
	}
}

// Columns that become narrow keep what they have, for as long as narrow ones reach.
func TestShrink(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	h := newHistory(t, Tier{0, 600}, Tier{time.Second, 600}, Tier{10 * time.Second, 600})
	var counts []uint64
	var now time.Duration
	for range 5000 {
		now += tick
		counts = append(counts, uint64(now/time.Millisecond)+random.Uint64N(50))
		add(t, h, disk(now, "sda", counts[len(counts)-1]))
	}
	for round := range 2 {
		if !h.shrink(kindDisk) {
			t.Fatalf("round %d: got nothing to shrink", round)
		}
	}
	if h.shrink(kindGPU) {
		t.Error("got a third step, want two: all columns are narrow")
	}
	reach := 60 * time.Second // a tenth of the rows with one a second
	for range 20 {
		for range 50 {
			now += tick
			counts = append(counts, uint64(now/time.Millisecond)+random.Uint64N(50))
			add(t, h, disk(now, "sda", counts[len(counts)-1]))
		}
		for range 50 {
			from := now - time.Duration(random.Int64N(int64(reach-time.Second)))
			to := from + time.Duration(random.Int64N(int64(now-from)+1))
			d, ok := h.Between(read("sda"), at(from), at(to))
			want := float64(to-from) / float64(time.Millisecond)
			if !ok || math.Abs(d.Value-want) > 110 || d.Low > d.Value || d.High < d.Value || d.High-d.Low > 2300 {
				t.Fatalf("[%v,%v] at %v: got %+v, %v; want %v", from, to, now, d, ok, want)
			}
		}
		if _, ok := h.Between(read("sda"), at(now-2*reach), at(now)); ok && now > 800*time.Second {
			t.Errorf("%v before the end: got a result, want none", 2*reach)
		}
	}
	if got, want := h.diskBytes, h.size(kindDisk, narrow); got != want {
		t.Errorf("got %d bytes for a disk, want %d", got, want)
	}
}

// A device without room is named once, and asking again costs little.
func TestRefusedAreNamed(t *testing.T) {
	h := newHistory(t)
	s := &sample.Sample{At: sample.Stamp{Mono: tick}}
	for i := range 500 {
		s.Disks = append(s.Disks, sample.Disk{Name: "sd" + strconv.Itoa(1000+i), Leaf: true, ReadIOs: 1})
	}
	err := h.Append(s)
	kept := len(h.IDs(DiskReadIOs))
	if kept < 24 || err == nil || !strings.Contains(err.Error(), "disk sd"+strconv.Itoa(1000+kept)+", ") ||
		!strings.Contains(err.Error(), "and "+strconv.Itoa(500-kept-maxNamed)+" more") {
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

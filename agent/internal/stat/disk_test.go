package stat

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

const ms = time.Millisecond

// at is a reading of disks, that long after the first one.
func at(after time.Duration, disks ...sample.Disk) *sample.Snapshot {
	return &sample.Snapshot{Disks: sample.Sample{At: sample.Stamp{Mono: time.Hour + after}, Disks: disks}}
}

// between normalizes both readings, as the source does.
func between(before, after *sample.Snapshot) Rates {
	var normalizer sample.DiskNormalizer
	normalizer.Normalize(&before.Disks)
	normalizer.Normalize(&after.Disks)
	return Between(before, after)
}

// near compares to the precision of floating-point arithmetic.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

// is reports whether an optional number has the value v.
func is(p *float64, v float64) bool { return p != nil && near(*p, v) }

// TestDefinitions compares the formulas with numbers by hand, as iostat(1) defines them.
func TestDefinitions(t *testing.T) {
	before := sample.Disk{Name: "sda", Leaf: true, Has: sample.HasDiscards | sample.HasFlushes,
		ReadIOs: 1000, WriteIOs: 7, ReadTicks: 5 * time.Second, IOTicks: time.Second, TimeInQueue: 9 * time.Second}
	after := before
	after.ReadIOs += 400
	after.ReadMerges += 20
	after.ReadBytes += 400 * 4096
	after.ReadTicks += 8000 * ms // 20 ms each
	after.WriteIOs += 100
	after.WriteMerges += 300
	after.WriteBytes += 100 * 65536
	after.WriteTicks += 500 * ms // 5 ms each
	after.DiscardIOs += 4
	after.DiscardBytes += 4 << 20
	after.DiscardTicks += 8 * ms
	after.FlushIOs += 10
	after.FlushTicks += 30 * ms
	after.IOTicks += 1500 * ms
	after.TimeInQueue += 8530 * ms
	got := between(at(0, before), at(2*time.Second, after))
	if got.Interval != 2*time.Second || len(got.Disks) != 1 {
		t.Fatalf("got %+v, want one disk over 2s", got)
	}
	d := got.Disks[0]
	for name, ok := range map[string]bool{
		"name, leaf": d.Name == "sda" && d.Leaf,
		"r/s":        near(d.ReadsPerSecond, 200),
		"rkB/s":      near(d.ReadBytesPerSecond, 819200),
		"rrqm/s":     near(d.ReadsMergedPerSecond, 10),
		"r_await":    is(d.ReadAwait, 20),
		"rareq-sz":   is(d.ReadSize, 4096),
		"w/s":        near(d.WritesPerSecond, 50),
		"wkB/s":      near(d.WriteBytesPerSecond, 3276800),
		"wrqm/s":     near(d.WritesMergedPerSecond, 150),
		"w_await":    is(d.WriteAwait, 5),
		"wareq-sz":   is(d.WriteSize, 65536),
		"d/s":        is(d.DiscardsPerSecond, 2),
		"dkB/s":      is(d.DiscardBytesPerSecond, 2<<20),
		"d_await":    is(d.DiscardAwait, 2),
		"f/s":        is(d.FlushesPerSecond, 5),
		"f_await":    is(d.FlushAwait, 3),
		"await":      is(d.Await, 8508.0/504), // without flushes
		"aqu-sz":     is(d.QueueDepth, 4.265),
		"%util":      is(d.Utilization, 0.75),
	} {
		if !ok {
			t.Errorf("%s: got %+v, want another value", name, d)
		}
	}
}

func TestNoRate(t *testing.T) {
	used := sample.Disk{Name: "sda", ReadIOs: 5, ReadTicks: time.Second, ReadBytes: 4096}
	fell := func(change func(d *sample.Disk)) sample.Disk {
		d := used
		change(&d)
		return d
	}
	second := func(before, after []sample.Disk) []Disk {
		return between(at(0, before...), at(time.Second, after...)).Disks
	}
	for name, got := range map[string][]Disk{
		"never used":           second([]sample.Disk{{Name: "sda"}}, []sample.Disk{{Name: "sda"}}),
		"not there before":     second(nil, []sample.Disk{used}),
		"gone":                 second([]sample.Disk{used}, nil),
		"replaced":             second([]sample.Disk{used}, []sample.Disk{fell(func(d *sample.Disk) { d.ReadIOs = 1 })}),
		"replaced, by bytes":   second([]sample.Disk{used}, []sample.Disk{fell(func(d *sample.Disk) { d.ReadBytes = 0 })}),
		"replaced, by time":    second([]sample.Disk{used}, []sample.Disk{fell(func(d *sample.Disk) { d.ReadTicks = 0 })}),
		"no time between":      between(at(0, used), at(0, used)).Disks,
		"the clock stood back": between(at(time.Second, used), at(0, used)).Disks,
	} {
		if len(got) != 0 {
			t.Errorf("%s: got %+v, want no rates", name, got)
		}
	}
	idle := second([]sample.Disk{used}, []sample.Disk{used})
	if len(idle) != 1 {
		t.Fatalf("got %+v, want one disk", idle)
	}
	if d := idle[0]; d.ReadAwait != nil || d.Await != nil || d.ReadSize != nil || d.DiscardsPerSecond != nil ||
		d.FlushesPerSecond != nil ||
		d.Utilization == nil || *d.Utilization != 0 {
		t.Errorf("idle disk on an old kernel: got %+v, want no means", d)
	}
}

func TestUtilizationStopsAtOne(t *testing.T) { // the kernel samples by jiffies, and can exceed the interval
	a := sample.Disk{Name: "sda", ReadIOs: 1}
	b := a
	b.IOTicks, b.TimeInQueue = 1008*ms, 1010*ms
	if got := between(at(0, a), at(time.Second, b)).Disks; len(got) != 1 || *got[0].Utilization != 1 || got[0].Inexact {
		t.Errorf("got %+v, want one disk", got)
	}
}

// work returns random work of a disk in one interval.
func work(random *rand.Rand) sample.Disk {
	n := func() uint64 { return random.Uint64N(1 << random.IntN(20)) }
	d := func() time.Duration { return time.Duration(n()) * ms }
	return sample.Disk{
		ReadIOs:      n(),
		ReadMerges:   n(),
		ReadBytes:    n() * 512,
		ReadTicks:    d(),
		WriteIOs:     n(),
		WriteMerges:  n(),
		WriteBytes:   n() * 512,
		WriteTicks:   d(),
		IOTicks:      d(),
		TimeInQueue:  d(),
		DiscardIOs:   n(),
		DiscardBytes: n() * 512,
		DiscardTicks: d(),
		FlushIOs:     n(),
		FlushTicks:   d(),
	}
}

// done returns a disk after more work, with times that wrap like the kernel's.
func done(d, w sample.Disk) sample.Disk {
	d.ReadIOs, d.ReadMerges, d.ReadBytes = d.ReadIOs+w.ReadIOs, d.ReadMerges+w.ReadMerges, d.ReadBytes+w.ReadBytes
	d.WriteIOs, d.WriteMerges, d.WriteBytes = d.WriteIOs+w.WriteIOs, d.WriteMerges+w.WriteMerges, d.WriteBytes+w.WriteBytes
	d.DiscardIOs, d.DiscardBytes = d.DiscardIOs+w.DiscardIOs, d.DiscardBytes+w.DiscardBytes
	d.FlushIOs += w.FlushIOs
	add := func(at *time.Duration, more time.Duration) { *at = (*at + more) % (ms << 32) }
	add(&d.ReadTicks, w.ReadTicks)
	add(&d.WriteTicks, w.WriteTicks)
	add(&d.IOTicks, w.IOTicks)
	add(&d.TimeInQueue, w.TimeInQueue)
	add(&d.DiscardTicks, w.DiscardTicks)
	add(&d.FlushTicks, w.FlushTicks)
	return d
}

// numbers returns a disk's rates in one list, with -1 for missing ones.
func numbers(d *Disk) []float64 {
	list := []float64{
		d.ReadsPerSecond,
		d.ReadBytesPerSecond,
		d.ReadsMergedPerSecond,
		d.WritesPerSecond,
		d.WriteBytesPerSecond,
		d.WritesMergedPerSecond,
	}
	for _, p := range []*float64{d.QueueDepth, d.Utilization, d.ReadAwait, d.ReadSize, d.WriteAwait, d.WriteSize,
		d.DiscardsPerSecond, d.DiscardBytesPerSecond,
		d.DiscardAwait, d.FlushesPerSecond, d.FlushAwait, d.Await} {
		if p == nil {
			list = append(list, -1)
		} else {
			list = append(list, *p)
		}
	}
	return list
}

// Work before the interval and wraps in the interval change no rate. No rate is negative or NaN.
func FuzzRates(f *testing.F) {
	f.Add(uint64(1), int64(time.Second), uint32(0))
	f.Add(uint64(2), int64(time.Microsecond), uint32(math.MaxUint32))
	f.Add(uint64(3), int64(24*time.Hour), uint32(math.MaxUint32-100))
	f.Fuzz(func(t *testing.T, seed uint64, interval int64, began uint32) {
		if interval <= 0 || interval > int64(100*time.Hour) {
			return
		}
		random := rand.New(rand.NewPCG(seed, 0))
		w := work(random)
		rates := func(a sample.Disk) []float64 {
			a.Name, a.Has, a.DiscardIOs = "sda", sample.HasDiscards|sample.HasFlushes, a.DiscardIOs+1
			got := between(at(0, a), at(time.Duration(interval), done(a, w)))
			if len(got.Disks) != 1 {
				t.Fatalf("got %d disks, want 1", len(got.Disks))
			}
			return numbers(&got.Disks[0])
		}
		fresh := rates(sample.Disk{})
		past := work(random)
		began = max(began, math.MaxUint32/4*3+4) // a fall from a lower value is a restart
		for _, d := range []*time.Duration{
			&past.ReadTicks, &past.WriteTicks, &past.IOTicks, &past.TimeInQueue, &past.DiscardTicks, &past.FlushTicks,
		} {
			*d = time.Duration(began) * ms
		}
		if late := rates(past); !slices.Equal(fresh, late) {
			t.Errorf("got %v later, want %v as after boot", late, fresh)
		}
		for i, v := range fresh {
			if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 && v != -1 {
				t.Errorf("number %d: got %v, want a positive one", i, v)
			}
		}
	})
}

// The work of two intervals adds up to that of the interval over both.
func TestIntervalsAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		one, two := time.Duration(1+random.Int64N(int64(time.Minute))), time.Duration(1+random.Int64N(int64(time.Minute)))
		a := done(sample.Disk{Name: "sda", ReadIOs: 1}, work(random))
		b := done(a, work(random))
		c := done(b, work(random))
		first := between(at(0, a), at(one, b)).Disks[0]
		second := between(at(one, b), at(one+two, c)).Disks[0]
		both := between(at(0, a), at(one+two, c)).Disks[0]
		parts, whole := []func(d *Disk) float64{
			func(d *Disk) float64 { return d.ReadsPerSecond },
			func(d *Disk) float64 { return d.WriteBytesPerSecond },
			func(d *Disk) float64 {
				if d.QueueDepth == nil {
					return 0
				}
				return *d.QueueDepth
			},
			func(d *Disk) float64 { // the summed time, from the mean
				if d.ReadAwait == nil {
					return 0
				}
				return *d.ReadAwait * d.ReadsPerSecond
			},
		}, one+two
		for i, of := range parts {
			if i == 3 && (first.ReadAwait == nil || second.ReadAwait == nil) ||
				i == 2 && (first.QueueDepth == nil || second.QueueDepth == nil || both.QueueDepth == nil) {
				continue // random work may have time without operations, and the other way round, unlike a kernel
			}
			sum := of(&first)*one.Seconds() + of(&second)*two.Seconds()
			if total := of(&both) * whole.Seconds(); math.Abs(sum-total) > 1e-6*max(1, total) {
				t.Errorf("part %d: got %v and %v, want the sum %v", i, of(&first)*one.Seconds(), of(&second)*two.Seconds(), total)
			}
		}
	}
}

// Of two devices with one name the first counts.
func TestNameTwice(t *testing.T) {
	a, b := sample.Disk{Name: "sda", ReadIOs: 5}, sample.Disk{Name: "sda", ReadIOs: 500}
	if got := between(at(0, a, b), at(time.Second, a, b)).Disks; len(got) != 1 || got[0].ReadsPerSecond != 0 {
		t.Errorf("got %+v, want one disk", got)
	}
}

// A value that cannot be true is absent, and the better one stands in its place.
func TestImpossibleValues(t *testing.T) {
	before := sample.Disk{Name: "vda", Leaf: true, ReadIOs: 1000, ReadBytes: 4096000, ReadTicks: 90 * ms,
		IOTicks: 500 * time.Second, TimeInQueue: 95 * ms}
	after := before
	after.ReadIOs, after.ReadTicks, after.IOTicks, after.TimeInQueue = 1002, 91*ms, 501400*ms, 96*ms
	got := between(at(0, before), at(time.Second, after)).Disks[0]
	if !is(got.Utilization, 0.001) || !is(got.QueueDepth, 0.001) || !is(got.ReadAwait, 0.5) || !got.Inexact {
		t.Errorf("io_ticks of 140 %%: got %+v, want the queue, 0.001", got)
	}
	after = before
	after.ReadIOs = 3000
	got = between(at(0, before), at(time.Second, after)).Disks[0]
	if got.ReadAwait != nil || got.Await != nil || got.QueueDepth != nil || got.Utilization != nil ||
		!near(got.ReadsPerSecond, 2000) {
		t.Errorf("times that stand still: got %+v, want reads and no times", got)
	}
	text, err := json.Marshal(got)
	for _, key := range []string{"await", "queue_depth", "utilization"} {
		if err != nil || strings.Contains(string(text), key) {
			t.Errorf("got %s, %v; want no %s", text, err, key)
		}
	}
}

package ceiling

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

func disksAt(at time.Duration, disks ...sample.Disk) *sample.Sample {
	return &sample.Sample{At: sample.Stamp{Mono: at}, Disks: disks}
}

// learner normalizes readings, as the source does.
type learner struct {
	Learner
	normalizer sample.DiskNormalizer
}

func (l *learner) Learn(s *sample.Sample) {
	l.normalizer.Normalize(s)
	l.Learner.Learn(s)
}

func leaf(name string, read, written uint64) sample.Disk {
	return sample.Disk{Name: name, Leaf: true, ReadBytes: read, WriteBytes: written}
}

// A burst of one second has its exact throughput, wherever it lies between the readings.
func TestBurst(t *testing.T) {
	var l learner
	const tick = 100 * time.Millisecond
	var read, written uint64
	for i := range 100 {
		if i >= 33 && i < 43 {
			read += 10 << 20
		}
		if i >= 60 && i < 62 {
			written += 50 << 20
		}
		at := time.Hour + time.Duration(i)*tick
		l.Learn(disksAt(at, leaf("sda", read, written), sample.Disk{Name: "dm-0", ReadBytes: read}))
	}
	all := l.All()
	if len(all) != 1 || all[0].Disk != "sda" || math.Abs(all[0].Read-100<<20) > 1 || math.Abs(all[0].Write-100<<20) > 1 {
		t.Errorf("got %+v, want sda with 100 MiB/s each way", all)
	}
}

// With any readings, a ceiling is at most the true throughput of the fastest second, at least a third of it, and never
// falls while the disk is the same.
func TestCeilingBounds(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var l learner
		var at time.Duration
		var total uint64
		var fastest, before float64 // true throughput, over all intervals of one or two seconds
		type point struct {
			at    time.Duration
			total uint64
		}
		var points []point
		for range 300 {
			at += time.Duration(rng.Int64N(int64(200*time.Millisecond))) + time.Millisecond
			total += uint64(rng.Int64N(1 << 24))
			points = append(points, point{at, total})
			l.Learn(disksAt(at, leaf("sda", total, 0)))
			for _, p := range points {
				if length := at - p.at; length >= minInterval && length <= maxInterval {
					fastest = max(fastest, float64(total-p.total)/length.Seconds())
				}
			}
			var now float64
			if all := l.All(); len(all) > 0 {
				now = all[0].Read
			}
			if now < before || now > fastest*(1+1e-9) {
				t.Fatalf("seed %d: got %v after %v, want at most the true %v", seed, now, before, fastest)
			}
			before = now
		}
		if before < fastest/3 {
			t.Errorf("seed %d: got %v, want at least a third of the true %v", seed, before, fastest)
		}
	}
}

func TestImplausibleReadings(t *testing.T) {
	var l learner
	learned := func() float64 {
		if all := l.All(); len(all) > 0 {
			return all[0].Read
		}
		return 0
	}
	l.Learn(disksAt(10*time.Second, leaf("sda", 1<<40, 0)))
	l.Learn(disksAt(9*time.Second, leaf("sda", 1<<41, 0)))      // older
	l.Learn(disksAt(10*time.Second, leaf("sda", 1<<41, 0)))     // of the same moment
	l.Learn(disksAt(10900*time.Millisecond, leaf("sda", 0, 0))) // the counters restart
	if got := learned(); got != 0 {
		t.Errorf("got %v, want 0 after a restart", got)
	}
	l.Learn(disksAt(12*time.Second, leaf("sda", 1100<<20, 0)))
	if got := learned(); math.Abs(got-1000<<20) > 1 {
		t.Errorf("got %v, want 1000 MiB/s", got)
	}
	l.Learn(disksAt(20*time.Second, leaf("sda", 1<<50, 0))) // no reading for eight seconds
	l.Learn(disksAt(21*time.Second, leaf("sda", 1<<60, 0))) // a broken counter
	if got := learned(); math.Abs(got-1000<<20) > 1 {
		t.Errorf("got %v, want 1000 MiB/s", got)
	}
	kept := l.All()
	was := slices.Clone(kept)
	l.Learn(disksAt(22*time.Second, leaf("sda", 1<<60+2<<30, 0)))
	if got := learned(); math.Abs(got-2<<30) > 1 || !slices.Equal(kept, was) {
		t.Errorf("got %v and an earlier result of %v; want 2 GiB/s and %v", got, kept, was)
	}
	for i := range 20 { // it is replaced by another disk with its name
		l.Learn(disksAt(23*time.Second+time.Duration(i)*100*time.Millisecond, leaf("sdb", 0, 0)))
	}
	l.Learn(disksAt(26*time.Second, leaf("sda", 1<<62, 0)))
	if got := learned(); got != 0 {
		t.Errorf("got %v of the earlier disk, want 0", got)
	}
}

func TestDisksAreBounded(t *testing.T) {
	var l learner
	for i := range 3 * maxDisks {
		l.Learn(disksAt(time.Duration(i+1)*time.Second, leaf(string(rune(0x4e00+i)), uint64(i), 0)))
	}
	if len(l.disks) > maxDisks {
		t.Errorf("got %d disks, want at most %d", len(l.disks), maxDisks)
	}
}

func TestLearnAllocatesNothing(t *testing.T) {
	var l learner
	s := disksAt(0, leaf("sda", 0, 0), leaf("sdb", 0, 0))
	learn := func() {
		s.At.Mono += 100 * time.Millisecond
		s.Disks[0].ReadBytes += 1 << 20
		l.Learn(s)
	}
	learn()
	if n := testing.AllocsPerRun(1000, learn); n != 0 {
		t.Errorf("got %v allocations per reading, want 0", n)
	}
}

func BenchmarkLearn(b *testing.B) {
	var l learner
	s := disksAt(0)
	for i := range 10 {
		s.Disks = append(s.Disks, leaf(string(rune('a'+i)), 0, 0))
	}
	b.ReportAllocs()
	for b.Loop() {
		s.At.Mono += 100 * time.Millisecond
		l.Learn(s)
	}
}

// TestFullQueue: what a single reader gets from a disk is not all that the disk can do.
func TestFullQueue(t *testing.T) {
	var l learner
	var at, reading time.Duration
	var read uint64
	second := func(bytes uint64, inFlight float64) sample.Ceiling {
		at, read, reading = at+time.Second, read+bytes, reading+time.Duration(inFlight*float64(time.Second))
		d := leaf("sda", read, 0)
		d.ReadTicks = reading
		l.Learn(disksAt(at, d))
		if all := l.All(); len(all) == 1 {
			return all[0]
		}
		return sample.Ceiling{}
	}
	second(0, 0)
	if got := second(60, 0.9); got.Read != 60 || got.Full != 0 {
		t.Errorf("one reader: got %+v, want no full queue", got)
	}
	if got := second(140, 8); got.Read != 140 || got.Full != 140 {
		t.Errorf("eight readers: got %+v, want 140 bytes/s of both", got)
	}
	if got := second(150, 1); got.Read != 150 || got.Full != 140 {
		t.Errorf("one reader again: got %+v, want 150 and 140 bytes/s", got)
	}
	l.Know([]sample.Ceiling{{Disk: "sda", Read: 200}})
	if got := second(0, 0); got.Read != 200 || got.Full != 200 {
		t.Errorf("measured: got %+v, want 200 bytes/s of both", got)
	}
}

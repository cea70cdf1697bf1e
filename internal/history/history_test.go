package history

import (
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

const tick = 100 * time.Millisecond

func disk(at time.Duration, name string, bytes uint64) *sample.Sample {
	d := sample.Disk{Name: name, Leaf: true, ReadIOs: 1, ReadBytes: bytes}
	return &sample.Sample{At: sample.Stamp{Mono: at}, Disks: []sample.Disk{d}}
}

func newHistory(t testing.TB, tiers ...Tier) *History {
	t.Helper()
	config := Config{Tiers: tiers}
	if len(tiers) == 1 {
		config.MaxBytes = 64 << 20 // room for long rings
	}
	h, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func add(t testing.TB, h *History, s *sample.Sample) {
	t.Helper()
	if err := h.Append(s); err != nil {
		t.Fatal(err)
	}
}

func read(name string) Key { return Key{DiskReadBytes, name} }

func at(m time.Duration) Point { return Point{At: m} }

// Of two devices with one name the first counts. A normalizer marks the second one as reset in every reading.
func TestDisksNameTwice(t *testing.T) {
	h := newHistory(t)
	for i := range 4 {
		s := disk(time.Duration(i+1)*tick, "sda", uint64(i)<<20)
		second := s.Disks[0]
		second.Leaf, second.Reset = false, s.At
		s.Disks = append(s.Disks, second)
		add(t, h, s)
	}
	if d, ok := h.Between(Key{DisksBytes, ""}, at(tick), at(4*tick)); !ok || d.Value != 3<<20 {
		t.Errorf("got %+v, %v; want %d bytes", d, ok, 3<<20)
	}
}

// truth is a counter with known increments, and so with an exact growth over any interval.
type truth struct {
	when   []time.Duration
	amount []uint64
}

func (tr *truth) count(until time.Duration) (sum uint64) {
	for i, w := range tr.when {
		if w <= until {
			sum += tr.amount[i]
		}
	}
	return sum
}

func FuzzBetween(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint16(200), uint16(1000), uint16(5000), uint16(9000))
	}
	f.Fuzz(func(t *testing.T, seed uint64, rows, x, y, z uint16) {
		rng := rand.New(rand.NewPCG(seed, 1))
		h := newHistory(t, Tier{0, 50}, Tier{time.Second, 50}, Tier{10 * time.Second, 50})
		tr := &truth{}
		count := 2 + int(rows)%500
		var now time.Duration
		for range count {
			from := now
			now += tick + time.Duration(rng.Int64N(int64(tick/2)))
			for range rng.IntN(4) {
				tr.when = append(tr.when, from+1+time.Duration(rng.Int64N(int64(now-from))))
				tr.amount = append(tr.amount, rng.Uint64N(1<<20))
			}
			add(t, h, disk(now, "sda", 1000+tr.count(now)))
		}
		p := make([]time.Duration, 3)
		for i, share := range []uint16{x, y, z} {
			p[i] = time.Duration(float64(now) * float64(share) / math.MaxUint16)
		}
		a, b, c := min(p[0], p[1], p[2]), p[0]+p[1]+p[2]-min(p[0], p[1], p[2])-max(p[0], p[1], p[2]), max(p[0], p[1], p[2])
		ab, ok := h.Between(read("sda"), at(a), at(b))
		if !ok {
			return // older than the last tier
		}
		bc, okBC := h.Between(read("sda"), at(b), at(c))
		ac, okAC := h.Between(read("sda"), at(a), at(c))
		if !okBC || !okAC {
			t.Fatalf("[%v,%v]: got no result, want one as for [%v,%v]", b, c, a, b)
		}
		for _, d := range []struct {
			Delta
			from, to time.Duration
		}{{ab, a, b}, {bc, b, c}, {ac, a, c}} {
			want := float64(tr.count(d.to) - tr.count(d.from))
			if d.Low > want || d.High < want || d.Value < d.Low-1e-6 || d.Value > d.High+1e-6 || d.Reset {
				t.Fatalf("[%v,%v]: got %+v, want bounds around %v", d.from, d.to, d.Delta, want)
			}
		}
		if sum := ab.Value + bc.Value; math.Abs(sum-ac.Value) > 1e-9*math.Max(1, ac.Value) {
			t.Fatalf("got %v + %v, want the sum %v", ab.Value, bc.Value, ac.Value)
		}
	})
}

// FuzzReset uses arbitrary counters: the growth is never negative and never more than the readings show.
func FuzzReset(f *testing.F) {
	f.Add(uint64(10), uint64(5), uint64(20), uint64(0))
	f.Add(uint64(math.MaxUint64), uint64(0), uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b, c, d uint64) {
		h := newHistory(t)
		var normalizer sample.DiskNormalizer
		backwards := false
		var sum float64
		values := []uint64{a, b, c, d}
		for i, v := range values {
			s := disk(time.Duration(i+1)*tick, "sda", v)
			normalizer.Normalize(s)
			add(t, h, s)
			if i > 0 && v < values[i-1] {
				backwards = true
				sum += float64(v)
			} else if i > 0 {
				sum += float64(v) - float64(values[i-1])
			}
		}
		got, ok := h.Between(read("sda"), at(tick), at(4*tick))
		if !ok || got.Value < 0 || got.Reset != backwards || math.Abs(got.Value-sum) > 1e-9*sum {
			t.Fatalf("%v: got %+v, want %v and reset %v", values, got, sum, backwards)
		}
	})
}

func TestGrowth(t *testing.T) {
	for _, c := range []struct {
		name      string
		from, to  float64
		restarted bool
		grown     float64
		reset     bool
	}{
		{"forward", 5, 8, false, 3, false},
		{"restart seen by the source", 5, 8, true, 8, true},
		{"restart of another counter", 1000, 2, false, 2, true},
		{"not a number", 1, math.NaN(), false, 0, true},
		{"negative", 1, -5, false, 0, true},
	} {
		grown, reset := growth(c.from, c.to, c.restarted)
		if grown != c.grown || reset != c.reset {
			t.Errorf("%s: got %v, reset %v; want %v, reset %v", c.name, grown, reset, c.grown, c.reset)
		}
	}
}

func TestEdgesAreExact(t *testing.T) {
	h := newHistory(t)
	add(t, h, disk(tick, "sda", 100))
	var from, to Edge
	h.Observe(&from, disk(tick+30*time.Millisecond, "sda", 130))
	add(t, h, disk(2*tick, "sda", 1100))
	h.Observe(&to, disk(2*tick+1, "sda", 1101))
	got, ok := h.Between(read("sda"), Point{At: tick + 30*time.Millisecond, Edge: &from}, Point{At: 2*tick + 1, Edge: &to})
	if want := (Delta{971, 971, 971, false}); !ok || got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	steps := h.Steps(read("sda"), Point{At: tick + 30*time.Millisecond, Edge: &from}, Point{At: 2*tick + 1, Edge: &to})
	var sum float64
	for _, s := range steps {
		sum += s.Grown
	}
	if len(steps) != 2 || sum != 971 {
		t.Fatalf("got steps %+v, want two with a sum of 971", steps)
	}
}

func TestDeviceThatComesAndGoes(t *testing.T) {
	h := newHistory(t)
	both := disk(tick, "sda", 10)
	add(t, h, both)
	two := disk(2*tick, "sda", 20)
	two.Disks = append(two.Disks, sample.Disk{Name: "sdb", Leaf: true, ReadIOs: 1, ReadBytes: 5})
	add(t, h, two)
	two.At.Mono, two.Disks[1].ReadBytes = 3*tick, 50
	add(t, h, two)
	var end Edge
	h.Observe(&end, disk(4*tick, "sda", 30)) // sdb was pulled out
	got, ok := h.Between(read("sdb"), at(tick), Point{At: 4 * tick, Edge: &end})
	if !ok || got.Value != 50 || !got.Reset {
		t.Fatalf("disk removed in the window: got %+v, %v; want 50 and a reset", got, ok)
	}
	add(t, h, disk(4*tick, "sda", 30))
	if ids := h.IDs(DiskReadIOs); len(ids) != 1 {
		t.Fatalf("got disks %v, want sda alone", ids)
	}
	if got, ok := h.Between(read("sdb"), at(tick), at(4*tick)); !ok || got.Value != 50 || !got.Reset {
		t.Fatalf("after its removal: got %+v, %v; want 50 and a reset", got, ok)
	}
}

func TestThinningKeepsOldDifferencesExact(t *testing.T) {
	h := newHistory(t, Tier{0, 100}, Tier{time.Second, 100}, Tier{10 * time.Second, 100})
	for i := range 9_000 {
		add(t, h, disk(time.Duration(i+1)*tick, "sda", uint64(i)*7))
	}
	for _, c := range []struct {
		start, end time.Duration
		width      float64 // of the grid at both ends, in bytes
	}{
		{893 * time.Second, 895 * time.Second, 2 * 7},
		{810 * time.Second, 850 * time.Second, 2 * 70},
		{5 * time.Second, 500 * time.Second, 2 * 700},
	} {
		got, ok := h.Between(read("sda"), at(c.start), at(c.end))
		want := 70 * (c.end - c.start).Seconds()
		if !ok || got.Low > want || got.High < want || got.High-got.Low > c.width || math.Abs(got.Value-want) > 1e-6 {
			t.Errorf("[%v,%v]: got %+v, %v; want %v within %v", c.start, c.end, got, ok, want, c.width)
		}
	}
	if _, ok := h.Between(read("sda"), at(0), at(time.Second)); ok {
		t.Error("before the first reading: got a result, want none")
	}
}

func TestMemoryIsBounded(t *testing.T) {
	h := newHistory(t)
	s := &sample.Sample{At: sample.Stamp{Mono: tick}}
	for i := range 500 {
		s.Disks = append(s.Disks, sample.Disk{Name: "sd" + strconv.Itoa(i), Leaf: true, ReadIOs: 1})
	}
	if err := h.Append(s); !errors.Is(err, ErrFull) {
		t.Fatalf("500 disks: got error %v, want ErrFull", err)
	}
	if h.Bytes() > DefaultMaxBytes {
		t.Fatalf("got %d bytes, want at most %d", h.Bytes(), DefaultMaxBytes)
	}
	if _, ok := h.Between(read("sd0"), at(tick), at(tick)); !ok {
		t.Fatal("first disk: got no result, want one")
	}
	// Devices that are gone make room.
	add(t, h, disk(2*tick, "sd0", 1))
	add(t, h, disk(3*tick, "new", 1))
	if len(h.IDs(DiskReadIOs)) != 1 || h.Bytes() > DefaultMaxBytes {
		t.Fatalf("got disks %v, %d bytes; want one, at most %d bytes", h.IDs(DiskReadIOs), h.Bytes(), DefaultMaxBytes)
	}
}

// Eight disks, eight GPUs and their ledgers for the machine and for a job fit together.
func TestLargeMachine(t *testing.T) {
	h := newHistory(t)
	at := sample.Stamp{Mono: tick}
	s := []*sample.Sample{
		{At: at},
		{At: at, Pressures: []sample.Pressure{{Resource: sample.IO}, {Resource: sample.CPU}, {Resource: sample.IO, Scope: "/job"}, {Resource: sample.CPU, Scope: "/job"}}},
		{At: at, Cores: []sample.Core{{Name: "cpu0"}}},
		{At: at, Jobs: []sample.Job{{ID: "job"}}},
		{At: at},
	}
	var ledgers []LedgerTotals
	for i := range 8 {
		s[0].Disks = append(s[0].Disks, sample.Disk{Name: "sd" + strconv.Itoa(i), Leaf: true, ReadIOs: 1})
		s[4].GPUs = append(s[4].GPUs, sample.GPU{ID: strconv.Itoa(i)})
		id := "\x00" + strconv.Itoa(i)
		ledgers = append(ledgers, LedgerTotals{ID: id}, LedgerTotals{ID: "job" + id, HasGain: true})
	}
	for _, reading := range s {
		add(t, h, reading)
	}
	if err := h.AppendLedgers(tick, ledgers); err != nil {
		t.Fatal(err)
	}
	if h.Bytes() > DefaultMaxBytes || len(h.IDs(DiskReadIOs)) != 8 || len(h.IDs(LedgerBusy)) != 16 {
		t.Errorf("%d bytes, %d disks, %d ledgers", h.Bytes(), len(h.IDs(DiskReadIOs)), len(h.IDs(LedgerBusy)))
	}
}

func TestRowsAreOrdered(t *testing.T) {
	h := newHistory(t)
	add(t, h, disk(2*tick, "sda", 5))
	add(t, h, disk(tick, "sda", 50)) // late: ignored
	add(t, h, disk(2*tick, "sda", 50))
	add(t, h, disk(3*tick, "sda", 6))
	if got, _ := h.Between(read("sda"), at(2*tick), at(3*tick)); got.Value != 1 || got.Reset {
		t.Fatalf("got %+v, want 1 without a reset", got)
	}
}

func TestBusiestCore(t *testing.T) {
	h := newHistory(t)
	cores := func(m, a, b time.Duration) *sample.Sample {
		cores := []sample.Core{{Name: "cpu0", User: a}, {Name: "cpu1", System: b}}
		return &sample.Sample{At: sample.Stamp{Mono: m}, Cores: cores}
	}
	add(t, h, cores(time.Second, 0, 0))
	add(t, h, cores(2*time.Second, time.Second, 0))
	add(t, h, cores(3*time.Second, time.Second, time.Second))
	got, ok := h.Between(Key{HostBusiestCore, ""}, at(time.Second), at(3*time.Second))
	if !ok || got.Value != 2 {
		t.Fatalf("got %+v, want 2 s", got)
	}
}

func fill(t testing.TB, h *History, rows int) *sample.Sample {
	s := &sample.Sample{}
	for i := range 10 {
		s.Disks = append(s.Disks, sample.Disk{Name: "sd" + strconv.Itoa(i), Leaf: true, ReadIOs: 1})
	}
	for i := range rows {
		s.At.Mono = time.Duration(i+1) * tick
		s.Disks[3].ReadBytes = uint64(i) * 4096
		if err := h.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestAppendAllocatesNothing(t *testing.T) {
	h := newHistory(t, Tier{0, 1000})
	s := fill(t, h, 10)
	if n := testing.AllocsPerRun(100, func() {
		s.At.Mono += tick
		_ = h.Append(s)
	}); n != 0 {
		t.Fatalf("got %v allocations per tick, want 0", n)
	}
}

func BenchmarkAppend10Disks(b *testing.B) {
	h := newHistory(b, Tier{0, 36_000})
	s := fill(b, h, 36_000)
	b.ReportAllocs()
	for b.Loop() {
		s.At.Mono += tick
		_ = h.Append(s)
	}
}

func BenchmarkBetween36000Rows(b *testing.B) {
	h := newHistory(b, Tier{0, 36_000})
	fill(b, h, 36_000)
	rng := rand.New(rand.NewPCG(1, 2))
	var points [1024]time.Duration
	for i := range points {
		points[i] = tick + time.Duration(rng.Int64N(int64(35_000*tick)))
	}
	key := read("sd3")
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		x, y := points[i%1024], points[(i+1)%1024]
		if _, ok := h.Between(key, at(min(x, y)), at(max(x, y))); !ok {
			b.Fatal("got no result, want one")
		}
		i++
	}
}

// A device that becomes a leaf has counted before.
func TestNewLeaf(t *testing.T) {
	h := newHistory(t)
	reads := func(i int, leaf bool, n uint64) {
		s := disk(time.Duration(i)*tick, "loop0", n)
		s.Disks[0].Leaf = leaf
		add(t, h, s)
	}
	reads(1, false, 1000)
	reads(2, false, 1001)
	reads(3, true, 1002)
	reads(4, true, 1005)
	d, ok := h.Between(read("loop0"), at(tick), at(4*tick))
	if ok && (d.Value > 5 || !d.Reset) {
		t.Errorf("got %+v, want at most 5 and a reset", d)
	}
	if d, ok := h.Between(read("loop0"), at(3*tick), at(4*tick)); !ok || d.Value != 3 || d.Reset {
		t.Errorf("got %+v, want 3", d)
	}
}

// Columns for a minute are exact for that minute, and constant before.
func TestBriefColumns(t *testing.T) {
	h := newHistory(t)
	const last = 7000
	for i := 1; i <= last; i++ {
		m := time.Duration(i) * tick
		job := sample.Job{ID: "job", ReadBytes: uint64(i)}
		add(t, h, &sample.Sample{At: sample.Stamp{Mono: m}, Jobs: []sample.Job{job},
			Peers: []sample.Peer{{Job: "job", Received: uint64(i)}}})
	}
	received := Key{PeerReceived, PeerID(&sample.Peer{Job: "job"})}
	between := func(key Key, from, to int) float64 {
		d, ok := h.Between(key, at(time.Duration(from)*tick), at(time.Duration(to)*tick))
		if !ok {
			t.Fatalf("%v from reading %d to %d: it is not known", key, from, to)
		}
		return d.Value
	}
	for back := range 599 {
		if got := between(received, last-back-1, last-back); got != 1 {
			t.Fatalf("%d readings back: got %v, want 1", back, got)
		}
	}
	if got := between(received, last-4000, last-3000); got != 0 {
		t.Errorf("five minutes ago: got %v, want none", got)
	}
}

// Levels returns what Level returns for each quantity, for devices that came, went and have edges.
func TestLevels(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	h := newHistory(t, Tier{0, 200}, Tier{time.Second, 100})
	var edges []Point
	for i := range 1500 {
		now := time.Duration(i+1) * tick
		s := &sample.Sample{At: sample.Stamp{Mono: now}}
		for j, id := range []string{"stays", "comes", "goes"} {
			if j == 1 && i < 1300 || j == 2 && i > 1400 {
				continue
			}
			n := uint64(i * (j + 2))
			s.Jobs = append(s.Jobs, sample.Job{ID: id, CPUTime: now / 3, ReadBytes: n, WriteBytes: 2 * n, ReadChars: 3 * n})
		}
		add(t, h, s)
		if i%100 == 99 {
			e := &Edge{}
			h.Observe(e, s)
			edges = append(edges, Point{At: now, Edge: e})
		}
	}
	points := edges
	for range 2000 {
		points = append(points, at(time.Duration(random.Int64N(int64(1510*tick)))))
	}
	for _, p := range points {
		for _, id := range []string{"stays", "comes", "goes", "unknown"} {
			for _, first := range []Series{JobCPUTime, PeerReceived} {
				all := make([]float64, first.kind().columns())
				known := h.Levels(first, id, p, all)
				for i, got := range all {
					want, ok := h.Level(Key{first + Series(i), id}, p)
					if !ok {
						want = 0
					}
					if got != want || i == 0 && known != ok {
						t.Fatalf("%s %d at %v: got %v, %v, want %v, %v", id, int(first)+i, p.At, got, known, want, ok)
					}
				}
			}
		}
	}
}

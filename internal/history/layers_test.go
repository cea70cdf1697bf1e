package history

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

func layer(name string, reads uint64) sample.Disk {
	took := time.Duration(reads) * time.Millisecond
	return sample.Disk{Name: name, Layer: true, ReadIOs: reads, ReadBytes: reads << 12, ReadTicks: took}
}

func layers(at time.Duration, disks ...sample.Disk) *sample.Sample {
	return &sample.Sample{At: sample.Stamp{Mono: at}, Disks: disks}
}

// A layer costs nothing until it works. From then on its growth is exact, and no sum over disks has it.
func TestLayers(t *testing.T) {
	h := newHistory(t)
	empty := h.Bytes()
	leaf := sample.Disk{Name: "sda", Leaf: true, ReadIOs: 1}
	add(t, h, layers(tick, leaf, layer("dm-0", 70), layer("loop3", 9), sample.Disk{Name: "sda1", ReadIOs: 3}))
	one := h.size(kindDisk, 3) + h.size(kindDisks, 3)
	if got := h.Bytes() - empty; got != one || len(h.IDs(LayerReadIOs)) != 0 {
		t.Fatalf("layers at rest: got %d bytes and layers %v, want %d and none", got, h.IDs(LayerReadIOs), one)
	}
	start := at(2 * tick)
	edge := layers(start.At, leaf, layer("dm-0", 70))
	start.Edge = &Edge{}
	h.Observe(start.Edge, edge)
	for i := range 20 {
		add(t, h, layers(time.Duration(i+3)*tick, leaf, layer("dm-0", 71+uint64(i)), layer("loop3", 9)))
	}
	if got := h.IDs(LayerReadIOs); len(got) != 1 || got[0] != "dm-0" {
		t.Errorf("got layers %v, want dm-0", got)
	}
	for _, from := range []Point{start, at(2 * tick), at(tick)} {
		if d, ok := h.Between(Key{LayerReadBytes, "dm-0"}, from, at(22*tick)); !ok || d.Value != 20<<12 || d.Reset {
			t.Errorf("since %v: got %+v, %v; want %d bytes without a reset", from.At, d, ok, 20<<12)
		}
	}
	if d, ok := h.Between(Key{DisksBytes, ""}, at(tick), at(22*tick)); !ok || d.Value != 0 {
		t.Errorf("of all disks: got %+v, %v; want 0", d, ok)
	}
}

// A new layer that replaces another has the first of its counters as base: what it did before is not known.
func TestLayerThatRestarts(t *testing.T) {
	h := newHistory(t)
	add(t, h, layers(tick, layer("dm-0", 70)))
	second := layer("dm-0", 5)
	second.Reset.Mono = tick
	add(t, h, layers(2*tick, second))
	second.ReadIOs++
	add(t, h, layers(3*tick, second))
	if d, ok := h.Between(Key{LayerReadIOs, "dm-0"}, at(2*tick), at(3*tick)); !ok || d.Value != 1 {
		t.Errorf("got %+v, %v; want 1", d, ok)
	}
}

// Layers take what disks may take, and give it back: no disk, GPU or ledger is refused because of them.
func TestLayersGiveWay(t *testing.T) {
	h := newHistory(t)
	reading := func(i int, leaves int) *sample.Sample {
		s := layers(time.Duration(i) * tick)
		for k := range leaves {
			s.Disks = append(s.Disks, sample.Disk{Name: "sd" + strconv.Itoa(k), Leaf: true, ReadIOs: uint64(i)})
		}
		for k := range 40 {
			s.Disks = append(s.Disks, layer("dm-"+strconv.Itoa(k), uint64(i)))
		}
		return s
	}
	add(t, h, reading(1, 1))
	add(t, h, reading(2, 1))
	many := len(h.IDs(LayerReadIOs))
	if disks := h.diskBytes + h.layerBytes; many < 4 || disks > DefaultMaxBytes/2 {
		t.Fatalf("got %d layers, %d bytes of disks; want some, at most %d bytes", many, disks, DefaultMaxBytes/2)
	}
	add(t, h, reading(3, 8))
	if got := len(h.IDs(DiskReadIOs)); got != 8 {
		t.Errorf("got %d disks, want 8", got)
	}
	var gpus sample.Sample
	gpus.At.Mono = 3 * tick
	var ledgers []LedgerTotals
	for i := range 8 {
		id := strconv.Itoa(i)
		gpus.GPUs = append(gpus.GPUs, sample.GPU{ID: id})
		gpus.GPUDetails = append(gpus.GPUDetails, sample.GPUDetail{GPU: id, At: 3 * tick})
		ledgers = append(ledgers, LedgerTotals{ID: id}, LedgerTotals{ID: "job" + id, HasGain: true})
	}
	add(t, h, &gpus)
	if err := h.AppendLedgers(tick, ledgers); err != nil {
		t.Fatal(err)
	}
	if got := len(h.IDs(LayerReadIOs)); got >= many || h.Bytes() > DefaultMaxBytes {
		t.Errorf("got %d layers of %d and %d bytes, want fewer, and at most %d bytes", got, many, h.Bytes(), DefaultMaxBytes)
	}
}

// Whatever layers come and go: the growth of one that works all the time is exact, and the memory is bounded. One that
// rests gives its place to one that works.
func TestLayersAtRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	h := newHistory(t)
	counts := make([]uint64, 64)
	for i := range 3000 {
		for k := range counts {
			if k == 0 || random.IntN(200) == 0 {
				counts[k]++
			}
		}
		s := layers(time.Duration(i+1) * tick)
		for k, n := range counts {
			if k == 0 || random.IntN(50) > 0 {
				s.Disks = append(s.Disks, layer("dm-"+strconv.Itoa(k), n+5))
			}
		}
		add(t, h, s)
		if h.diskBytes+h.layerBytes > DefaultMaxBytes/2 || h.Bytes() > DefaultMaxBytes {
			t.Fatalf("reading %d: got %d bytes of disks, %d in all", i, h.diskBytes+h.layerBytes, h.Bytes())
		}
	}
	if d, ok := h.Between(Key{LayerReadIOs, "dm-0"}, at(tick), at(3000*tick)); !ok || d.Value != 2999 || d.Reset {
		t.Errorf("got %+v, %v; want 2999 without a reset", d, ok)
	}
	rest := layers(3000*tick + 2*layerRest)
	for k, n := range counts {
		rest.Disks = append(rest.Disks, layer("dm-"+strconv.Itoa(k), n+5))
	}
	add(t, h, rest)
	next := layers(rest.At.Mono + tick)
	for range 12 {
		next.Disks = append(next.Disks, layer("new"+strconv.Itoa(len(next.Disks)), 1))
	}
	add(t, h, next)
	next.At.Mono += tick
	for i := range next.Disks {
		next.Disks[i].ReadIOs++
	}
	add(t, h, next)
	if _, ok := h.Between(Key{LayerReadIOs, "new0"}, at(next.At.Mono-tick), at(next.At.Mono)); !ok {
		t.Error("got no place for a layer that works, want that of one that rests")
	}
}

func TestLayersAllocateNothing(t *testing.T) {
	h := newHistory(t)
	s := layers(0, layer("dm-0", 1), layer("dm-1", 1))
	next := func() {
		s.At.Mono += tick
		s.Disks[0].ReadIOs++
		if err := h.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	next()
	next()
	if got := testing.AllocsPerRun(100, next); got > 0 {
		t.Errorf("got %v allocations for each reading, want none", got)
	}
}

func BenchmarkAppend10Layers(b *testing.B) {
	h := newHistory(b)
	s := layers(0)
	for i := range 10 {
		s.Disks = append(s.Disks, layer("dm-"+strconv.Itoa(i), 1))
	}
	for b.Loop() {
		s.At.Mono += tick
		for i := range s.Disks {
			s.Disks[i].ReadIOs++
		}
		if err := h.Append(s); err != nil {
			b.Fatal(err)
		}
	}
}

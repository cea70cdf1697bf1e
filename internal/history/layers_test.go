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

// Whatever layers come and go: the growth of one that works all the time is exact, and the memory is bounded.
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
		if h.Bytes() > DefaultMaxBytes {
			t.Fatalf("reading %d: got %d bytes, want at most %d", i, h.Bytes(), DefaultMaxBytes)
		}
	}
	if d, ok := h.Between(Key{LayerReadIOs, "dm-0"}, at(tick), at(3000*tick)); !ok || d.Value != 2999 || d.Reset {
		t.Errorf("got %+v, %v; want 2999 without a reset", d, ok)
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

package sample

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const wrapped = diskTimeWrap

// normalized passes readings of one disk, a second apart, through one normalizer.
func normalized(n *DiskNormalizer, disks ...Disk) []Disk {
	var out []Disk
	for i, d := range disks {
		s := Sample{At: Stamp{Mono: time.Duration(i+1) * time.Second}, Disks: []Disk{d}}
		n.Normalize(&s)
		out = append(out, s.Disks[0])
	}
	return out
}

func TestNormalizeRemovesWraps(t *testing.T) {
	var raw []Disk
	for i, weighted := range []time.Duration{wrapped - time.Second, time.Second, wrapped - time.Second, 0} {
		raw = append(raw, Disk{ReadIOs: uint64(i), TimeInQueue: weighted})
	}
	want := []time.Duration{wrapped - time.Second, wrapped + time.Second, 2*wrapped - time.Second, 2 * wrapped}
	for i, d := range normalized(new(DiskNormalizer), raw...) {
		if d.TimeInQueue != want[i] || d.Reset.Mono != 0 {
			t.Errorf("reading %d: got %v, reset at %v; want %v without a reset", i, d.TimeInQueue, d.Reset.Mono, want[i])
		}
	}
}

func TestNormalizeMarksRestarts(t *testing.T) {
	used := Disk{ReadIOs: 5, ReadBytes: 4096, ReadTicks: time.Second}
	for name, change := range map[string]func(d *Disk){
		"fewer reads": func(d *Disk) { d.ReadIOs = 1 },
		"fewer bytes": func(d *Disk) { d.ReadBytes = 0 },
		"less time":   func(d *Disk) { d.ReadTicks = 0 },
	} {
		after := used
		change(&after)
		got := normalized(new(DiskNormalizer), used, after, after)
		for i, want := range []time.Duration{0, time.Second, time.Second} {
			if got[i].Reset.Mono != want {
				t.Errorf("%s, reading %d: got a reset at %v, want %v", name, i, got[i].Reset.Mono, want)
			}
		}
		if _, ok := got[1].Since(&got[0], time.Second); ok {
			t.Errorf("%s: got a difference across the restart, want none", name)
		}
	}
}

// A reading without the disk does not interrupt its counters. Two disks with one name have no difference.
func TestNormalizeMissingAndDuplicateDisks(t *testing.T) {
	var n DiskNormalizer
	read := func(second int, disks ...Disk) []Disk {
		s := Sample{At: Stamp{Mono: time.Duration(second) * time.Second}, Disks: disks}
		n.Normalize(&s)
		return s.Disks
	}
	a, b := Disk{Name: "a", ReadIOs: 10, WriteTicks: wrapped - 1}, Disk{Name: "b"}
	read(1, a, b)
	read(2, b)
	a.ReadIOs, a.WriteTicks = 11, 0
	if got := read(3, a, b)[0]; got.Reset.Mono != 0 || got.WriteTicks != wrapped {
		t.Errorf("after a missing reading: got %v, reset at %v; want %v without a reset",
			got.WriteTicks, got.Reset.Mono, wrapped)
	}
	first := slices.Clone(read(4, a, a))
	second := read(5, a, a)
	if !second[0].Continues(&first[0]) || second[1].Continues(&first[1]) {
		t.Errorf("two disks with one name: got resets at %v, then %v", first, second)
	}
	older := a
	older.WriteTicks = 5 * time.Millisecond
	if got := read(2, older)[0]; got.WriteTicks != wrapped+older.WriteTicks || got.Reset.Mono != 0 {
		t.Errorf("an older reading: got %v, want %v", got.WriteTicks, wrapped+older.WriteTicks)
	}
}

func TestNormalizeIsBounded(t *testing.T) {
	var n DiskNormalizer
	for i := range 3 * maxAbsentDisks {
		n.Normalize(&Sample{At: Stamp{Mono: time.Duration(i + 1)}, Disks: []Disk{{Name: string(rune(0x4e00 + i))}}})
	}
	if len(n.disks) > maxAbsentDisks+1 {
		t.Errorf("got %d disks, want at most %d", len(n.disks), maxAbsentDisks+1)
	}
}

func TestNormalizeAllocatesNothing(t *testing.T) {
	var n DiskNormalizer
	s := Sample{Disks: []Disk{{Name: "a"}, {Name: "b"}}}
	if got := testing.AllocsPerRun(100, func() {
		s.At.Mono += time.Second
		n.Normalize(&s)
	}); got != 0 {
		t.Errorf("got %v allocations for each reading, want 0", got)
	}
}

// Normalized readings never fall without a reset, and normalizing them again changes nothing.
func FuzzNormalize(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 1))
		var raw []Disk
		var d Disk
		for range 50 {
			if random.IntN(10) == 0 {
				d = Disk{}
			}
			d.ReadIOs += random.Uint64N(10)
			d.TimeInQueue = (d.TimeInQueue + time.Duration(random.Int64N(int64(wrapped/4)))) % wrapped
			raw = append(raw, d)
		}
		once := normalized(new(DiskNormalizer), raw...)
		for i := range once[1:] {
			before, now := &once[i], &once[i+1]
			if delta, ok := now.Since(before, time.Second); ok && (now.ReadIOs < before.ReadIOs || delta.TimeInQueue < 0) {
				t.Errorf("reading %d: got a counter that fell without a reset: %+v after %+v", i+1, now, before)
			}
		}
		if twice := normalized(new(DiskNormalizer), once...); !slices.Equal(twice, once) {
			t.Errorf("normalized twice: got %+v, want %+v", twice, once)
		}
	})
}

package window

import (
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/sample"
)

// No process can have fetched more from disks than these read, except from a network.
func TestReadersAboveTheDisksBytes(t *testing.T) {
	all := []Reader{{PID: 1, Bytes: 500}, {PID: 2, Bytes: 110}, {PID: 3, Bytes: 5}}
	f := Facts{Disks: []DiskUse{{ReadBytes: 60}, {ReadBytes: 40}}}
	v := &view{machine: &Machine{Leaves: []string{"sda"}, Readers: all}}
	if got := v.readers(&f); !slices.Equal(got, all[1:]) {
		t.Errorf("%v, want %v", got, all[1:])
	}
	f.Mounts = []sample.Mount{{Point: "/nfs"}}
	if got := v.readers(&f); !slices.Equal(got, all) {
		t.Errorf("with a network file system: %v, want %v", got, all)
	}
	f.Mounts, v.machine.Leaves = nil, nil
	if got := v.readers(&f); !slices.Equal(got, all) {
		t.Errorf("without a disk: %v, want %v", got, all)
	}
}

// A load knows what left the page cache since the last one, and who moved most in between.
func TestLoadKnowsWhatWasBefore(t *testing.T) {
	h, err := history.New(history.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		seen          Seen
		wantEvicted   uint64
		wantMoverPIDs []int
	}{
		"evicted":          {Seen{Size: 100, HasCached: true, Cached: 10, Before: 90}, 80, []int{8}},
		"still there":      {Seen{Size: 100, HasCached: true, Cached: 90, Before: 90}, 0, nil},
		"not known before": {Seen{Size: 100, HasCached: true, Cached: 10}, 0, nil},
		"not known now":    {Seen{Size: 100, Before: 90}, 0, nil},
	} {
		machine := Machine{Readers: []Reader{{PID: 7, Bytes: 1}, {PID: 8, Bytes: 200, Before: true}}}
		r := &Report{Window: Window{Kind: ModelLoad, Seen: c.seen}}
		r.Load = (&view{&r.Window, h, &machine}).load(&r.Facts)
		var pids []int
		for _, x := range r.Load.Movers {
			pids = append(pids, x.PID)
		}
		if r.Load.Evicted != c.wantEvicted || !slices.Equal(pids, c.wantMoverPIDs) {
			t.Errorf("%s: got %d bytes by %v, want %d by %v", name, r.Load.Evicted, pids, c.wantEvicted, c.wantMoverPIDs)
		}
		if len(r.Load.Readers) != 1 || r.Load.Readers[0].PID != 7 {
			t.Errorf("%s: got readers %+v, want that of the load alone", name, r.Load.Readers)
		}
	}
}

// ZFS has a cache of its own: what it has is neither in the page cache nor among the bytes that were not read.
func TestCacheOfZFSIsUnknown(t *testing.T) {
	h, err := history.New(history.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for device, known := range map[string]bool{ZFS: false, "btrfs": true, "nfs4": true, "ssd": true} {
		r := &Report{Window: Window{Kind: ModelLoad, Seen: Seen{Size: 100, HasCached: true, Device: device}}}
		if l := (&view{&r.Window, h, &Machine{}}).load(&r.Facts); l.HasHit != known || l.Hit != 0 || l.Size != 100 {
			t.Errorf("%s: got %+v, want its share from memory known: %v", device, l, known)
		}
	}
}

// In the time before a load in which its disk did nothing, the model could have been read ahead.
func TestIdleAhead(t *testing.T) {
	for name, c := range map[string]struct {
		busyUntil, followed time.Duration // of 40 s before the load
		under               []string
		want                time.Duration
	}{
		"idle":                {0, 0, []string{"sda"}, 30 * time.Second},
		"worked until 10 s":   {30 * time.Second, 0, []string{"sda"}, 7500 * time.Millisecond},
		"worked until it":     {40 * time.Second, 0, []string{"sda"}, 0},
		"followed for 5 s":    {0, 35 * time.Second, []string{"sda"}, 3750 * time.Millisecond},
		"followed for 2 s":    {0, 38 * time.Second, []string{"sda"}, 1875 * time.Millisecond},
		"followed for 1 s":    {0, 39 * time.Second, []string{"sda"}, 0},
		"worked for a tenth":  {12800 * time.Millisecond, 0, []string{"sda"}, 30 * time.Second},
		"or a little more":    {13200 * time.Millisecond, 0, []string{"sda"}, 15 * time.Second},
		"on no disk":          {0, 0, nil, 0},
		"on one that is gone": {0, 0, []string{"sda", "sdx"}, 0},
	} {
		h, err := history.New(history.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for at := time.Duration(0); at <= 40*time.Second; at += 100 * time.Millisecond {
			stamp := sample.Stamp{Mono: at + time.Second}
			disk := sample.Disk{Name: "sda", Leaf: true, ReadIOs: 1, IOTicks: min(at, c.busyUntil)}
			all := []*sample.Sample{{At: stamp, Disks: []sample.Disk{disk}}}
			if at >= c.followed {
				all = append(all, &sample.Sample{At: stamp, Jobs: []sample.Job{{ID: "j", HasIO: true}}})
			}
			for _, s := range all {
				if err := h.Append(s); err != nil {
					t.Fatal(err)
				}
			}
		}
		w := &Window{Start: sample.Stamp{Mono: 41 * time.Second}, Seen: Seen{Under: c.under}}
		v := &view{w, h, &Machine{Target: ledger.Target{Job: "j"}}}
		if got := v.idleAhead(); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// A disk with io_ticks of 100 %, whose operations took nearly no time, has next to nothing to do.
// One without times is not known to.
func TestIdleAheadOfImpossibleTimes(t *testing.T) {
	for name, c := range map[string]struct {
		reads      uint64        // a second
		took, busy time.Duration // a second
		want       time.Duration
	}{
		"io_ticks of newer kernels": {2, time.Millisecond, time.Second, 30 * time.Second},
		"the same under load":       {200, 900 * time.Millisecond, time.Second, 0},
		"no times":                  {2000, 0, 0, 0},
	} {
		h, err := history.New(history.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 41 {
			stamp := sample.Stamp{Mono: time.Duration(i+1) * time.Second}
			times := func(d time.Duration) time.Duration { return d * time.Duration(i) }
			disk := sample.Disk{Name: "sda", Leaf: true, ReadIOs: 1 + uint64(i)*c.reads, ReadTicks: times(c.took),
				TimeInQueue: times(c.took), IOTicks: times(c.busy)}
			for _, s := range []*sample.Sample{
				{At: stamp, Disks: []sample.Disk{disk}}, {At: stamp, Jobs: []sample.Job{{ID: "j", HasIO: true}}},
			} {
				if err := h.Append(s); err != nil {
					t.Fatal(err)
				}
			}
		}
		w := &Window{Start: sample.Stamp{Mono: 41 * time.Second}, Seen: Seen{Under: []string{"sda"}}}
		v := &view{w, h, &Machine{Target: ledger.Target{Job: "j"}}}
		if got := v.idleAhead(); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// A load that reads its file into fresh memory has as many page faults as one that maps it, and its read calls show
// that it does not map it. Nor does one that fetches from storage wait for faults alone.
func TestFaultsOfAMappedFile(t *testing.T) {
	if f := faultsOf(t, 2*s, 3*s, 2e5); f == nil || f.Count != 2e5 || f.Kernel != 2*s || f.Share < 0.66 || f.Share > 0.67 {
		t.Errorf("mapped: got %+v", f)
	}
	for name, change := range map[string]func(*sample.Job){
		"read calls":   func(j *sample.Job) { j.ReadChars = 2e5 * 4096 },
		"from storage": func(j *sample.Job) { j.ReadBytes = 1e5 * 4096 },
		"not counted":  func(j *sample.Job) { j.Faults = 0 },
	} {
		if f := faultsOf(t, 2*s, 3*s, 2e5, change); f != nil {
			t.Errorf("%s: got %+v, want none", name, f)
		}
	}
}

// What the page cache held at the begin of a load is not known if the job fetched more than was missing then.
func TestHitThatCannotBe(t *testing.T) {
	for mib, want := range map[uint64]bool{100: true, 40: true, 80: true, 30: false, 0: false} { // in memory, of 100
		r := slow(t, nil, 8*s, 100-mib, func(b *bench) {
			b.Kind, b.Seen = ModelLoad, Seen{Size: 100 << 20, Cached: mib << 20, HasCached: true, Under: []string{"vda"}}
			if !want {
				b.Seen.Cached += 20 << 20
			}
		})
		if r.Load.HasHit != want {
			t.Errorf("%d MiB fetched, and %d were in memory: got %+v, want known %v", 100-mib, r.Seen.Cached>>20, r.Load, want)
		}
	}
}

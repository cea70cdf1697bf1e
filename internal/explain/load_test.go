package explain

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/windowtest"
)

func TestWarmth(t *testing.T) {
	for want, l := range map[string]window.Load{
		"":                                      {Size: 7 << 30},
		"; 1.4 of 7 GiB came from memory":       {Size: 7 << 30, Hit: 0.2, HasHit: true},
		"; about 0.5 of 1 MiB came from memory": {Size: 1 << 20, Hit: 0.5, HasHit: true, Estimated: true},
		"; none of its 12 B came from memory":   {Size: 12, HasHit: true},
		"; all of its 2.5 TiB came from memory": {Size: 5 << 39, Hit: 1, HasHit: true},
		"; 1.5 of 3.3 GiB came from memory":     {Size: 3543348020, Hit: 0.45, HasHit: true},
	} {
		r := &window.Report{Facts: window.Facts{Load: l}}
		if got := warmth(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The share from memory of a load from ZFS is not known, and the finding says why.
func TestWarmthOfZFS(t *testing.T) {
	r := &window.Report{Window: window.Window{Kind: window.ModelLoad, Seen: window.Seen{Size: 7, Device: window.ZFS}},
		Facts: window.Facts{Load: window.Load{Size: 7}}}
	if got := warmth(r); got != "; what came from the cache of ZFS (ARC) is not known" {
		t.Errorf("a load: %q", got)
	}
	r.Kind = window.Epoch
	if got := warmth(r); got != "" {
		t.Errorf("an epoch: %q, want nothing", got)
	}
}

// loaded plays a load of two seconds that waits for its disk.
func loaded(t *testing.T, set func(*window.Window)) *window.Report {
	t.Helper()
	m := windowtest.New(t, true)
	w := m.Begin(window.ModelLoad)
	set(&w)
	for range 20 {
		m.Step(0, 90*time.Millisecond, 0)
	}
	return m.Report(w)
}

func TestLoad(t *testing.T) {
	const fetched = 20 * 25 * 4096
	r := loaded(t, func(w *window.Window) {
		w.Seen = window.Seen{Size: 4 * fetched, Cached: 3 * fetched, HasCached: true, Under: []string{"sda"}}
	})
	if r.Load.Size != 4*fetched || r.Load.Hit != 0.75 || !r.Load.HasHit || r.Load.Estimated {
		t.Errorf("load: got %+v, want a measured hit ratio of 0.75 of %d bytes", r.Load, 4*fetched)
	}
	if !slices.Equal(r.From, []string{"sda"}) || !r.Disks[0].Under ||
		!strings.Contains(Finding(r), "of 7.8 MiB came from memory.") {
		t.Errorf("got from %v, disks %+v, finding %q; want sda under the path and 7.8 MiB", r.From, r.Disks, Finding(r))
	}
	r = loaded(t, func(w *window.Window) { w.Seen = window.Seen{Size: 2 * fetched, Under: []string{"sdb"}} })
	if r.Load.Hit != 0.5 || !r.Load.Estimated || len(r.From) != 0 {
		t.Errorf("load: got %+v from %v, want an estimated hit ratio of 0.5 from no disk", r.Load, r.From)
	}
	r = loaded(t, func(*window.Window) {})
	if r.Load.HasHit || r.Load.Size != 0 || !slices.Equal(r.From, []string{"sda"}) {
		t.Errorf("load: got %+v from %v, want no hit ratio and no size from sda", r.Load, r.From)
	}
	text, err := json.Marshal(NewReport(r))
	if err != nil || strings.Contains(string(text), `"load"`) {
		t.Errorf("JSON: got %s, %v; want no load", text, err)
	}
}

// The JSON of a load has the disks' ceilings, other readers and what was at the path, as in docs/report.md.
func TestLoadJSON(t *testing.T) {
	r := &window.Report{
		Window: window.Window{Kind: window.ModelLoad, End: sample.Stamp{Mono: 2 * time.Second}},
		Others: 3,
		Facts: window.Facts{Disks: []window.DiskUse{{Name: "sda", ReadBytes: 100, Under: true, ReadCeiling: 200,
			ReadCeilingRatio: 0.5},
			{Name: "sdb"}}, Load: window.Load{Size: 9, Hit: 0.25, HasHit: true, Estimated: true,
			Readers: []window.Reader{{PID: 7, Name: "cp", Group: "backup", Bytes: 100}, {PID: 8, Bytes: 5,
				Own: true}}}},
	}
	text, err := json.Marshal(NewReport(r))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"load":{"size":9,"page_cache_hit_ratio":0.25,"estimated":true,"readers":[` +
			`{"pid":7,"name":"cp","cgroup":"backup","read_bytes":100},{"pid":8,"read_bytes":5,"own":true}]}`,
		`"windows_on_its_disks":3`, `"under_path":true,"read_ceiling":200,"read_ceiling_ratio":0.5`, `"busy_ratio":0}]`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
	if got := neighbor(r); got != "; cp (process 7) of backup read 100 B at the same time" {
		t.Errorf("neighbor: got %q, want cp of backup", got)
	}
	r.Split = true
	for storage, want := range map[time.Duration]bool{0: false, time.Second: true} { // of 2 s
		r.Storage = storage
		if got := neighbor(r) != ""; got != want {
			t.Errorf("neighbor of a load that waited %v for storage: %v, want %v", storage, got, want)
		}
	}
	for _, bytes := range []uint64{49, 111} { // too little to matter, and more than there was
		r.Load.Readers[0].Bytes = bytes
		if got := neighbor(r); got != "" {
			t.Errorf("neighbor that read %d bytes: got %q, want none", bytes, got)
		}
	}
	r.Disks[0].ReadCeilingRatio = 0 // the first window that read from the disk
	if text, err = json.Marshal(NewReport(r)); err != nil || !strings.Contains(string(text), `"read_ceiling":200}`) {
		t.Errorf("JSON: got %s, %v; want a ceiling without a ratio", text, err)
	}
}

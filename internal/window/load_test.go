package window

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

func TestWarmth(t *testing.T) {
	for want, l := range map[string]Load{
		"":                                      {Size: 7 << 30},
		"; 1.4 of 7 GiB came from memory":       {Size: 7 << 30, Hit: 0.2, HasHit: true},
		"; about 0.5 of 1 MiB came from memory": {Size: 1 << 20, Hit: 0.5, HasHit: true, Estimated: true},
		"; none of its 12 B came from memory":   {Size: 12, HasHit: true},
		"; all of its 2.5 TiB came from memory": {Size: 5 << 39, Hit: 1, HasHit: true},
		"; 1.5 of 3.3 GiB came from memory":     {Size: 3543348020, Hit: 0.45, HasHit: true},
	} {
		r := &Report{Load: l}
		if got := r.warmth(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// load plays a load of two seconds that waits for its disk.
func load(t *testing.T, set func(*Window)) *Report {
	t.Helper()
	m := newMachine(t, true)
	w := m.begin(ModelLoad)
	set(&w)
	for range 20 {
		m.step(0, 90*time.Millisecond, 0)
	}
	return m.report(w)
}

func TestLoad(t *testing.T) {
	const fetched = 20 * 25 * 4096
	r := load(t, func(w *Window) {
		w.Seen = Seen{Size: 4 * fetched, Cached: 3 * fetched, HasCached: true, Under: []string{"sda"}}
	})
	if r.Load.Size != 4*fetched || r.Load.Hit != 0.75 || !r.Load.HasHit || r.Load.Estimated {
		t.Errorf("%+v", r.Load)
	}
	if !slices.Equal(r.From, []string{"sda"}) || !r.Disks[0].Under || !strings.Contains(r.Finding, "of 7.8 MiB came from memory.") {
		t.Errorf("from %v, %+v: %s", r.From, r.Disks, r.Finding)
	}
	r = load(t, func(w *Window) { w.Seen = Seen{Size: 2 * fetched, Under: []string{"sdb"}} })
	if r.Load.Hit != 0.5 || !r.Load.Estimated || len(r.From) != 0 {
		t.Errorf("%+v, from %v", r.Load, r.From)
	}
	r = load(t, func(*Window) {})
	if r.Load.HasHit || r.Load.Size != 0 || !slices.Equal(r.From, []string{"sda"}) {
		t.Errorf("%+v, from %v", r.Load, r.From)
	}
	text, err := json.Marshal(r)
	if err != nil || strings.Contains(string(text), `"load"`) {
		t.Errorf("%s, %v", text, err)
	}
}

// What was learned of a disk, who else read, and what lay at the path are in the JSON as docs/report.md has it.
func TestLoadJSON(t *testing.T) {
	r := &Report{
		Window: Window{Kind: ModelLoad, End: sample.Stamp{Mono: 2 * time.Second}, Ceilings: []sample.Ceiling{{Disk: "sda", Read: 100}}},
		Others: 3,
		Disks:  []DiskUse{{Name: "sda", ReadBytes: 100, Under: true, ReadCeiling: 200}, {Name: "sdb"}},
		Load: Load{Size: 9, Hit: 0.25, HasHit: true, Estimated: true,
			Readers: []Reader{{PID: 7, Name: "cp", Group: "backup", Bytes: 100}, {PID: 8, Bytes: 5, Own: true}}},
	}
	text, err := json.Marshal(r)
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
	if got := r.neighbour(); got != "; cp (process 7) of backup read 100 B meanwhile" {
		t.Errorf("%q", got)
	}
	for _, bytes := range []uint64{49, 111} { // too little to matter, and more than there was
		r.Load.Readers[0].Bytes = bytes
		if got := r.neighbour(); got != "" {
			t.Errorf("%d: %q", bytes, got)
		}
	}
	r.Ceilings = nil // of a disk that this window was the first to be seen to read from
	if text, err = json.Marshal(r); err != nil || !strings.Contains(string(text), `"read_ceiling":200}`) {
		t.Errorf("%s, %v", text, err)
	}
}

// Nobody can have fetched more from disks than these read, but from a network.
func TestReadersOfMoreThanThereWas(t *testing.T) {
	all := []Reader{{PID: 1, Bytes: 500}, {PID: 2, Bytes: 110}, {PID: 3, Bytes: 5}}
	r := &Report{Disks: []DiskUse{{ReadBytes: 60}, {ReadBytes: 40}}}
	if got := r.readers(Machine{Leaves: []string{"sda"}, Readers: all}); !slices.Equal(got, all[1:]) {
		t.Errorf("%v", got)
	}
	if got := r.readers(Machine{Readers: all}); !slices.Equal(got, all) {
		t.Errorf("where no disk is seen: %v", got)
	}
	r.Mounts = []sample.Mount{{Point: "/nfs"}}
	if got := r.readers(Machine{Leaves: []string{"sda"}, Readers: all}); !slices.Equal(got, all) {
		t.Errorf("beside a network file system: %v", got)
	}
}

// A load of what lies in memory does not wait for storage, whatever the pressure of the machine says, unless its job fetched
// something else meanwhile.
func TestLoadFromMemory(t *testing.T) {
	const size = 300 << 20
	for name, c := range map[string]struct {
		seen    Seen
		fetched uint64 // by the job, in all
		want    Verdict
	}{
		"tmpfs":                          {Seen{Size: size, Device: InMemory}, 0, Unknown},
		"cached":                         {Seen{Size: size, Cached: size, HasCached: true}, 1 << 20, Unknown},
		"cached, and fetched other data": {Seen{Size: size, Cached: size, HasCached: true}, 20 << 20, StorageBound},
		"nearly cached":                  {Seen{Size: size, Cached: size - 4096, HasCached: true}, 0, StorageBound},
		"not known":                      {Seen{Size: size}, 0, StorageBound},
	} {
		m := newMachine(t, false)
		w := m.begin(ModelLoad)
		w.Seen = c.seen
		for i := range 20 {
			m.job.ReadBytes -= 24 * 4096 // of 25 that the step adds: it was others who read
			m.job.ReadChars -= 24 * 4096
			m.step(0, 91*time.Millisecond, 9*time.Millisecond)
			if i == 10 {
				m.job.ReadBytes += c.fetched
			}
		}
		r := m.report(w)
		if r.Verdict != c.want || c.want == Unknown && (r.Slow || len(r.Stalls) > 0) {
			t.Errorf("%s: %s, slow %v, %d stalls: %s", name, r.Verdict, r.Slow, len(r.Stalls), r.Finding)
		}
		if sum := r.Busy + r.Storage + r.CPU + r.Other; sum != r.GPUTime() {
			t.Errorf("%s: the parts are %v of %v", name, sum, r.GPUTime())
		}
	}
}

func TestBeside(t *testing.T) {
	at := func(id, job string, k Kind, from, to time.Duration) *Window {
		return &Window{ID: id, Job: job, Kind: k, Start: sample.Stamp{Mono: from}, End: sample.Stamp{Mono: to}}
	}
	load := at("a", "j", ModelLoad, 10, 20)
	for _, c := range []struct {
		name  string
		other *Window
		want  bool
	}{
		{"itself", load, false},
		{"another job's", at("b", "k", ModelLoad, 15, 40), true},
		{"another job's around it", at("b", "k", Custom, 0, 40), true},
		{"the same job's", at("b", "j", ModelLoad, 0, 40), true},
		{"its run", at("b", "j", Custom, 0, 40), false},
		{"its epoch", at("b", "j", Epoch, 12, 14), false},
		{"the one before", at("b", "k", ModelLoad, 0, 10), false},
		{"the one after", at("b", "k", ModelLoad, 20, 30), false},
		{"hardly", at("b", "k", ModelLoad, 1900, 3000), false},
	} {
		if got := load.Beside(c.other, c.other.End.Mono); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	long := at("x", "", ModelLoad, 0, 1000)
	if long.Beside(at("y", "", ModelLoad, 995, 2000), 2000) {
		t.Error("a tenth of the shorter one is 100")
	}
	r := &Report{Window: *load, From: []string{"sda"}}
	other := at("b", "k", ModelLoad, 10, 20)
	r.beside([]Other{{other, 20, []string{"sdb", "sda"}}, {other, 20, []string{"sdb"}}, {load, 20, []string{"sda"}}})
	if r.Others != 1 || r.OthersOn("sda") != 1 || r.OthersOn("sdb") != 0 {
		t.Errorf("%d others", r.Others)
	}
	r = &Report{Window: *load, From: []string{"sda", "sdb", "sdc"}}
	r.beside([]Other{{other, 20, []string{"sdb", "sda"}}, {other, 20, []string{"sdb"}}, {load, 20, []string{"sda"}}})
	if r.Others != 2 || r.OthersOn("sda") != 1 || r.OthersOn("sdb") != 2 || r.OthersOn("sdc") != 0 {
		t.Errorf("%d others, %v", r.Others, r.others)
	}
}

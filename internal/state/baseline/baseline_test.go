package baseline

import (
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

func TestKeyOf(t *testing.T) {
	of := func(w window.Window) window.Report { return window.Report{Window: w} }
	load := func(seen window.Seen, read uint64) window.Report {
		w := window.Window{Kind: window.ModelLoad, Model: "llama", Path: "/models/a", Seen: seen}
		return window.Report{Window: w, Facts: window.Facts{Disks: []window.DiskUse{{Name: "sda", ReadBytes: read}}}}
	}
	changed := func(r window.Report, change func(*window.Report)) window.Report { change(&r); return r }
	unnamed := func(r *window.Report) { r.Model = "" }
	nfs := func(r *window.Report) { r.Mounts = []sample.Mount{{Type: "nfs4"}} }
	hit := func(share float64) func(*window.Report) {
		return func(r *window.Report) { r.Load = window.Load{Hit: share, HasHit: true} }
	}
	ssd := window.Seen{Device: "ssd", Under: []string{"sda"}, Size: 1000}
	for name, c := range map[string]struct {
		report window.Report
		want   Key
	}{
		"epoch":               {of(window.Window{Kind: window.Epoch, Run: "train.py", Epoch: 7, HasEpoch: true}), "epoch/train.py"},
		"first epoch":         {of(window.Window{Kind: window.Epoch, Run: "train.py", First: true}), "first/train.py"},
		"no run":              {of(window.Window{Kind: window.Epoch}), ""},
		"checkpoint":          {of(window.Window{Kind: window.Checkpoint, Run: "train.py", Name: "x"}), ""},
		"no name":             {of(window.Window{Kind: window.ModelLoad}), ""},
		"file":                {changed(load(ssd, 900), unnamed), "load/ssd/cold//models/a (1000 bytes)"},
		"unknown size":        {changed(load(window.Seen{}, 900), unnamed), ""},
		"few bytes read":      {load(ssd, 400), "load/ssd/warm/llama"},
		"from the cache":      {changed(load(ssd, 1<<30), hit(0.5)), "load/ssd/warm/llama"},
		"half from the cache": {changed(load(ssd, 0), hit(0.49)), "load/ssd/cold/llama"},
		"no path, cold":       {load(window.Seen{}, 1<<30), "load/rotational/unknown/llama"},
		"no path, warm":       {load(window.Seen{}, 4096), "load/unknown/warm/llama"},
		"mount":               {changed(load(window.Seen{}, 0), nfs), "load/nfs4/unknown/llama"},
		"disk and mount":      {changed(load(ssd, 900), nfs), "load/ssd/cold/llama"},
		"server":              {load(window.Seen{Device: "fuse.a/b", Size: 1000}, 0), "load/fuse.a_b/unknown/llama"},
		"tmpfs":               {load(window.Seen{Device: "memory", Size: 1000}, 0), "load/memory/warm/llama"},
	} {
		if got := KeyOf(&c.report, "rotational"); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestLongNames(t *testing.T) {
	long := strings.Repeat("ä", 5000)
	key := func(run string) Key {
		return KeyOf(&window.Report{Window: window.Window{Kind: window.Epoch, Run: run}}, "")
	}
	one, other := key(long+"1"), key(long+"2")
	if one == other || len(one) > maxName+10 || !strings.HasPrefix(one.Name(), "ää") {
		t.Errorf("got %q and %q, want two keys of at most %d bytes", one, other, maxName+10)
	}
}

func TestLearnable(t *testing.T) {
	ended := func(f func(*window.Report)) *window.Report {
		r := &window.Report{Judgement: window.Judgement{Slow: true, SlowReason: window.SlowStorage}}
		r.End.Mono = time.Second
		f(r)
		return r
	}
	for name, c := range map[string]struct {
		change func(*window.Report)
		want   bool
	}{
		"usual":                    {func(*window.Report) {}, true},
		"unfinished":               {func(r *window.Report) { r.Unfinished = true }, false},
		"interrupted":              {func(r *window.Report) { r.Interrupted = true }, false},
		"interrupted epoch":        {func(r *window.Report) { r.Interrupted, r.Kind = true, window.Epoch }, true},
		"interrupted, cache known": {func(r *window.Report) { r.Interrupted, r.Load.HasHit = true, true }, true},
		"no length":                {func(r *window.Report) { r.End.Mono = 0 }, false},
	} {
		if got := Learnable(ended(c.change)); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestMatches(t *testing.T) {
	e := Entry{Key: "load/nvme/cold//models/a (x) b (1000 bytes)"}
	for text, want := range map[string]bool{
		string(e.Key): true, "/models/a (x) b (1000 bytes)": true, "/models/a (x) b": true,
		"/models/a": false, "a": false, "": false,
	} {
		if got := e.Matches(text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

package windows

import (
	"testing"

	"github.com/stallspan/stallspan/internal/window"
)

// Only the first epoch of a run, job and client is one.
func TestFirstEpoch(t *testing.T) {
	all := New(Config{}).all
	for i, c := range []struct {
		w     window.Window
		first bool
		ends  bool
	}{
		{w: window.Window{Kind: window.Custom, Run: "a", Job: "1"}, ends: true},
		{w: window.Window{Kind: window.Epoch, Run: "a", Job: "1"}, first: true, ends: true},
		{w: window.Window{Kind: window.Epoch, Run: "a", Job: "1"}},
		{w: window.Window{Kind: window.Epoch, Run: "a", Job: "1"}},
		{w: window.Window{Kind: window.Epoch, Run: "a", Job: "2"}, first: true},
		{w: window.Window{Kind: window.Epoch, Run: "b", Job: "1"}, first: true},
		{w: window.Window{Kind: window.Epoch, Run: "a", Job: "1", Client: "uid 1"}, first: true},
		{w: window.Window{Kind: window.Epoch, Run: "b", Job: "1"}},
		{w: window.Window{Kind: window.ModelLoad, Run: "c"}},
	} {
		o := &openWindow{Window: c.w}
		o.ID = NewID()
		if err := all.add(o); err != nil {
			t.Fatal(err)
		}
		if o.First != c.first {
			t.Errorf("window %d, %+v: got first %v, want %v", i, c.w, o.First, c.first)
		}
		if c.ends {
			all.remove(o.ID)
			all.retain(&window.Report{Window: o.Window}, 0)
		}
	}
}

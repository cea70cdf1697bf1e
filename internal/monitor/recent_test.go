package monitor

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// A change in the middle of a long window shows within seconds.
func TestRecentOfALongWindow(t *testing.T) {
	m, err := New(Config{Recorded: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Stop()
	apply := func(e recording.Entry) {
		if err := m.Feed(&e); err != nil {
			t.Fatal(err)
		}
	}
	apply(recording.Entry{Mark: &recording.Mark{Op: recording.Follow, ID: "train", Scope: "/job", OwnScope: true}})
	var busy, waited time.Duration
	step := func(i int, working bool) {
		const tick = 100 * time.Millisecond
		at := sample.Stamp{Mono: time.Hour + time.Duration(i)*tick, Wall: dawn.Add(time.Duration(i) * tick)}
		if working {
			busy += tick
		} else {
			waited += tick
		}
		for _, s := range []*sample.Sample{
			{At: at, Pressures: []sample.Pressure{{Scope: "/job", Resource: sample.IO, Some: waited}}},
			{At: at, GPUs: []sample.GPU{{ID: "GPU-1", Busy: busy}}},
			{At: at, Jobs: []sample.Job{{ID: "train", Scope: "/job", OwnScope: true, HasIO: true}}},
		} {
			feedSample(t, m, s)
		}
		apply(recording.Entry{Mark: &recording.Mark{Op: recording.Tick}})
	}
	step(0, true)
	id, err := m.Windows.Begin(window.Window{Kind: window.Epoch, Job: "train"}, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		step(1+i, true)
		if r := m.Windows.Report(id); i == 45 && r.Recent != nil {
			t.Errorf("after %v: %+v", r.Duration(), r.Recent)
		}
	}
	if r := m.Windows.Report(id); r.Verdict != window.GPUBound || r.Recent == nil || r.Recent.Verdict != window.GPUBound {
		t.Errorf("%s, recent %+v", r.Verdict, r.Recent)
	}
	for i := range 50 {
		step(1001+i, false)
	}
	r := m.Windows.Running()[0]
	if r.Verdict != window.GPUBound || r.Recent == nil || r.Recent.Verdict != window.StorageBound ||
		explain.Finding(r.Recent) == explain.Finding(r) {
		t.Errorf("%s, recent %+v", r.Verdict, r.Recent)
	}
	if r, err := m.Windows.End(id, m.Now()); err != nil || r.Recent != nil {
		t.Errorf("ended: %+v, %v", r.Recent, err)
	}
}

package alert

import (
	"testing"
	"time"
)

func TestGroup(t *testing.T) {
	g := newGroup[string]("")
	g.limits = Limits{Raise: 1, RaiseAfter: 2 * time.Second, ClearAfter: 3 * time.Second, MinInterval: 5 * time.Second}
	at := time.Duration(0)
	round := func(values map[string]float64) (all []transition[string]) {
		at += time.Second
		for key, v := range values {
			if one, changed := g.evaluate(key, at, v); changed {
				all = append(all, one)
			}
		}
		return append(all, g.endRound(at)...)
	}
	for range 2 {
		if got := round(map[string]float64{"a": 1, "b": 0}); got != nil {
			t.Fatalf("before the hold time: got %+v, want no transition", got)
		}
	}
	got := round(map[string]float64{"a": 1, "b": 0})
	want := transition[string]{key: "a", edge: time.Second, began: time.Second}
	if len(got) != 1 || got[0] != want {
		t.Fatalf("after the hold time: got %+v, want %+v", got, want)
	}
	for key, want := range map[string]bool{"a": true, "b": false, "c": false} {
		if got := g.active(key); got != want {
			t.Errorf("active(%s): got %v, want %v", key, got, want)
		}
	}
	var ended []transition[string]
	for at < 7*time.Second { // removed, within ClearAfter
		ended = append(ended, round(map[string]float64{"b": 0})...)
	}
	if ended != nil || !g.active("a") {
		t.Fatalf("removed until %v: got %+v, active %v, want no transition, active", at, ended, g.active("a"))
	}
	for range 20 {
		ended = append(ended, round(map[string]float64{"b": 0})...)
	}
	want = transition[string]{key: "a", resolved: true, edge: 4 * time.Second, began: time.Second, removed: true}
	if len(ended) != 1 || ended[0] != want || len(g.members) != 1 {
		t.Errorf("removed for long: got %+v and %d members, want %+v and 1 member", ended, len(g.members), want)
	}
}

// The condition of a removed device ends once, and the device is then forgotten.
func TestRemovedDevice(t *testing.T) {
	g := newGroup[int]("")
	g.limits = Limits{Raise: 1, ClearAfter: 3 * time.Second, MinInterval: 5 * time.Second}
	if _, changed := g.evaluate(7, time.Second, 1); !changed {
		t.Fatal("first evaluation: got no transition, want one")
	}
	g.endRound(time.Second)
	var ended []transition[int]
	for at := 2 * time.Second; at < time.Minute; at += time.Second {
		ended = append(ended, g.endRound(at)...)
	}
	want := transition[int]{key: 7, resolved: true, removed: true, edge: 2 * time.Second, began: time.Second}
	if len(ended) != 1 || ended[0] != want {
		t.Errorf("got %+v, want %+v", ended, want)
	}
	if len(g.members) != 0 {
		t.Errorf("got %d members, want 0", len(g.members))
	}
}

func TestMaxDevices(t *testing.T) {
	g := newGroup[int]("")
	g.limits = Limits{Raise: 1}
	for i := range 3 * maxDevices {
		g.evaluate(i, time.Second, 0)
	}
	if len(g.members) != maxDevices {
		t.Errorf("got %d members, want %d", len(g.members), maxDevices)
	}
	g.endRound(time.Second)
	g.endRound(2 * time.Second)
	if len(g.members) != 0 {
		t.Errorf("after two rounds: got %d members, want 0", len(g.members))
	}
}

package condition

import (
	"testing"
	"time"
)

func TestGroup(t *testing.T) {
	g := Group[string]{Limits: Limits{Raise: 1, After: 2 * time.Second, Until: 3 * time.Second, Apart: 5 * time.Second}}
	at := time.Duration(0)
	round := func(values map[string]float64) (told []Told[string]) {
		at += time.Second
		for key, v := range values {
			if one, changed := g.Look(key, at, v); changed {
				told = append(told, one)
			}
		}
		return append(told, g.Rest(at)...)
	}
	for range 2 {
		if told := round(map[string]float64{"a": 1, "b": 0}); told != nil {
			t.Fatal(told)
		}
	}
	told := round(map[string]float64{"a": 1, "b": 0})
	if len(told) != 1 || told[0] != (Told[string]{Key: "a", Change: Raised, Edge: time.Second, Began: time.Second}) {
		t.Fatalf("%+v", told)
	}
	if !g.Raised("a") || g.Raised("b") || g.Raised("c") {
		t.Error("what holds")
	}
	var over []Told[string]
	for at < 7*time.Second { // not there, and not over at once
		over = append(over, round(map[string]float64{"b": 0})...)
	}
	if over != nil || !g.Raised("a") {
		t.Fatalf("%+v at %v", over, at)
	}
	for range 20 {
		over = append(over, round(map[string]float64{"b": 0})...)
	}
	want := Told[string]{Key: "a", Change: Resolved, Edge: 4 * time.Second, Began: time.Second, Gone: true}
	if len(over) != 1 || over[0] != want || len(g.members) != 1 {
		t.Errorf("%+v, %d members", over, len(g.members))
	}
}

// What is not there any more is over, once, and then forgotten.
func TestGone(t *testing.T) {
	g := Group[int]{Limits: Limits{Raise: 1, Until: 3 * time.Second, Apart: 5 * time.Second}}
	if _, changed := g.Look(7, time.Second, 1); !changed {
		t.Fatal("not raised")
	}
	g.Rest(time.Second)
	var over []Told[int]
	for at := 2 * time.Second; at < time.Minute; at += time.Second {
		over = append(over, g.Rest(at)...)
	}
	if len(over) != 1 || !over[0].Gone || over[0].Change != Resolved || over[0].Began != time.Second {
		t.Errorf("%+v", over)
	}
	if len(g.members) != 0 {
		t.Errorf("%d members are kept", len(g.members))
	}
}

func TestMostKeys(t *testing.T) {
	g := Group[int]{Limits: Limits{Raise: 1}}
	for i := range 3 * mostKeys {
		g.Look(i, time.Second, 0)
	}
	if len(g.members) != mostKeys || g.Left() != 2*mostKeys {
		t.Errorf("%d members, %d left out", len(g.members), g.Left())
	}
	g.Rest(time.Second)
	g.Rest(2 * time.Second)
	if len(g.members) != 0 {
		t.Errorf("%d members are kept", len(g.members))
	}
}

//go:build linux

package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/lab/scenario"
)

var errBroken = errors.New("no loop device")

// tries is a runner that returns one prepared outcome after another.
type tries struct {
	t    *testing.T
	all  []outcome
	seen []uint64
}

type outcome struct {
	verdict window.Verdict // "" for none
	void    string
	err     error
}

func (r *tries) run(_ context.Context, v scenario.Variant) ([]*scenario.Result, error) {
	if len(r.seen) == len(r.all) {
		r.t.Fatalf("a try too many, of seed %d", v.Seed)
	}
	next := r.all[len(r.seen)]
	r.seen = append(r.seen, v.Seed)
	if next.err != nil {
		return nil, next.err
	}
	return []*scenario.Result{
		{Name: v.Name, Seed: v.Seed, Label: window.Unknown, Got: scenario.Got{Verdict: next.verdict}, Void: next.void},
	}, nil
}

var right, wrong, void = outcome{verdict: window.Unknown}, outcome{verdict: window.CPUBound}, outcome{void: "too near"}

// An attempt that cannot run is reported, whatever the next one returns. It fails the full form. It fails the short
// form if the next attempt fails as well.
func TestTries(t *testing.T) {
	broken := outcome{err: errBroken}
	c := idle(t)
	for name, test := range map[string]struct {
		all                 []outcome
		results, failed     int
		fails               bool // once's error
		code, shortCode     int
		onlyShort, onlyFull bool
	}{
		"right":               {all: []outcome{right}, results: 1},
		"wrong, then right":   {all: []outcome{wrong, right}, results: 2, onlyShort: true},
		"void, then right":    {all: []outcome{void, right}, results: 2},
		"void twice":          {all: []outcome{void, void}, results: 2, code: 1, shortCode: 1},
		"broken, then right":  {all: []outcome{broken, right}, results: 1, failed: 1, code: 1},
		"broken twice":        {all: []outcome{broken, broken}, failed: 2, fails: true, code: 1, shortCode: 1},
		"void, then broken":   {all: []outcome{void, broken}, results: 1, failed: 1, fails: true, code: 1, shortCode: 1},
		"wrong is no failure": {all: []outcome{wrong}, results: 1, onlyFull: true},
	} {
		for _, short := range []bool{false, true} {
			if short && test.onlyFull || !short && test.onlyShort {
				continue
			}
			o := &options{short: short, cases: "idle", seed: 1, out: filepath.Join(t.TempDir(), "out.json")}
			r := &tries{t: t, all: test.all}
			results, err := o.once(t.Context(), r.run, c, 100)
			if len(r.seen) != len(test.all) || len(results) != test.results || len(o.failed) != test.failed ||
				(err != nil) != test.fails {
				t.Errorf(
					"%s, short %v: %d tries, %d results, %d failed, %v",
					name,
					short,
					len(r.seen),
					len(results),
					len(o.failed),
					err,
				)
			}
			want := test.code
			if short {
				want = test.shortCode
			}
			code, says := o.finish(results, err)
			if code != want || code == 1 && says == nil {
				t.Errorf("%s, short %v: exit code %d, %v", name, short, code, says)
			}
		}
	}
}

// A run that judged no window fails, and its error gives the reason.
func TestNothingIsNoSuccess(t *testing.T) {
	for _, short := range []bool{false, true} {
		o := &options{short: short, cases: "nosuch", out: filepath.Join(t.TempDir(), "out.json")}
		if code, err := o.finish(nil, nil); code != 1 || err == nil ||
			!strings.Contains(err.Error(), `matches -case "nosuch"`) {
			t.Errorf("no case, short %v: %d, %v", short, code, err)
		}
	}
}

func idle(t *testing.T) *scenario.Case {
	t.Helper()
	cases := scenario.Cases()
	i := slices.IndexFunc(cases, func(c scenario.Case) bool { return c.Name == "idle" })
	if i < 0 {
		t.Fatal("there is no case called idle")
	}
	return &cases[i]
}

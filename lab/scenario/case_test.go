package scenario

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/lab/pipeline"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// all calls check with many variants of all cases.
func all(t *testing.T, each func(t *testing.T, c *Case, v Variant)) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			for i := range 20 {
				each(t, &c, c.Variant(Seed(uint64(i/5), i%5), i%2 == 1))
			}
		})
	}
}

func TestVariantsAreTheirSeeds(t *testing.T) {
	all(t, func(t *testing.T, c *Case, v Variant) {
		if again := c.Variant(v.Seed, v.Stages[0].Length == shortLength); !reflect.DeepEqual(v, again) {
			t.Errorf("seed %d: %+v and then %+v", v.Seed, v, again)
		}
		if v.Name != c.Name || len(v.Stages) == 0 {
			t.Errorf("seed %d: %q with %d stages", v.Seed, v.Name, len(v.Stages))
		}
	})
	c := Cases()[0]
	if reflect.DeepEqual(c.Variant(1, false).Stages, c.Variant(5, false).Stages) {
		t.Error("two seeds made the same variant")
	}
}

func TestLabelsAreVerdicts(t *testing.T) {
	given := map[window.Verdict]bool{}
	names := map[string]bool{}
	short := 0
	for _, c := range Cases() {
		if names[c.Name] {
			t.Errorf("two cases are called %s", c.Name)
		}
		names[c.Name] = true
		if c.Short {
			short++
		}
	}
	if short < 8 || short > 13 {
		t.Errorf("%d cases in the short form", short)
	}
	all(t, func(t *testing.T, _ *Case, v Variant) {
		for _, s := range v.Stages {
			given[s.Label] = true
			if !slices.Contains(Verdicts[:], s.Label) {
				t.Errorf("label %q", s.Label)
			}
		}
		if v.Whole != "" && !slices.Contains(Verdicts[:], v.Whole) {
			t.Errorf("label %q", v.Whole)
		}
	})
	for _, v := range Verdicts {
		if !given[v] {
			t.Errorf("no case is %s", v)
		}
	}
}

// The aim of a stage must agree with its label, with a margin.
func TestAimsKeepTheMargin(t *testing.T) {
	all(t, func(t *testing.T, _ *Case, v Variant) {
		for _, s := range v.Stages {
			if got := aimed(&s).Label(); got != s.Label {
				t.Errorf("seed %d aims at %+v, which is %q and not %s", v.Seed, aimed(&s), got, s.Label)
			}
		}
	})
}

// aimed is how a stage's time would be divided if its aim were met.
func aimed(s *Stage) Parts {
	a := s.Aim
	switch {
	case s.Idle:
		return Parts{Other: 1}
	case a.Busy >= 1:
		return Parts{Busy: 1}
	case a.Sync > 0:
		return Parts{Busy: a.Busy, Other: a.Sync, CPU: 1 - a.Busy - a.Sync}
	case s.load() && s.cold():
		return Parts{CPU: a.CPU, Storage: 1 - a.CPU}
	case !s.cold():
		return Parts{Busy: a.Busy, CPU: 1 - a.Busy}
	}
	return Parts{Busy: a.Busy, CPU: a.CPU, Storage: 1 - a.Busy - a.CPU}
}

func TestPlansAreWhole(t *testing.T) {
	all(t, func(t *testing.T, _ *Case, v Variant) {
		for _, s := range v.Stages {
			p := &s.Plan
			if s.Length < 2*time.Second || s.Length > 14*time.Second {
				t.Errorf("a window of %v", s.Length)
			}
			switch {
			case s.Idle:
			case s.load():
				if v.Model < 64<<20 || p.Record == 0 || p.Workers == 0 {
					t.Errorf("a load of %d bytes: %+v", v.Model, p)
				}
			default:
				if v.Files == 0 || p.Record == 0 || p.Workers == 0 || p.Batch == 0 || v.Size%int64(p.Record) != 0 {
					t.Errorf("%d files of %d: %+v", v.Files, v.Size, p)
				}
				if p.Style == pipeline.Serial && p.Workers != 1 {
					t.Errorf("a serial plan with %d workers", p.Workers)
				}
				if (s.Aim.CPU > 0) == (p.Decode > 0) {
					t.Errorf("decode time %v for an aim of %v", p.Decode, s.Aim.CPU)
				}
			}
			if s.From != Cold && (p.Reading == pipeline.Direct || p.Reading == pipeline.Uring) {
				t.Errorf("%s from where there is only memory", p.Reading)
			}
			if s.cold() && v.Kind == slowdisk.Memory {
				t.Error("nothing is cold in memory")
			}
		}
	})
}

func TestDrawsStayInRange(t *testing.T) {
	d := &draw{Rand: rand.New(rand.NewPCG(1, 1)), seed: 7}
	for range 1000 {
		if v := d.between(2, 3); v < 2 || v >= 3 {
			t.Fatalf("between 2 and 3: %v", v)
		}
		if v := d.whole(2, 3); v != 2 && v != 3 {
			t.Fatalf("2 or 3: %v", v)
		}
		if v := d.lasting(time.Millisecond, 2*time.Millisecond); v < time.Millisecond || v > 2*time.Millisecond {
			t.Fatalf("1 to 2 ms: %v", v)
		}
	}
}

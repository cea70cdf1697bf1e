//go:build linux

package main

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/lab/joblog"
)

// ms is a millisecond in nanoseconds, as logs count.
const ms = 1_000_000

// logOf reads a log of labels, in milliseconds: "KIND START END more of the JSON".
func logOf(t *testing.T, labels ...string) *joblog.Log {
	t.Helper()
	text := ""
	for _, one := range labels {
		fields := strings.SplitN(one, " ", 4)
		text += "main label " + fields[1] + "000000 " + fields[2] + `000000 {"kind":"` + fields[0] + `"` + fields[3] + "}\n"
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "1.log"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := joblog.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// window is a detected one from and to a time in milliseconds.
func window(kind string, from, to int64) found {
	return found{Kind: kind, Start: time.Unix(0, from*ms), End: time.Unix(0, to*ms)}
}

func mono(t time.Time) int64 { return t.UnixNano() }

func TestPairs(t *testing.T) {
	for name, c := range map[string]struct {
		labels  []string
		windows []found
		found   int
		missed  int
		wrong   int
		errors  [2]float64 // of the first pair, in seconds
	}{
		"near": {
			[]string{"model_load 1000 3000 "}, []found{window("model_load", 1200, 2900)}, 1, 0, 0, [2]float64{0.2, -0.1},
		},
		"half of it": {[]string{"model_load 1000 3000 "}, []found{window("model_load", 1000, 2000)}, 0, 1, 1, [2]float64{}},
		"another kind": {
			[]string{"model_load 1000 3000 "}, []found{window("checkpoint", 1000, 3000)}, 0, 1, 1, [2]float64{},
		},
		"twice": {
			[]string{"model_load 1000 3000 "},
			[]found{window("model_load", 1000, 2500), window("model_load", 1000, 2900)}, 1, 0, 1, [2]float64{0, -0.1},
		},
		"one for two": {
			[]string{"model_load 1000 3000 ", "model_load 3100 4000 "}, []found{window("model_load", 1000, 4000)},
			1, 1, 0, [2]float64{0, 1},
		},
		"too short to be required": {[]string{"model_load 1000 1400 "}, nil, 0, 0, 0, [2]float64{}},
		"too short to be wrong": {
			[]string{"model_load 1000 1400 "}, []found{window("model_load", 1000, 1400)}, 0, 0, 0, [2]float64{},
		},
		"aborted": {
			[]string{`model_load 1000 3000 ,"aborted":true`}, []found{window("model_load", 1000, 3000)}, 0, 0, 0, [2]float64{},
		},
		"with the download": {
			[]string{`model_load 3000 4000 ,"begins":[1000000000]`}, []found{window("model_load", 1100, 4000)},
			1, 0, 0, [2]float64{0.1, 0},
		},
		"until the last byte": {
			[]string{`model_load 1000 6000 ,"ends":[2000000000]`}, []found{window("model_load", 1000, 2300)},
			1, 0, 0, [2]float64{0, 0.3},
		},
	} {
		r := &result{}
		r.compare(logOf(t, c.labels...), c.windows, 9000*ms, mono)
		if len(r.Pairs) != c.found || len(r.Missed) != c.missed || len(r.False) != c.wrong {
			t.Errorf("%s: got %d found, %d missed, %d false; want %d, %d, %d", name, len(r.Pairs), len(r.Missed), len(r.False),
				c.found, c.missed, c.wrong)
			continue
		}
		if c.found > 0 && math.Abs(r.Pairs[0].Begin-c.errors[0])+math.Abs(r.Pairs[0].End-c.errors[1]) > 1e-9 {
			t.Errorf("%s: got errors of %v and %v s, want %v", name, r.Pairs[0].Begin, r.Pairs[0].End, c.errors)
		}
	}
}

// A window that has not ended lasts until the case is over.
func TestOpenWindowIsFalse(t *testing.T) {
	w := window("model_load", 1000, 3000)
	w.open = true
	r := &result{}
	r.compare(logOf(t, "model_load 1000 3000 "), []found{w}, 9000*ms, mono)
	if len(r.False) != 1 || !r.False[0].Open || r.False[0].Seconds != 8 {
		t.Errorf("got %+v, want one of 8 s", r.False)
	}
}

func TestFalseWindowsPerHour(t *testing.T) {
	r := &result{}
	l := logOf(t, "life 0 10000 ", "checkpoint 1000 3000 ")
	r.compare(l, []found{window("model_load", 4000, 5000), window("checkpoint", 5000, 6000)}, 9000*ms, mono)
	if want := map[string]float64{"model_load": 10}; !reflect.DeepEqual(r.Negative, want) {
		t.Errorf("got %v, want %v", r.Negative, want)
	}
	if want := map[string]int{"model_load": 1}; !reflect.DeepEqual(r.NegFalse, want) {
		t.Errorf("got %v, want %v: checkpoints have labels there", r.NegFalse, want)
	}
}

func TestPhasesAreCompared(t *testing.T) {
	w := window("model_load", 0, 1000)
	w.Phases = append(w.Phases, phase{"read", time.Unix(0, 0), 0.8})
	r := &result{}
	r.compare(logOf(t, "model_load 0 1000 ", `phase 0 600 ,"name":"read"`, `phase 600 900 ,"name":"host_to_device"`),
		[]found{w}, 9000*ms, mono)
	p := r.Pairs[0]
	if math.Abs(p.Phases-0.9)+math.Abs(p.Named-0.8)+math.Abs(p.Right-0.6) > 0.03 {
		t.Errorf("got %v s with a label, %v named, %v right; want 0.9, 0.8, 0.6", p.Phases, p.Named, p.Right)
	}
}

func TestQuantiles(t *testing.T) {
	q := newQuantiles([]float64{0.1, -0.2, 0.3, -2})
	if want := (quantiles{4, 0.2, 2, 0.75}); q != want {
		t.Errorf("got %+v, want %+v", q, want)
	}
	if q := newQuantiles(nil); q != (quantiles{}) {
		t.Errorf("got %+v of nothing", q)
	}
}

func TestASeedMakesTheSameCases(t *testing.T) {
	writers, err := os.ReadFile("programs/models.py")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for part, all := range map[string][]entry{"developed": developed(), "held out": heldOut()} {
		for _, e := range all {
			if names[e.name] {
				t.Errorf("two cases are named %s", e.name)
			}
			names[e.name] = true
			a, b, c := e.plan(1), e.plan(1), e.plan(2)
			if !reflect.DeepEqual(a, b) {
				t.Errorf("%s: got another case of the same seed", e.name)
			}
			if reflect.DeepEqual(a, c) {
				t.Errorf("%s: got the same case of another seed", e.name)
			}
			for _, m := range a.Models {
				if !strings.Contains(string(writers), `"`+m.Kind+`": `) {
					t.Errorf("%s: models.py writes no %q", e.name, m.Kind)
				}
			}
			for _, p := range a.Programs {
				if _, err := os.Stat(filepath.Join("programs", p[0])); err != nil {
					t.Error(err)
				}
				if held := strings.HasPrefix(p[0], "detect_heldout_"); held != (part == "held out") {
					t.Errorf("%s: %s belongs to the other part", e.name, p[0])
				}
			}
		}
	}
}

// The parts have their own seeds, so that neither can be measured with the other's by mistake.
func TestSeedsOfTheOtherPartAreRefused(t *testing.T) {
	for _, c := range []struct {
		seed    uint64
		heldout bool
		fails   bool
	}{{0, false, false}, {99, false, false}, {201, false, true}, {0, true, false}, {1, true, true}, {300, true, false}} {
		o := options{seed: c.seed, heldout: c.heldout, keep: t.TempDir()}
		if err := o.complete(); (err != nil) != c.fails {
			t.Errorf("seed %d, held out %v: got %v, want an error: %v", c.seed, c.heldout, err, c.fails)
		}
	}
}

// A window belongs to the case in whose life it began, and to one that lived shortly before or after only if it is in
// no other's life.
func TestWindowsOfCases(t *testing.T) {
	first, second := logOf(t, "life 10000 20000 "), logOf(t, "life 22000 30000 ")
	all := []*joblog.Log{first, nil, second}
	for begin, want := range map[int64][2]int{
		4000: {0, 0}, 6000: {1, 0}, 15000: {1, 0}, 19000: {1, 0}, 21000: {1, 1}, 23000: {0, 1}, 36000: {0, 0},
	} {
		k := &kept{Ended: []found{window("model_load", begin, begin+1000)}}
		if got := [2]int{len(k.of(first, all)), len(k.of(second, all))}; got != want {
			t.Errorf("begin %d: got %v, want %v", begin, got, want)
		}
	}
}

package windows

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/state/baseline"
	"github.com/stallspan/stallspan/internal/window"
)

// What is learned does not depend on the factor of one program, because the baseline is shared.
func TestLearnedByTheUsualFactor(t *testing.T) {
	db := filepath.Join(t.TempDir(), "baseline.db")
	b := baseline.Open(db, func(err error) { t.Error(err) })
	for range baseline.MinCount {
		b.Learn("epoch/train", time.Second, false, time.Now())
	}
	b.Close()
	j := NewSlowJudge(config.Slow{Baseline: db, Factor: 10}, nil, func(source string, err error) {
		t.Errorf("got the error %s: %v, want none", source, err)
	})
	defer j.Close()
	start := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, took := range []time.Duration{1400 * time.Millisecond, 9 * time.Second} {
		w := window.Window{Kind: window.Epoch, Run: "train"}
		w.Start = sample.Stamp{Mono: time.Hour, Wall: start}
		w.End = sample.Stamp{Mono: time.Hour + took, Wall: start.Add(took)}
		r := &window.Report{Window: w}
		j.Final(r)
		if r.Slow {
			t.Errorf("%v: got slow (%s), want not slow", took, explain.Finding(r))
		}
	}
	j.Save()
	if all, err := baseline.List(db); err != nil || len(all[0].Durations) != baseline.MinCount+1 || all[0].Slow != 1 {
		t.Errorf("got %+v, %v, want %d durations and 1 slow", all, err, baseline.MinCount+1)
	}
}

// Of detected windows, only those of a kind that is found precisely have a baseline.
func TestBaselinesOfDetectedWindows(t *testing.T) {
	j := NewSlowJudge(config.Slow{Baseline: filepath.Join(t.TempDir(), "baseline.db")},
		nil,
		func(source string, err error) { t.Errorf("got the error %s: %v, want none", source, err) })
	defer j.Close()
	start := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, kind := range []window.Kind{window.ModelLoad, window.Epoch} {
		slow := false
		for i := range baseline.MinCount + 1 {
			took := time.Second
			if i == baseline.MinCount {
				took = time.Minute
			}
			w := window.Window{Kind: kind, Source: window.Detected, Run: "train", Model: "llama", Confidence: 1}
			w.Start = sample.Stamp{Mono: time.Hour, Wall: start}
			w.End = sample.Stamp{Mono: time.Hour + took, Wall: start.Add(took)}
			r := &window.Report{Window: w}
			j.Final(r)
			slow = r.Slow
		}
		if want := detect.Precise(kind); slow != want {
			t.Errorf("a detected %s that took sixty times as long as others: got slow %v, want %v", kind, slow, want)
		}
	}
}

// A window of ten epochs is not compared with those of one.
func TestNoBaselineOfSeveralEpochs(t *testing.T) {
	j := NewSlowJudge(config.Slow{Baseline: filepath.Join(t.TempDir(), "baseline.db")}, nil,
		func(source string, err error) { t.Errorf("got the error %s: %v, want none", source, err) })
	defer j.Close()
	for epochs, compared := range map[int]bool{0: true, 1: true, 10: false} {
		r := &window.Report{Window: window.Window{Kind: window.Epoch, Run: "train", Epochs: epochs}}
		if key := j.key(r, true); (key != "") != compared {
			t.Errorf("%d epochs: got the key %q", epochs, key)
		}
	}
}

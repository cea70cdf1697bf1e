package ledger

import (
	"math"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// follow divides the time of a training loop that is read so often, with a GPU whose driver is read once a second. It
// returns the largest distance of the ledger behind its newest reading.
func follow(t *testing.T, length, every time.Duration) (e *Estimator, h *history.History, behind time.Duration) {
	t.Helper()
	h, err := history.New(history.Config{})
	if err != nil {
		t.Fatal(err)
	}
	e = New(h)
	e.SetTargets([]Target{{Job: "job", GPU: "gpu", Leader: 1}})
	events, gpu := loop(33*ms, 21*ms, 50*ms, false, 100*ms, length)
	keep := func(s *sample.Sample) {
		if err := h.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	for at := 100 * ms; at <= length; at += 100 * ms {
		for at%time.Second == 0 && len(gpu) > 0 && gpu[0].At.Mono <= at+ms {
			keep(&gpu[0])
			gpu = gpu[1:]
		}
		if at%every == 0 {
			n := 0
			for n < len(events.Events) && events.Events[n].At <= at {
				n++
			}
			e.Learn(&sample.Schedule{Until: at, Arch: events.Arch, Events: events.Events[:n]})
			events.Events = events.Events[n:]
			keep(&sample.Sample{At: sample.Stamp{Mono: at}, Jobs: []sample.Job{{ID: "job"}}})
		}
		keep(&sample.Sample{At: sample.Stamp{Mono: at}, Cores: []sample.Core{{Name: "cpu0", Idle: at}}})
		if _, err := e.Advance(nil); err != nil {
			t.Fatal(err)
		}
		if last, known := h.Last(history.LedgerBusy); known {
			behind = max(behind, at-last)
		}
	}
	return e, h, behind
}

var columns = []history.Series{
	history.LedgerBusy, history.LedgerStorage, history.LedgerCPU, history.LedgerGain, history.LedgerScheduled,
	history.LedgerGainLow, history.LedgerGainWorkers, history.LedgerWork, history.OtherGPU, history.OtherTimer,
}

// A job that is read once a second has the same ledger as one that is read ten times, at each tenth of a second.
func TestCollectedTimeIsDividedAlike(t *testing.T) {
	const length, end = 31 * time.Second, 27 * time.Second
	_, often, behind := follow(t, length, 100*ms)
	_, rarely, later := follow(t, length, time.Second)
	if least, most := collects-time.Second, collects+1200*ms; behind > 1200*ms || later < least || later > most {
		t.Errorf("the ledgers are behind by %v and %v, want 1.2 s at most, and %v to %v", behind, later, least, most)
	}
	id := ID("job", "gpu")
	grown := func(h *history.History, s history.Series, from, to time.Duration) float64 {
		d, known := h.Between(history.Key{Series: s, ID: id}, history.Point{At: from}, history.Point{At: to})
		if !known {
			t.Fatalf("series %d is not known from %v to %v", s, from, to)
		}
		return d.Value
	}
	for _, s := range columns {
		if want, got := grown(often, s, 4*time.Second, end), grown(rarely, s, 4*time.Second, end); math.Abs(got-want) > 0.02 {
			t.Errorf("series %d in all of the time: got %.4f s, want %.4f s", s, got, want)
		}
		for from := 4 * time.Second; from < end; from += 700 * ms {
			want, got := grown(often, s, from, from+900*ms), grown(rarely, s, from, from+900*ms)
			if math.Abs(got-want) > 0.02 {
				t.Errorf("series %d from %v: got %.4f s, want %.4f s", s, from, got, want)
			}
		}
	}
}

// An edge, and new targets, have the time divided at once that was left to come together.
func TestEdgeEndsCollecting(t *testing.T) {
	for name, divide := range map[string]func(*Estimator) error{
		"an edge": func(e *Estimator) error {
			_, err := e.Advance([]history.Point{{At: time.Hour, Edge: &history.Edge{}}})
			return err
		},
		"a target": func(e *Estimator) error {
			e.SetTargets([]Target{{Job: "job", GPU: "gpu", Leader: 1}, {Job: "other", GPU: "gpu"}})
			return nil
		},
	} {
		e, h, _ := follow(t, 12*time.Second, time.Second)
		before, _ := h.Last(history.LedgerBusy)
		if err := divide(e); err != nil {
			t.Fatal(err)
		}
		if after, _ := h.Last(history.LedgerBusy); after <= before || after < 11900*ms {
			t.Errorf("%s: the ledger went from %v to %v, want 11.9 s or more", name, before, after)
		}
	}
}

package ledger

import (
	"math"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// TestGainIsTakenBack: a thread reads, another one works on what was read, and at the end the first waits for it, as
// zstd's do. Without storage, the work alone would take its time, which only shows at that end.
func TestGainIsTakenBack(t *testing.T) {
	const (
		reader, worker = 1, 2
		end            = 1000 * ms
		step, work     = 10 * ms, 6 * ms // of each step, the worker works 6 ms; the reader reads all of it
	)
	h, err := history.New(history.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := New(h)
	p.SetTargets([]Target{{Job: "job", Leader: reader}})

	in := func(tid int, at time.Duration, waker int, kind sample.WakerKind) sample.ThreadEvent {
		return sample.ThreadEvent{
			TID: tid, PID: reader, At: at, Kind: sample.ThreadIn, Woken: at, Waker: waker, WakerKind: kind,
		}
	}
	out := func(tid int, at time.Duration, e sample.ThreadEvent) sample.ThreadEvent {
		e.TID, e.PID, e.At, e.Kind = tid, reader, at, sample.ThreadOut
		return e
	}
	const futex = 202
	blocked := sample.ThreadEvent{State: sample.StateBlocked, IOWait: true}
	asleep := sample.ThreadEvent{State: sample.StateAsleep, Syscall: futex}
	began := func(tid, creator int) sample.ThreadEvent {
		return sample.ThreadEvent{TID: tid, PID: reader, Kind: sample.ThreadBegan, Job: "job", Creator: creator}
	}
	events := []sample.ThreadEvent{
		began(reader, 0), in(reader, 0, 0, sample.UserThread), began(worker, reader), in(worker, 0, 0, sample.UserThread),
		out(worker, 1, asleep),
	}
	for at := step; at < end-step; at += step {
		events = append(events, out(reader, at-step+2, blocked), in(reader, at, 0, sample.Interrupt),
			in(worker, at, reader, sample.UserThread), out(worker, at+work, asleep))
	}
	last := end - step // the reader waits for the last piece of work
	events = append(events, out(reader, last, asleep), in(worker, last, reader, sample.UserThread),
		in(reader, last+work, worker, sample.UserThread), out(worker, last+work, asleep))

	for at := 100 * ms; at <= end; at += 100 * ms {
		reading := sample.Schedule{Until: at, Arch: "amd64"}
		for len(events) > 0 && events[0].At <= at {
			reading.Events, events = append(reading.Events, events[0]), events[1:]
		}
		p.Learn(&reading)
		if err := h.Append(&sample.Sample{At: sample.Stamp{Mono: at}, Jobs: []sample.Job{{ID: "job"}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Advance(nil); err != nil {
			t.Fatal(err)
		}
	}
	gain := func(from, to time.Duration) float64 {
		d, _ := h.Between(history.Key{Series: history.LedgerGain, ID: ID("job", "")}, history.Point{At: from},
			history.Point{At: to})
		return d.Value
	}
	// Of 900 ms, 99 pieces of work of 6 ms are left, less the tenth that such work takes longer after a pause.
	whole := gain(100*ms, end)
	if want := 0.36; math.Abs(whole-want) > 0.01 {
		t.Errorf("all: %.3f s gained, want %.3f", whole, want)
	}
	if before := gain(100*ms, 900*ms); before < 0.7 {
		t.Errorf("before the end: %.3f s gained, want 0.8", before)
	}
}

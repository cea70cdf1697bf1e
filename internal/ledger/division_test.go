package ledger

import (
	"math"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger/chain"
)

const ms = time.Millisecond

// steps returns readings of a GPU that are 100 ms apart, from 0 on.
func steps(busy ...float64) (all []history.Step) {
	for i, b := range busy {
		at := time.Duration(i) * 100 * ms
		all = append(all, history.Step{Start: at, End: at + 100*ms, Grown: b})
	}
	return all
}

// check compares what a block found from one moment to another.
func check(t *testing.T, b *block, from, to time.Duration, busy, storage, cpu float64) {
	t.Helper()
	var got sums
	got.add(b, &cursor{at: from}, to)
	for what, pair := range map[string][2]float64{
		"busy": {got.busy, busy}, "storage": {got.storage, storage}, "CPU": {got.cpu, cpu},
	} {
		if math.Abs(pair[0]-pair[1]) > 0.006 {
			t.Errorf("%s from %v to %v: got %.3f s, want %.3f s", what, from, to, pair[0], pair[1])
		}
	}
}

// TestWindowBeginsInBlock: a thread prepares without the GPU, and then spins for it. Each part has its own busy time.
func TestWindowBeginsInBlock(t *testing.T) {
	b := &block{timeline: chain.NewTimeline(), pieces: []chain.Piece{
		{From: 0, To: 500 * ms, Kind: chain.Work},
		{From: 500 * ms, To: 700 * ms, Kind: chain.Storage},
		{From: 700 * ms, To: 1000 * ms, Kind: chain.Work},
	}}
	b.divide(steps(0, 0, 0, 0, 0, 0, 0, 0.1, 0.1, 0.06), 20*ms, &gpuWaits{})
	check(t, b, 0, 500*ms, 0, 0, 0.5)
	check(t, b, 500*ms, time.Second, 0.26, 0.2, 0.04)
}

// TestInterpolatedSamples: where the driver's samples are longer than the readings, the end of the work may be anywhere
// in one, and what the thread did decides.
func TestInterpolatedSamples(t *testing.T) {
	b := &block{timeline: chain.NewTimeline(), pieces: []chain.Piece{
		{From: 0, To: 430 * ms, Kind: chain.Work},
		{From: 430 * ms, To: time.Second, Kind: chain.Storage},
	}}
	b.divide(steps(0.1, 0.1, 0.1, 0.07, 0.06, 0, 0, 0, 0, 0), 200*ms, &gpuWaits{})
	check(t, b, 0, 430*ms, 0.43, 0, 0)
	check(t, b, 430*ms, time.Second, 0, 0.57, 0)
}

// TestQueuedWork: a thread gives the GPU 40 ms of work and waits for a worker, which reads for 60 ms and decodes for
// 40 ms. The GPU runs out of work while the worker reads.
func TestQueuedWork(t *testing.T) {
	b := &block{timeline: chain.NewTimeline()}
	for at := time.Duration(0); at < time.Second; at += 100 * ms {
		b.pieces = append(b.pieces, chain.Piece{From: at, To: at + 60*ms, Kind: chain.Storage, Feeder: true},
			chain.Piece{From: at + 60*ms, To: at + 100*ms, Kind: chain.Work, Feeder: true})
		if at > 0 {
			b.launches = append(b.launches, at)
		}
	}
	var busy []float64
	for range 10 {
		busy = append(busy, 0.04)
	}
	b.divide(steps(busy...), 20*ms, &gpuWaits{})
	check(t, b, 0, time.Second, 0.4, 0.2, 0.4)
}

func TestGPUQueue(t *testing.T) {
	for _, test := range []struct {
		launches []time.Duration
		busy     float64
		each     time.Duration
	}{
		{nil, 0.3, 300 * ms},
		{[]time.Duration{500 * ms}, 0.4, 200 * ms},
		{[]time.Duration{100 * ms}, 0.6, 300 * ms}, // the second launch waits in the queue
		{[]time.Duration{900 * ms}, 0.5, 400 * ms}, // the end of the second lies beyond
		{[]time.Duration{500 * ms}, 0, 0},
	} {
		q := gpuQueue{0, time.Second, test.launches}
		if got := q.each(test.busy); (got - test.each).Abs() > ms {
			t.Errorf("launches at %v, busy for %v s: got %v each, want %v", test.launches, test.busy, got, test.each)
		}
	}
}

package emulate

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"
)

func TestEpochDoesWhatThePlanSays(t *testing.T) {
	f, a := prepare(t), NewAccelerator("emulated-0")
	plan := Plan{Steps: 5, RecordsPerStep: 30, Compute: 2 * time.Millisecond}
	if err := f.Cold(); err != nil {
		t.Skip(err)
	}
	before, _, err := f.Cached()
	if err != nil {
		t.Fatal(err)
	}
	if err := Epoch(t.Context(), f, a, plan); err != nil {
		t.Fatal(err)
	}
	_, busy := reading(t, a)
	if busy < 10*time.Millisecond {
		t.Errorf("the accelerator was busy for %v, want 5 steps of 2 ms", busy)
	}
	// All records have entered the page cache, and nothing else.
	found, _, err := f.Cached()
	if grown := found - before; err != nil || grown < 150*recordBytes || found > 150*f.stride()+f.Bytes()/100 {
		t.Errorf("got %d bytes more in the page cache, %v; want those of 150 records", grown, err)
	}
	if err := Epoch(t.Context(), f, a, plan); err != nil {
		t.Fatal(err)
	}
	if again, _, err := f.Cached(); err != nil || again != found {
		t.Errorf("again: got %d bytes in the page cache, %v; want the same records and %d", again, err, found)
	}
}

func TestEpochReadsNoRecordTwice(t *testing.T) {
	f := prepare(t)
	r, err := f.openRecords(calibrationShards, epochShards)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	seen := map[int]bool{}
	for _, position := range r.shuffled() {
		if seen[position] || position < 0 || position >= f.Records() {
			t.Fatalf("position %d comes twice or lies outside", position)
		}
		seen[position] = true
	}
	if len(seen) != f.Records() {
		t.Errorf("%d positions, want %d", len(seen), f.Records())
	}
	for _, position := range []int{0, r.perShard - 1, r.perShard, f.Records() - 1} {
		if err := r.read(position); err != nil {
			t.Errorf("position %d: %v", position, err)
		}
	}
}

func TestEpochRefusesAPlanOfOtherFiles(t *testing.T) {
	f := prepare(t)
	for _, plan := range []Plan{
		{Steps: 1, RecordsPerStep: f.Records() + 1},
		{Steps: f.Records() + 1, RecordsPerStep: 1},
		{Steps: math.MaxInt, RecordsPerStep: math.MaxInt},
		{Steps: -1, RecordsPerStep: 1},
		{Steps: 1, RecordsPerStep: -1},
	} {
		plan.Compute = time.Millisecond
		a := NewAccelerator("a")
		if err := Epoch(t.Context(), f, a, plan); err == nil {
			t.Errorf("Epoch with plan %+v: got no error, want one", plan)
		}
		if _, busy := reading(t, a); busy != 0 {
			t.Errorf("Epoch with plan %+v: got a busy time of %v, want no step", plan, busy)
		}
	}
	if err := Epoch(t.Context(), f, NewAccelerator("a"), Plan{}); err != nil {
		t.Errorf("the empty plan: got %v", err)
	}
}

func TestEpochStopsWithinABatch(t *testing.T) {
	f, a := prepare(t), NewAccelerator("emulated-0")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	plan := Plan{Steps: f.Records(), RecordsPerStep: 1, Compute: 10 * time.Millisecond} // almost a minute
	if err := Epoch(ctx, f, a, plan); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before it began: got %v", err)
	}
	if _, busy := reading(t, a); busy != 0 {
		t.Errorf("cancelled before it began: got a busy time of %v, want none", busy)
	}

	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for busy := time.Duration(0); busy == 0 && ctx.Err() == nil; {
			time.Sleep(time.Millisecond)
			_, busy = reading(t, a)
		}
		cancel()
	}()
	if err := Epoch(ctx, f, a, plan); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled Epoch: got %v, want the context's error", err)
	}
	if _, busy := reading(t, a); busy < plan.Compute || busy >= time.Duration(plan.Steps)*plan.Compute {
		t.Errorf("cancelled Epoch: got a busy time of %v, want that of some steps", busy)
	}
}

func BenchmarkWarmRecord(b *testing.B) {
	f := prepare(b)
	r, err := f.openRecords(0, 1)
	if err != nil {
		b.Fatal(err)
	}
	defer r.close()
	b.ReportAllocs()
	for b.Loop() {
		if err := r.read(0); err != nil {
			b.Fatal(err)
		}
	}
}

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
	plan := Plan{Seed: 1, Steps: 5, RecordsPerStep: 30, Compute: 2 * time.Millisecond}
	if err := f.Cold(); err != nil {
		t.Skip(err)
	}
	cold, err := Epoch(t.Context(), f, a, plan)
	if err != nil || cold.Steps != 5 || cold.Records != 150 || cold.Bytes != 150*recordBytes {
		t.Errorf("Epoch: got %+v, %v; want 5 steps of 30 records", cold, err)
	}
	if cold.Waited <= 0 || cold.Computed < 10*time.Millisecond || cold.Waited+cold.Computed > cold.Total {
		t.Errorf("the parts do not fit the whole: %+v", cold)
	}
	if _, busy := reading(t, a); busy != cold.Computed {
		t.Errorf("the accelerator was busy for %v and the epoch computed for %v", busy, cold.Computed)
	}
	// Only the records have entered the page cache.
	if found, _, err := f.Cached(); err != nil || found > 150*f.stride()+f.Bytes()/100 {
		t.Errorf("%d bytes cached after reading %d, %v", found, cold.Bytes, err)
	}

	warm, err := Epoch(t.Context(), f, a, plan)
	if err != nil || warm.Checksum != cold.Checksum || warm.Records != cold.Records {
		t.Errorf("again: %+v, want the same records as %+v, %v", warm, cold, err)
	}
	plan.Seed = 2
	other, err := Epoch(t.Context(), f, a, plan)
	if err != nil || other.Checksum == cold.Checksum {
		t.Errorf("with another seed: %+v, %v", other, err)
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
	for _, position := range r.shuffled(3) {
		if seen[position] || position < 0 || position >= f.Records() {
			t.Fatalf("position %d comes twice or lies outside", position)
		}
		seen[position] = true
	}
	if len(seen) != f.Records() {
		t.Errorf("%d positions, want %d", len(seen), f.Records())
	}
	for _, position := range []int{0, r.perShard - 1, r.perShard, f.Records() - 1} {
		if _, err := r.read(position); err != nil {
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
		if done, err := Epoch(t.Context(), f, NewAccelerator("a"), plan); err == nil || done.Steps != 0 {
			t.Errorf("Epoch with plan %+v: got %+v, %v; want an error and no step", plan, done, err)
		}
	}
	if done, err := Epoch(t.Context(), f, NewAccelerator("a"), Plan{}); err != nil || done.Records != 0 {
		t.Errorf("the empty plan: %+v, %v", done, err)
	}
}

func TestEpochStopsWithinABatch(t *testing.T) {
	f, a := prepare(t), NewAccelerator("emulated-0")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if done, err := Epoch(ctx, f, a, Plan{Steps: 1, RecordsPerStep: 1}); !errors.Is(err, context.Canceled) ||
		done.Records != 0 {
		t.Errorf("cancelled before it began: %+v, %v", done, err)
	}

	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	plan := Plan{Steps: f.Records(), RecordsPerStep: 1, Compute: 10 * time.Millisecond} // almost a minute
	go func() {
		for busy := time.Duration(0); busy == 0 && ctx.Err() == nil; {
			time.Sleep(time.Millisecond)
			_, busy = reading(t, a)
		}
		cancel()
	}()
	done, err := Epoch(ctx, f, a, plan)
	if !errors.Is(err, context.Canceled) || done.Records < 1 || done.Records >= plan.Steps || done.Checksum == 0 {
		t.Errorf("cancelled Epoch: got %+v, %v; want some records and the context's error", done, err)
	}
	if done.Records-done.Steps > plan.RecordsPerStep || done.Total < done.Computed {
		t.Errorf("Trained: got %+v, want what was done before the end", done)
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
		if _, err := r.read(0); err != nil {
			b.Fatal(err)
		}
	}
}

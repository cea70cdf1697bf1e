package emulate

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestCalibrateOnARealDisk(t *testing.T) {
	f, a := prepare(t), NewAccelerator("emulated-0")
	if err := f.Cold(); err != nil {
		t.Skip(err)
	}
	plan, err := Calibrate(t.Context(), f, a, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if plan.Cold <= plan.Warm || plan.Warm <= 0 || plan.Steps < 1 || plan.Compute < minCompute-us {
		t.Errorf("plan: got %+v, want 0 < warm < cold, a step, a compute time of at least %v", plan, minCompute-us)
	}
	if plan.Steps*plan.RecordsPerStep > f.Records() || plan.ColdTime() > time.Minute {
		t.Errorf("%+v takes %v", plan, plan.ColdTime())
	}
	if err := f.checkCold(f.paths()[1+calibrationShards:]...); err != nil {
		t.Error("the epochs' shards after the calibration: ", err)
	}
	_, before := reading(t, a)
	began := time.Now()
	if err := Epoch(t.Context(), f, a, plan); err != nil {
		t.Fatal(err)
	}
	if _, busy := reading(t, a); busy-before < time.Duration(plan.Steps)*plan.Compute {
		t.Errorf("Epoch: got a busy time of %v, want %d steps of %v", busy-before, plan.Steps, plan.Compute)
	}
	t.Logf("%+v: planned %v with a stall share of %.2f, took %v",
		plan, plan.ColdTime(), plan.StallShare(), time.Since(began))
}

func TestCalibrateStopsWhenCancelled(t *testing.T) {
	f, a := prepare(t), NewAccelerator("emulated-0")
	if err := f.Cold(); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // as soon as it computes
		for busy := time.Duration(0); busy == 0 && ctx.Err() == nil; {
			time.Sleep(time.Millisecond)
			_, busy = reading(t, a)
		}
		cancel()
	}()
	if plan, err := Calibrate(ctx, f, a, 0); !errors.Is(err, context.Canceled) || plan != (Plan{}) {
		t.Errorf("Calibrate of a cancelled context: got %+v, %v; want no plan and the context's error", plan, err)
	}
}

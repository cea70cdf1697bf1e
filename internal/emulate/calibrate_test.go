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
	plan, err := Calibrate(t.Context(), f, a, CalibrateOptions{EpochTime: time.Second, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	if plan.Seed != 7 || plan.Cold <= plan.Warm || plan.Warm <= 0 || plan.Steps < 1 || plan.Compute < minCompute-us {
		t.Errorf("plan: got %+v, want seed 7, 0 < warm < cold, a step, a compute time of at least %v", plan, minCompute-us)
	}
	if plan.Steps*plan.RecordsPerStep > f.Records() || plan.ColdTime() > time.Minute {
		t.Errorf("%+v takes %v", plan, plan.ColdTime())
	}
	if err := f.checkCold(f.paths()[1+calibrationShards:]...); err != nil {
		t.Error("the epochs' shards after the calibration: ", err)
	}
	done, err := Epoch(t.Context(), f, a, plan)
	if err != nil || done.Steps != plan.Steps || done.Records != plan.Steps*plan.RecordsPerStep {
		t.Errorf("Epoch: got %+v, %v; want %d steps of %d records", done, err, plan.Steps, plan.RecordsPerStep)
	}
	t.Logf("%+v: planned %v with a stall share of %.2f, took %v, reading share %.2f",
		plan, plan.ColdTime(), plan.StallShare(), done.Total, done.Waited.Seconds()/done.Total.Seconds())
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
	if plan, err := Calibrate(ctx, f, a, CalibrateOptions{}); !errors.Is(err, context.Canceled) || plan != (Plan{}) {
		t.Errorf("Calibrate of a cancelled context: got %+v, %v; want no plan and the context's error", plan, err)
	}
}

//go:build linux

package pipeline

import (
	"errors"
	"fmt"
	"time"
)

// job is prepared work.
type job interface {
	run() (Truth, error)
	close() error
}

// training is an epoch.
type training struct {
	plan       *Plan
	clock      clock
	page       *page
	maker      maker
	checkpoint *checkpoint // nil for none
	meter      *meter      // of the training thread
}

func newTraining(c clock, p *page, plan *Plan, rate float64) (*training, error) {
	o, err := newOrder(plan)
	if err != nil {
		return nil, err
	}
	t := &training{plan: plan, clock: c, page: p}
	switch plan.Style {
	case PyTorch:
		t.maker, err = newTorch(plan, rate)
	case TFData:
		t.maker, err = newTFData(c, plan, o, rate)
	default:
		t.maker, err = newSerial(c, plan, o, rate)
	}
	if err != nil {
		return nil, err
	}
	if plan.CheckpointEvery > 0 {
		if t.checkpoint, err = newCheckpoint(plan.CheckpointDir, plan.CheckpointBytes, plan.Seed); err != nil {
			return nil, errors.Join(err, t.maker.close())
		}
	}
	return t, nil
}

func (t *training) close() error {
	err := t.maker.close()
	if t.checkpoint != nil {
		err = errors.Join(err, t.checkpoint.remove())
	}
	return err
}

// run trains for all steps, in the training thread.
func (t *training) run() (truth Truth, err error) {
	if t.meter, err = newMeter(t.clock); err != nil {
		return truth, err
	}
	defer t.meter.close()
	begin := t.clock.now()
	if err := t.maker.start(); err != nil {
		return truth, err
	}
	for i := range t.plan.Steps {
		if err := t.step(i, &truth); err != nil {
			return truth, fmt.Errorf("step %d: %w", i, err)
		}
	}
	truth.Duration = t.clock.now() - begin
	truth.Other = truth.Duration - truth.Busy - truth.Read - truth.Decode - truth.Write - truth.Sync - truth.Ready
	truth.account(t.maker.totals())
	return truth, nil
}

func (t *training) step(i int, truth *Truth) error {
	ready := t.meter.delay()
	before := t.clock.now()
	d, err := t.maker.take(i)
	if err != nil {
		return err
	}
	after := t.clock.now()
	ready = t.meter.delay() - ready
	read, decode := split(d.by, i, before, after, d.made)
	truth.Read += read
	truth.Decode += decode
	truth.Ready += min(ready, after-before-read-decode)
	truth.Checksum += d.sum
	truth.Busy += t.compute()
	if t.plan.Sync > 0 {
		begin := t.clock.now()
		t.clock.sleepUntil(begin + t.plan.Sync)
		truth.Sync += t.clock.now() - begin
	}
	truth.Steps++
	if t.checkpoint != nil && truth.Steps%t.plan.CheckpointEvery == 0 {
		begin := t.clock.now()
		if err := t.checkpoint.write(); err != nil {
			return err
		}
		truth.Write += t.clock.now() - begin
	}
	return nil
}

// compute keeps the accelerator busy for the plan's time, or longer if this thread wakes up late.
func (t *training) compute() time.Duration {
	if t.plan.Compute == 0 {
		return 0
	}
	until := t.page.begin(t.clock) + t.plan.Compute
	if t.plan.Spin {
		for t.clock.now() < until {
		}
	} else {
		t.clock.sleepUntil(until)
	}
	return t.page.end(t.clock)
}

// account adds the workers' totals.
func (t *Truth) account(sum totals) {
	t.Records, t.Bytes = sum.records, sum.bytes
	r, d := sum.accounts[reading], sum.accounts[decoding]
	t.ReadTime, t.ReadReady, t.ReadCPU = r.all, r.ready, r.on
	t.ReadBlocked = max(0, r.all-r.on-r.ready)
	t.DecodeTime, t.DecodeReady = d.all, d.ready
}

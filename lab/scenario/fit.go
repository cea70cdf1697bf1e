//go:build linux

package scenario

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/stallspan/stallspan/lab/pipeline"
)

// A rehearsal has a minimum length, because a device may be faster at first. Until its speed is known, each worker
// makes two batches.
const (
	rehearsal = 700 * time.Millisecond
	firstTurn = 2
)

// fit completes a stage's plan. The program makes some batches, and fit sets the compute time, the decode time and the
// number of steps to meet the aim.
func fit(ctx context.Context, p *pipeline.Program, s *Stage, files []string) error {
	plan := &s.Plan
	plan.Files = files
	t, err := rehearse(ctx, p, s)
	if err != nil {
		return err
	}
	batch := t.Duration / time.Duration(t.Steps)
	if s.Aim.CPU > 0 {
		plan.Decode = decode(s, batch, t.ReadTime/time.Duration(t.Records))
		batch += plan.Decode * time.Duration(plan.Batch) / time.Duration(plan.Workers)
	}
	step := s.step(batch)
	if plan.CheckpointEvery > 0 {
		if step, err = checkpoints(ctx, p, s, step); err != nil {
			return err
		}
	}
	plan.Steps = max(2, min(int(s.Length/step), records(s, files)/plan.Batch))
	if s.Aim.CPU >= sideMatter || s.contends() || s.savesUp() {
		return correct(ctx, p, s)
	}
	return nil
}

// contends reports whether the accelerator's thread may take the CPU from the workers.
func (s *Stage) contends() bool {
	return s.From != Cold && s.Aim.Busy < 1 && s.Aim.Sync == 0 && s.Plan.CheckpointEvery == 0 &&
		s.Plan.Style != pipeline.Serial
}

// savesUp reports whether a step is shorter than reading its batch and computing it one after the other.
func (s *Stage) savesUp() bool { return s.saves && s.Plan.Style == pipeline.Serial && s.Aim.Busy < 1 }

// sideMatter is the share below which decoding only has to be small.
const sideMatter = 0.1

// correct runs a part of a plan whose parts disturb each other, and adjusts the decode and the compute time.
func correct(ctx context.Context, p *pipeline.Program, s *Stage) error {
	plan := &s.Plan
	whole := plan.Steps
	defer func() { plan.Steps = whole }()
	for i := range corrections {
		trial := *plan
		trial.Seed += uint64(100 + i)
		trial.Steps = max(2, whole/4)
		t, err := try(ctx, p, trial)
		if err != nil {
			return err
		}
		was := plan.Decode
		if s.Aim.CPU >= sideMatter {
			plan.Decode = corrected(was, t.Decode, t.Read, s.Aim)
		}
		more := (plan.Decode - was) * time.Duration(plan.Batch) / time.Duration(plan.Workers)
		step := t.Duration/time.Duration(trial.Steps) + more
		whole = max(2, min(int(s.Length/step), records(s, plan.Files)/plan.Batch))
		plan.Compute = time.Duration(float64(step) * s.Aim.Busy)
	}
	return nil
}

const corrections = 2

// corrected is the decode time at which the waits for decoding and for reading would meet the aim, if they were
// proportional to it. It goes half of the way, in octaves, because each takes time from the other.
func corrected(was, decoded, read time.Duration, a Aim) time.Duration {
	want := a.CPU / (1 - min(a.Busy, 1) - a.CPU - a.Sync)
	if decoded <= 0 || read <= 0 {
		return was
	}
	by := want * read.Seconds() / decoded.Seconds()
	return time.Duration(float64(was) * math.Pow(min(max(by, 0.1), 10), 0.7))
}

// rehearse makes batches at full speed.
func rehearse(ctx context.Context, p *pipeline.Program, s *Stage) (pipeline.Truth, error) {
	trial := s.Plan
	trial.CheckpointEvery, trial.Compute, trial.Sync, trial.Spin = 0, 0, 0, false
	most := records(s, trial.Files) / trial.Batch
	trial.Steps = min(max(4, firstTurn*trial.Workers), most)
	for {
		trial.Seed++ // other records, because these are cached now
		t, err := try(ctx, p, trial)
		if err != nil || t.Duration >= rehearsal/2 || trial.Steps == most {
			return t, err
		}
		trial.Steps = min(most, int(float64(trial.Steps)*min(20, 1+rehearsal.Seconds()/t.Duration.Seconds())))
	}
}

// records is the number of records.
func records(s *Stage, files []string) int { return len(files) * int(s.size/int64(s.Plan.Record)) }

// decode is the decode time of a record that meets the aim, if reading a record takes a worker the given time. Small
// decode times do not disturb the other workers.
func decode(s *Stage, batch, read time.Duration) time.Duration {
	a, p := &s.Aim, &s.Plan
	d := time.Duration(float64(read) * a.CPU / (1 - min(a.Busy, 1) - a.CPU - a.Sync))
	if a.CPU < sideMatter {
		cores := min(p.Workers, max(1, runtime.NumCPU()-1))
		d = min(d, batch/time.Duration(10*p.Batch)*time.Duration(cores))
	}
	return d
}

// sync is the length of a step with synchronisation.
const syncStep = 50 * time.Millisecond

// step sets the plan's compute and synchronisation time for batches that take the given time to make, and returns the
// length of a step.
func (s *Stage) step(batch time.Duration) time.Duration {
	a, p := &s.Aim, &s.Plan
	share := func(of time.Duration, part float64) time.Duration { return time.Duration(float64(of) * part) }
	switch {
	case a.Sync > 0:
		step := max(syncStep, batch*20)
		p.Compute, p.Sync = share(step, a.Busy), share(step, a.Sync)
		return step
	case p.CheckpointEvery > 0:
		p.Compute = max(15*time.Millisecond, batch*5)
		return p.Compute + batch
	case p.Style == pipeline.Serial && a.Busy < 1 && !s.savesUp():
		p.Compute = share(batch, a.Busy/(1-a.Busy))
		return p.Compute + batch
	case p.Style == pipeline.Serial && a.Busy >= 1:
		p.Compute = share(batch, 20*a.Busy)
		return p.Compute + batch
	}
	p.Compute = share(batch, a.Busy)
	return max(batch, p.Compute)
}

// checkpoints sets the number of steps between checkpoints, and returns the mean length of a step with them.
func checkpoints(ctx context.Context, p *pipeline.Program, s *Stage, step time.Duration) (time.Duration, error) {
	plan := &s.Plan
	trial := *plan
	trial.Seed++
	trial.Steps, trial.CheckpointEvery = 2, 1
	t, err := try(ctx, p, trial)
	if err != nil {
		return 0, err
	}
	write := t.Write / time.Duration(trial.Steps)
	every := int(s.Aim.Busy / (1 - s.Aim.Busy) * float64(write) / float64(plan.Compute))
	plan.CheckpointEvery = max(1, every)
	return step + write/time.Duration(plan.CheckpointEvery), nil
}

func try(ctx context.Context, p *pipeline.Program, plan Plan) (pipeline.Truth, error) {
	if err := p.Prepare(plan); err != nil {
		return pipeline.Truth{}, fmt.Errorf("the measuring of the storage cannot begin: %w", err)
	}
	t, err := p.Go(ctx)
	if err == nil && (t.Duration <= 0 || plan.Load == "" && t.Records == 0) {
		err = errors.New("nothing was read")
	}
	if err != nil {
		return pipeline.Truth{}, fmt.Errorf("the measuring of the storage: %w", err)
	}
	return t, nil
}

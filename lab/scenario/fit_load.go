//go:build linux

package scenario

import (
	"context"
	"time"

	"github.com/stallspan/stallspan/lab/pipeline"
)

// fitLoad sets the decode time of a load, and finds how many bytes the given number of concurrent loads read in the
// stage's time. It measures with smaller models, each of them cold once. There is one model more than corrections.
func fitLoad(
	ctx context.Context,
	p *pipeline.Program,
	s *Stage,
	small []string,
	most int64,
	loaders int,
) (int64, error) {
	plan := s.Plan
	measure := func() (pipeline.Truth, error) {
		plan.Load, small = small[0], small[1:]
		return try(ctx, p, plan)
	}
	t, err := measure()
	if err != nil {
		return 0, err
	}
	took := t.Duration * time.Duration(loaders)
	records := max(1, t.Bytes/int64(plan.Record))
	switch {
	case s.Aim.CPU > 0 && loaders > 1: // the others read while this one decodes, so decoding adds no time
		s.Plan.Decode = time.Duration(float64(took)*s.Aim.CPU) / time.Duration(records)
	case s.Aim.CPU > 0:
		plan.Decode = time.Duration(float64(took)*s.Aim.CPU/(1-s.Aim.CPU)) / time.Duration(records)
		for range corrections {
			if t, err = measure(); err != nil {
				return 0, err
			}
			plan.Decode = corrected(plan.Decode, t.Decode, t.Read, s.Aim)
		}
		took, s.Plan.Decode = t.Duration, plan.Decode
	}
	bytes := int64(float64(t.Bytes) / took.Seconds() * s.Length.Seconds())
	return min(max(bytes>>20, 1)<<20, most), nil
}

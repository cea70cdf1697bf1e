package pipeline

import (
	"fmt"
	"slices"
)

// maxWorkers and maxDepth bound a plan.
const (
	maxWorkers = 256
	maxDepth   = 4096
	maxRecord  = 1 << 30
)

// fill sets the defaults of missing values.
func (p *Plan) fill() {
	if p.Reading == "" {
		p.Reading = Buffered
	}
	if p.Style == "" {
		p.Style = Serial
	}
	if p.Load != "" && p.Record == 0 {
		p.Record = 1 << 20
	}
	p.Workers, p.Prefetch, p.Depth = max(p.Workers, 1), max(p.Prefetch, 1), max(p.Depth, 1)
}

// check returns why a filled plan cannot run.
func (p *Plan) check() error {
	switch {
	case !slices.Contains([]Reading{Buffered, Mapped, Direct, Uring}, p.Reading):
		return fmt.Errorf("unknown reading %q: it is one of %q, %q, %q and %q", p.Reading, Buffered, Mapped, Direct, Uring)
	case !slices.Contains([]Style{Serial, PyTorch, TFData}, p.Style):
		return fmt.Errorf("unknown style %q: it is one of %q, %q and %q", p.Style, Serial, PyTorch, TFData)
	case p.Record < 8 || p.Record > maxRecord:
		return fmt.Errorf("records of %d bytes: they have from 8 bytes to 1 GiB", p.Record)
	case p.Workers > maxWorkers || p.Depth > maxDepth:
		return fmt.Errorf(
			"%d workers with %d reads in flight each: the maxima are %d and %d",
			p.Workers,
			p.Depth,
			maxWorkers,
			maxDepth,
		)
	case p.Decode < 0 || p.Compute < 0 || p.Sync < 0:
		return fmt.Errorf("negative times: decode %v, compute %v, sync %v", p.Decode, p.Compute, p.Sync)
	case p.Load != "":
		return nil
	case p.Batch < 1 || p.Steps < 1:
		return fmt.Errorf("a plan of %d steps with %d records each: it needs one at least", p.Steps, p.Batch)
	case p.CheckpointEvery < 0 || p.CheckpointBytes < 0 || (p.CheckpointEvery > 0 && p.CheckpointDir == ""):
		return fmt.Errorf(
			"checkpoints of %d bytes every %d steps in %q: they need a folder",
			p.CheckpointBytes,
			p.CheckpointEvery,
			p.CheckpointDir,
		)
	}
	return nil
}

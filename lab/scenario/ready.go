//go:build linux

package scenario

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/stallspan/stallspan/lab/pipeline"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// ready completes the plans of all stages while the neighbours make their noise. It leaves all files cold and the
// neighbours stopped.
func (b *bench) ready(ctx context.Context) error {
	small, err := b.smallModels()
	if err != nil {
		return err
	}
	if err := b.slow(); err != nil {
		return err
	}
	if err := b.disturb(); err != nil {
		return err
	}
	var model int64
	for i := range b.v.Stages {
		s := &b.v.Stages[i]
		s.size = b.v.Size
		var err error
		switch {
		case s.Idle:
		case s.load():
			model, err = fitLoad(ctx, b.program, s, small, b.v.Model, 1+b.loaders())
		default:
			s.Plan.CheckpointDir = b.disk.Dir
			err = fit(ctx, b.program, s, b.of(s))
		}
		if err != nil {
			return fmt.Errorf("stage %d: %w", i+1, err)
		}
	}
	if err := b.calm(); err != nil {
		return err
	}
	if err := b.disk.Fast(); err != nil {
		return err
	}
	if err := b.writeModels(model); err != nil {
		return err
	}
	return b.slow()
}

// smallModels are loaded to measure the storage.
func (b *bench) smallModels() (paths []string, err error) {
	if b.v.Model == 0 {
		return nil, nil
	}
	size := int64(smallSize)
	if b.v.Kind == slowdisk.Spinning { // slow
		size /= 4
	}
	for i := range 1 + corrections {
		name := filepath.Join(b.disk.Dir, fmt.Sprintf("%s-%d", smallName, i))
		if err := pipeline.Model(name, size, b.v.Seed); err != nil {
			return nil, err
		}
		paths = append(paths, name)
	}
	return paths, nil
}

// of returns the files that a stage reads.
func (b *bench) of(s *Stage) []string {
	if s.From == Copied {
		return b.copies
	}
	return b.files
}

// loaders returns how many neighbours load a model.
func (b *bench) loaders() (n int) {
	for _, other := range b.neighbours {
		if other.Load {
			n++
		}
	}
	return n
}

// writeModels writes the case's model, its copy in memory, and a model for each neighbour that loads.
func (b *bench) writeModels(size int64) error {
	if size == 0 {
		return nil
	}
	b.model = modelName
	for _, dir := range []string{b.disk.Dir, b.memory.Dir} {
		if err := pipeline.Model(filepath.Join(dir, b.model), size, b.v.Seed); err != nil {
			return err
		}
	}
	for i, n := range b.neighbours {
		if n.Load {
			if err := pipeline.Model(b.neighbourModel(i), size, b.v.Seed); err != nil {
				return err
			}
		}
	}
	for i := range b.v.Stages {
		if s := &b.v.Stages[i]; s.load() {
			s.Plan.Load = filepath.Join(b.disk.Dir, b.model)
		}
	}
	return nil
}

// neighbourModel is the model of the given neighbour.
func (b *bench) neighbourModel(i int) string {
	return filepath.Join(b.disk.Dir, fmt.Sprintf("%s-%d", modelName, i))
}

// rerun does a stage's work again, alone and from memory.
func (b *bench) rerun(ctx context.Context, s *Stage) (pipeline.Truth, error) {
	plan := s.Plan
	plan.Files = b.copies
	plan.CheckpointDir = b.memory.Dir
	if plan.Load != "" {
		plan.Load = filepath.Join(b.memory.Dir, b.model)
	}
	t, err := try(ctx, b.program, plan)
	if err != nil {
		return t, fmt.Errorf("the rerun from memory: %w", err)
	}
	return t, nil
}

//go:build linux

package scenario

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/stallspan/stallspan/internal/monitor/follow"
	"github.com/stallspan/stallspan/lab/pipeline"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// bench holds what one variant runs on. close releases its parts in reverse order.
type bench struct {
	v      *Variant
	shared bool    // programs share the cgroup of this process
	rate   float64 // of decoding, rounds a second

	disk       *slowdisk.Disk // holds the files
	memory     *slowdisk.Disk // holds their copies
	files      []string
	copies     []string
	model      string // relative to either Dir
	program    *pipeline.Program
	group      *follow.Cgroup // nil if the program has no cgroup of its own
	neighbours []*neighbour

	undo []func() error
}

// neighbour is another program on the machine.
type neighbour struct {
	*Neighbour
	disk    *slowdisk.Disk
	program *pipeline.Program
	running bool
}

func (b *bench) close() (err error) {
	for i := len(b.undo) - 1; i >= 0; i-- {
		err = errors.Join(err, b.undo[i]())
	}
	b.undo = nil
	return err
}

const (
	spare     = 96 << 20 // bytes that a file system needs in addition to the files
	modelName = "model"
	smallName = "small"
	smallSize = 32 << 20 // bytes of the model that is loaded to measure the storage
)

// open creates the storage, writes the files and starts the programs.
func (b *bench) open(ctx context.Context) (err error) {
	bytes := int64(b.v.Files)*b.v.Size + b.v.Model + (1+corrections)*smallSize
	size := bytes + spare
	for i := range b.v.Neighbours {
		if n := &b.v.Neighbours[i]; n.Load {
			size += b.v.Model
		} else if n.Kind == "" {
			size += n.Size
		}
	}
	for i := range b.v.Stages {
		size += 2 * b.v.Stages[i].Plan.CheckpointBytes
	}
	if b.disk, err = b.storage(ctx, b.v.Kind, b.v.Options, size); err != nil {
		return err
	}
	if b.memory, err = b.storage(ctx, slowdisk.Memory, slowdisk.Options{}, size); err != nil {
		return err
	}
	if b.v.Files > 0 {
		if b.files, err = pipeline.Layout(b.disk.Dir, b.v.Files, b.v.Size, b.v.Seed); err != nil {
			return err
		}
		if b.copies, err = pipeline.Layout(b.memory.Dir, b.v.Files, b.v.Size, b.v.Seed); err != nil {
			return err
		}
	}
	if b.program, b.group, err = b.start(ctx); err != nil {
		return err
	}
	for i := range b.v.Neighbours {
		if err := b.prepare(ctx, &b.v.Neighbours[i]); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) storage(
	ctx context.Context,
	kind slowdisk.Kind,
	o slowdisk.Options,
	size int64,
) (*slowdisk.Disk, error) {
	o.Size = size
	d, err := slowdisk.Open(ctx, kind, o)
	if err != nil {
		return nil, err
	}
	b.undo = append(b.undo, d.Close)
	return d, nil
}

const (
	cgroupName = "stallspan-scenario-"
	leaving    = 2 * time.Second // time for processes to exit
)

// start starts a program, in a cgroup of its own unless programs share one.
func (b *bench) start(ctx context.Context) (*pipeline.Program, *follow.Cgroup, error) {
	o := pipeline.StartOptions{Rate: b.rate}
	var group *follow.Cgroup
	if !b.shared {
		g, err := follow.NewCgroup(cgroupName)
		if err != nil {
			return nil, nil, fmt.Errorf("no cgroup for the program: %w", err)
		}
		b.undo = append(b.undo, func() error { return g.Remove(leaving) })
		group, o.Cgroup = g, g.Dir
	}
	p, err := pipeline.Start(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	b.undo = append(b.undo, p.Close)
	return p, group, nil
}

// prepare prepares a neighbour.
func (b *bench) prepare(ctx context.Context, of *Neighbour) (err error) {
	n := &neighbour{Neighbour: of, disk: b.disk}
	if of.Kind != "" {
		if n.disk, err = b.storage(ctx, of.Kind, of.Options, of.Size+spare); err != nil {
			return err
		}
	}
	if n.program, _, err = b.start(ctx); err != nil {
		return err
	}
	if !n.Load {
		n.Noise.Files = []string{filepath.Join(n.disk.Dir, fmt.Sprintf("noise-%d", len(b.neighbours)))}
		if err := pipeline.Model(n.Noise.Files[0], n.Size, n.Noise.Seed); err != nil {
			return err
		}
	}
	b.neighbours = append(b.neighbours, n)
	if n.disk != b.disk {
		return n.disk.Slow()
	}
	return nil
}

// slow drops all files from the page cache and makes the storage slow, unless the stage reads nothing from it.
func (b *bench) slow() error {
	for i := range b.v.Stages {
		if b.v.Stages[i].cold() {
			return b.disk.Slow()
		}
	}
	return nil
}

// disturb starts the neighbours that make noise; calm stops them.
func (b *bench) disturb() error {
	for _, n := range b.neighbours {
		if n.Load {
			continue
		}
		if err := n.program.StartNoise(n.Noise); err != nil {
			return err
		}
		n.running = true
	}
	return nil
}

func (b *bench) calm() (err error) {
	for _, n := range b.neighbours {
		if n.running && !n.Load {
			n.running = false
			_, stopped := n.program.StopNoise()
			err = errors.Join(err, stopped)
		}
	}
	return err
}

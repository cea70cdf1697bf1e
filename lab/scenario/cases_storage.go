package scenario

import (
	"time"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/lab/pipeline"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// storageCases wait for each kind of device.
func storageCases() []Case {
	return []Case{
		{Name: "storage_spinning", Label: window.StorageBound, Short: true, Make: func(d *draw) Variant {
			v := epoch(d, slowdisk.Spinning, slowdisk.Options{Delay: d.lasting(7*time.Millisecond, 12*time.Millisecond)})
			v.Stages[0].Plan.Record = pick(d, 16, 32, 64) << 10
			return v
		}},
		{Name: "storage_sata", Label: window.StorageBound, Short: true, Make: func(d *draw) Variant {
			v := epoch(d, slowdisk.SATA, slowdisk.Options{BytesPerSecond: int64(d.whole(48, 80)) << 20})
			v.Files, v.Size = 6, 64<<20
			v.Stages[0].Plan.Record = pick(d, 256, 512) << 10
			return v
		}},
		{Name: "storage_parallel_saturated", Label: window.StorageBound, Make: func(d *draw) Variant {
			v := epoch(
				d,
				slowdisk.Parallel,
				slowdisk.Options{Delay: d.lasting(4*time.Millisecond, 8*time.Millisecond), Width: d.whole(4, 8)},
			)
			p := &v.Stages[0].Plan
			p.Style, p.Record, p.Workers, p.Batch = turn(
				d,
				style,
				pipeline.PyTorch,
				pipeline.TFData,
			), pick(
				d,
				16,
				32,
			)<<10, d.whole(
				12,
				16,
			), d.whole(
				16,
				32,
			)
			p.Depth = 4
			v.Files, v.Size = 8, 40<<20
			return v
		}},
		{Name: "storage_throttled", Label: window.StorageBound, Short: true, Make: func(d *draw) Variant {
			v := epoch(d, slowdisk.Throttled, slowdisk.Options{IOPS: d.whole(150, 300)})
			v.Stages[0].Plan.Record = pick(d, 16, 32) << 10
			v.Stages[0].Aim.Busy = d.between(0.3, 0.45) // the limit is uneven: a time slice may pass more
			return v
		}},
		{Name: "storage_network", Label: window.StorageBound, Short: true, Make: func(d *draw) Variant {
			v := epoch(d, slowdisk.Network, slowdisk.Options{Delay: d.lasting(3*time.Millisecond, 8*time.Millisecond)})
			p := &v.Stages[0].Plan
			p.Record, p.Reading = pick(d, 32, 64)<<10, turn(d, reading, pipeline.Buffered, pipeline.Mapped, pipeline.Direct)
			return v
		}},
		{Name: "noisy_neighbour", Label: window.StorageBound, Make: func(d *draw) Variant {
			v := epoch(d, slowdisk.Spinning, slowdisk.Options{Delay: d.lasting(3*time.Millisecond, 5*time.Millisecond)})
			v.Stages[0].Plan.Record = 16 << 10
			v.Neighbours = []Neighbour{
				{
					Size:  32 << 20,
					Noise: pipeline.Noise{Seed: d.Uint64(), Reading: pipeline.Direct, Record: 32 << 10, Workers: d.whole(1, 2)},
				},
			}
			return v
		}},
		{Name: "checkpoint_write", Label: window.StorageBound, Short: true, Make: checkpoint},
	}
}

// epoch reads records from a disk and computes on them for a third to two thirds of the time.
func epoch(d *draw, kind slowdisk.Kind, o slowdisk.Options) Variant {
	making := turn(d, style, pipeline.Serial, pipeline.PyTorch, pipeline.TFData)
	workers := d.whole(2, 4)
	if making == pipeline.Serial {
		workers = 1
	}
	return Variant{
		Kind: kind, Options: o, Files: d.whole(4, 8), Size: 24 << 20,
		Stages: []Stage{{
			Length: d.length,
			Plan: Plan{
				Seed: d.Uint64(), Record: 32 << 10, Depth: d.whole(4, 8),
				Reading: turn(d, reading, pipeline.Buffered, pipeline.Mapped, pipeline.Direct, pipeline.Uring),
				Style:   making, Workers: workers, Prefetch: d.whole(2, 4), Batch: d.whole(4, 10), Spin: d.spins(),
			},
			Aim: Aim{Busy: d.between(0.3, 0.55), CPU: d.between(0.02, 0.05)},
		}},
	}
}

// checkpoint reads from memory and waits for its own writes.
func checkpoint(d *draw) Variant {
	v := epoch(d, slowdisk.SATA, slowdisk.Options{BytesPerSecond: int64(d.whole(48, 80)) << 20})
	s := &v.Stages[0]
	s.From = Copied
	s.Plan.Reading, s.Plan.Decode = turn(d, reading, pipeline.Buffered, pipeline.Mapped), 100*time.Microsecond
	s.Plan.CheckpointEvery, s.Plan.CheckpointBytes = 1, int64(d.whole(12, 24))<<20
	s.Aim = Aim{Busy: d.between(0.4, 0.6)}
	return v
}

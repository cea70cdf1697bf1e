package scenario

import (
	"runtime"
	"time"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/lab/pipeline"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// computeCases are bound by the CPU or by the accelerator.
func computeCases() []Case {
	return []Case{
		{Name: "cpu_few_workers", Label: window.CPUBound, Short: true, Make: func(d *draw) Variant {
			return decoding(d, turn(d, style, pipeline.Serial, pipeline.PyTorch, pipeline.TFData), 1)
		}},
		{Name: "cpu_many_workers", Label: window.CPUBound, Short: true, Make: func(d *draw) Variant {
			return decoding(d, turn(d, style, pipeline.PyTorch, pipeline.TFData), d.whole(4, 6)*runtime.NumCPU())
		}},
		{Name: "gpu_bound", Label: window.GPUBound, Short: true, Make: computing},
		{Name: "gpu_parallel", Label: window.GPUBound, Make: func(d *draw) Variant {
			v := epoch(
				d,
				slowdisk.Parallel,
				slowdisk.Options{Delay: d.lasting(3*time.Millisecond, 5*time.Millisecond), Width: 64},
			)
			s := &v.Stages[0]
			s.Plan.Style, s.Plan.Reading = turn(
				d,
				style,
				pipeline.PyTorch,
				pipeline.TFData,
			), turn(
				d,
				reading,
				pipeline.Direct,
				pipeline.Uring,
			)
			s.Plan.Record, s.Plan.Workers, s.Plan.Batch, s.Plan.Depth = 16<<10, 8, d.whole(3, 5), 4
			s.Aim = Aim{Busy: d.between(2, 2.5)}
			s.Plan.Decode = 100 * time.Microsecond
			return v
		}},
		{Name: "gpu_beside_io", Label: window.GPUBound, Short: true, Make: func(d *draw) Variant {
			return busyDisk(d, computing(d))
		}},
		{Name: "cpu_beside_io", Label: window.CPUBound, Make: func(d *draw) Variant {
			return busyDisk(d, decoding(d, turn(d, style, pipeline.Serial, pipeline.PyTorch, pipeline.TFData), 1))
		}},
	}
}

// busyDisk adds a neighbour that keeps another disk busy.
func busyDisk(d *draw, v Variant) Variant {
	v.Neighbours = []Neighbour{{
		Kind: slowdisk.Spinning, Options: slowdisk.Options{Delay: d.lasting(5*time.Millisecond, 10*time.Millisecond)},
		Size: 64 << 20,
		Noise: pipeline.Noise{
			Seed: d.Uint64(), Reading: turn(d, noise, pipeline.Direct, pipeline.Buffered), Record: 64 << 10,
			Workers: d.whole(2, 6),
		},
	}}
	return v
}

// decoding reads from the page cache or tmpfs and decodes what it reads.
func decoding(d *draw, making pipeline.Style, workers int) Variant {
	v := epoch(d, turn(d, device, slowdisk.Local, slowdisk.Memory), slowdisk.Options{})
	s := &v.Stages[0]
	s.From = Cached
	s.Plan.Style, s.Plan.Workers, s.Plan.Batch = making, workers, d.whole(4, 8)
	s.Plan.Reading = turn(d, reading, pipeline.Buffered, pipeline.Mapped)
	s.Plan.Decode = d.lasting(2*time.Millisecond, 5*time.Millisecond)
	s.Aim = Aim{Busy: d.between(0.3, 0.5)}
	return v
}

// computing reads from the page cache or tmpfs; the accelerator is the slowest part.
func computing(d *draw) Variant {
	v := decoding(d, turn(d, style, pipeline.PyTorch, pipeline.TFData), 2)
	s := &v.Stages[0]
	s.Plan.Decode = d.lasting(300*time.Microsecond, 900*time.Microsecond)
	s.Plan.Record, v.Files, v.Size = 16<<10, 8, 24<<20
	s.Aim = Aim{Busy: d.between(3, 4)}
	return v
}

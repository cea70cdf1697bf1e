package scenario

import (
	"time"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/lab/pipeline"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// loadCases load models.
func loadCases() []Case {
	return []Case{
		{Name: "load_cold_read", Label: window.StorageBound, Short: true, Make: func(d *draw) Variant {
			return load(d, turn(d, reading, pipeline.Buffered, pipeline.Direct, pipeline.Uring))
		}},
		{Name: "load_cold_mmap", Label: window.StorageBound, Make: func(d *draw) Variant { return load(d, pipeline.Mapped) }},
		{Name: "load_warm", Label: window.CPUBound, Make: func(d *draw) Variant {
			v := load(d, turn(d, reading, pipeline.Buffered, pipeline.Mapped))
			v.Kind, v.Options, v.Model = slowdisk.Local, slowdisk.Options{}, int64(d.whole(768, 1024))<<20
			s := &v.Stages[0]
			s.From, s.Aim = Cached, Aim{}
			s.Plan.Record, s.Plan.Decode, s.Plan.Workers = 1<<20, d.lasting(2*time.Millisecond, 4*time.Millisecond), 1
			return v
		}},
		{Name: "io_storm", Label: window.StorageBound, Make: func(d *draw) Variant {
			v := load(d, turn(d, reading, pipeline.Buffered, pipeline.Direct))
			v.Stages[0].Aim.CPU = d.between(0.14, 0.18)
			for range d.whole(2, 3) {
				v.Neighbours = append(v.Neighbours, Neighbour{Load: true})
			}
			return v
		}},
	}
}

// load reads a model from a disk whose kind takes turns, and decodes it while it arrives.
func load(d *draw, by pipeline.Reading) Variant {
	v := Variant{Kind: turn(d, device, slowdisk.SATA, slowdisk.Spinning, slowdisk.Throttled)}
	switch v.Kind {
	case slowdisk.SATA:
		v.Options.BytesPerSecond, v.Model = int64(d.whole(48, 80))<<20, 384<<20
	case slowdisk.Spinning:
		v.Options.Delay, v.Model = d.lasting(5*time.Millisecond, 10*time.Millisecond), 256<<20
	default:
		v.Options.BytesPerSecond, v.Model = int64(d.whole(48, 80))<<20, 384<<20
	}
	v.Stages = []Stage{{Length: d.length, Aim: Aim{CPU: d.between(0.2, 0.25)}, Plan: Plan{
		Seed: d.Uint64(), Reading: by, Record: pick(d, 256, 512, 1024) << 10, Workers: 1, Depth: 4,
	}}}
	return v
}

package scenario

import (
	"time"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/lab/pipeline"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// otherCases are bound by something that neither disk nor CPU evidence shows, or by more than one resource.
func otherCases() []Case {
	return []Case{
		{Name: "sync_wait", Label: window.Unknown, Short: true, Make: waiting},
		{Name: "stranger_disk", Label: window.Unknown, Make: idleNextToBusyDisk},
		{Name: "stranger_network", Label: window.Unknown, Make: func(d *draw) Variant {
			v := waiting(d)
			v.Neighbours = []Neighbour{{
				Kind: slowdisk.Network, Options: slowdisk.Options{Delay: d.lasting(5*time.Millisecond, 10*time.Millisecond)},
				Size:  64 << 20,
				Noise: pipeline.Noise{Seed: d.Uint64(), Reading: pipeline.Buffered, Record: 64 << 10, Workers: d.whole(2, 6)},
			}}
			return v
		}},
		{Name: "idle", Label: window.Unknown, Make: func(d *draw) Variant {
			return Variant{Kind: slowdisk.Memory, Stages: []Stage{{Length: d.length, Idle: true}}}
		}},
		{Name: "mixed", Label: window.Mixed, Make: func(d *draw) Variant {
			v := epoch(d, turn(d, device, slowdisk.Spinning, slowdisk.SATA, slowdisk.Network), slowdisk.Options{})
			s := &v.Stages[0]
			s.Plan.Style, s.Plan.Workers = turn(d, style, pipeline.Serial, pipeline.PyTorch, pipeline.TFData), 1
			s.Plan.Reading = turn(d, reading, pipeline.Buffered, pipeline.Direct)
			if s.Plan.Record = 16 << 10; v.Kind == slowdisk.SATA {
				s.Plan.Record, v.Size = 256<<10, 48<<20
			}
			s.Aim.Busy = d.between(0.2, 0.3)
			s.Aim.CPU = (1 - s.Aim.Busy) / 2
			return v
		}},
		{Name: "phase_change", Label: window.GPUBound, Short: true, Make: phases},
	}
}

// waiting waits for other nodes and reads from memory.
func waiting(d *draw) Variant {
	v := decoding(d, turn(d, style, pipeline.PyTorch, pipeline.TFData, pipeline.Serial), 1)
	s := &v.Stages[0]
	s.Plan.Decode = 50 * time.Microsecond
	s.Aim.Busy = d.between(0.1, 0.25)
	s.Aim.Sync = 0.95 - s.Aim.Busy
	return v
}

// idleNextToBusyDisk waits for other nodes while its workers read ahead from a disk that is fast enough. A neighbour
// keeps a long queue on another disk.
func idleNextToBusyDisk(d *draw) Variant {
	v := epoch(d, slowdisk.Parallel, slowdisk.Options{Delay: d.lasting(2*time.Millisecond, 4*time.Millisecond), Width: 64})
	s := &v.Stages[0]
	s.Plan.Style, s.Plan.Workers, s.Plan.Record = turn(d, style, pipeline.PyTorch, pipeline.TFData), d.whole(2, 4), 16<<10
	s.Plan.Decode = 50 * time.Microsecond
	s.Aim = Aim{Busy: d.between(0.25, 0.33)}
	s.Aim.Sync = 0.95 - s.Aim.Busy
	v = busyDisk(d, v)
	v.Neighbours[0].Noise.Workers = d.whole(12, 24)
	return v
}

// phases changes the limiting resource in the middle.
func phases(d *draw) Variant {
	if d.length == fullLength && turn(d, length, false, true) {
		d.length = longLength
	}
	v := epoch(d, turn(d, device, slowdisk.Spinning, slowdisk.SATA), slowdisk.Options{})
	v.Stages[0].Label, v.Stages[0].Plan.Record = window.StorageBound, 64<<10
	v.Stages[0].Aim = Aim{Busy: d.between(0.2, 0.3), CPU: 0.02}
	v.Stages[0].Length += d.length / 4 // the storage share of this phase is smaller than the other share of the first one
	if v.Kind == slowdisk.SATA {
		// enough data for the length of the phase
		v.Files, v.Size, v.Stages[0].Plan.Record = 6, 64<<20, 256<<10
		if d.length == longLength {
			v.Files = 10
		}
	}
	first := computing(d)
	first.Stages[0].Label, v.Whole = window.GPUBound, window.StorageBound
	if turn(d, order, false, true) {
		first = decoding(d, turn(d, style, pipeline.PyTorch, pipeline.TFData), 1)
		first.Stages[0].Label, v.Whole = window.CPUBound, window.Mixed
		first.Stages[0].Aim = Aim{Busy: v.Stages[0].Aim.Busy}
	}
	first.Stages[0].From = Copied
	v.Stages = []Stage{first.Stages[0], v.Stages[0]}
	return v
}

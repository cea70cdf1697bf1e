package loads

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
)

// gpuMemory follows the memory in use on the job's GPUs.
type gpuMemory struct {
	used  uint64
	since time.Duration // the look before it grew first, in the present growth
	grew  time.Duration // the last look that saw it grow
}

// pending is a load whose bytes are read: what follows may belong to it.
type pending struct {
	found   detect.Found
	readEnd time.Duration
	until   time.Duration
	listens int
	device  interval
}

// devices follows the memory of GPUs, and compilations.
func (d *Detector) devices(f *detect.Facts) {
	grown := f.GPUMemory > d.gpu.used+d.gpu.used/256+(1<<20)
	if grown && d.gpu.used > 0 || d.gpu.used == 0 && f.GPUMemory > 0 {
		if f.At-d.gpu.grew > flat {
			d.gpu.since = f.Last
		}
		d.gpu.grew = f.At
	}
	d.gpu.used = f.GPUMemory
}

// resolve reports the loads that nothing follows any more.
func (d *Detector) resolve(f *detect.Facts, all bool) {
	d.pending = slices.DeleteFunc(d.pending, func(p *pending) bool {
		if !d.extend(p, f) && !all && f.At < p.until {
			return false
		}
		d.out = append(d.out, p.found)
		return true
	})
}

// extend adds to a load what followed its last byte. It reports whether the load is over for sure.
func (d *Detector) extend(p *pending, f *detect.Facts) (over bool) {
	if f.HasGPU && d.gpu.grew > p.found.Start && d.gpu.since <= p.readEnd+serving && d.gpu.grew > p.device.end {
		p.device = interval{max(d.gpu.since, p.found.Start), d.gpu.grew}
		p.found.End = max(p.found.End, d.gpu.grew)
		p.until = max(p.until, f.At+flat)
	}
	if f.HasGPU && p.listens == 0 {
		p.until = max(p.until, min(p.readEnd+warmUp, f.At+serving))
	}
	compile := d.compile.end > p.readEnd && d.compile.start >= p.found.Start && d.compile.start <= p.readEnd+warmUp
	if compile && f.At-d.compile.end < quiet && p.listens <= 0 {
		p.until = max(p.until, min(p.readEnd+compiling, f.At+quiet))
	}
	listen := p.listens >= 0 && f.Listening > p.listens
	if !listen {
		if f.Listening >= 0 && p.listens < 0 {
			p.listens = f.Listening
		}
		if f.At >= p.until {
			p.phases(0, interval{}, f)
		}
		return false
	}
	end := f.Last + (f.At-f.Last)/2
	p.found.End, p.found.EndOpen = max(p.found.End, end), f.At-f.Last
	compiled := interval{}
	if compile {
		compiled = d.compile
	}
	p.phases(end, compiled, f)
	return true
}

// phases adds the phases after the reading; listens is when the job began to listen, 0 if it did not.
func (p *pending) phases(listens time.Duration, compiled interval, f *detect.Facts) {
	after := p.readEnd
	if p.device.end > p.device.start {
		p.found.Phases = append(p.found.Phases, detect.Phase{
			Name: ToDevice, Start: p.device.start, End: min(p.device.end, p.found.End),
		})
		after = max(after, p.device.end)
	}
	if compiled.end > compiled.start {
		p.found.Phases = append(p.found.Phases, detect.Phase{
			Name: Compile, Start: compiled.start, End: min(compiled.end, p.found.End),
		})
		after = max(after, compiled.end)
	}
	if listens <= after || !f.HasGPU {
		return
	}
	first, ok1 := f.Past.Level(detect.GPUBusy, after)
	last, ok2 := f.Past.Level(detect.GPUBusy, listens)
	if ok1 && ok2 && last-first > 0.01 {
		if at, ok := hintFrom(f.Past, after, listens, first, last); ok {
			p.found.Phases = append(p.found.Phases, detect.Phase{Name: WarmUp, Start: at, End: listens})
		}
	}
}

// hintFrom returns when the GPU began to work.
func hintFrom(past detect.Past, from, to time.Duration, first, last float64) (time.Duration, bool) {
	step := max(50*time.Millisecond, (to-from)/1000)
	for at := from; at < to; at += step {
		if level, ok := past.Level(detect.GPUBusy, at); ok && level-first > 0.01*(last-first) {
			return max(from, at-step), true
		}
	}
	return 0, false
}

package loads

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
)

// pending is a load whose bytes are read: what follows may belong to it.
type pending struct {
	found   detect.Found
	readEnd time.Duration
	until   time.Duration
	listens int
	unnamed bool    // see transfer.named
	part    bool    // less than half of the model was read: it has to come to the GPU
	grew    float64 // bytes by which memory of GPUs grew with it
}

// resolve reports the loads that nothing follows any more.
func (d *Detector) resolve(f *detect.Facts, all bool) {
	d.pending = slices.DeleteFunc(d.pending, func(p *pending) bool {
		if !d.extend(p, f, all) {
			return false
		}
		if p.unnamed {
			if size := float64(p.found.Bytes); p.grew < 0.7*size || p.grew > 1.3*size {
				return true
			}
			p.found.Confidence = copied
		}
		if p.part && d.gpu.grew(p.found.Start, p.readEnd) < minCopied*float64(p.found.Bytes) {
			return true
		}
		d.out = append(d.out, p.found)
		return true
	})
}

// extend adds to a load what followed its last byte. It reports whether the load is over: at once if all are.
func (d *Detector) extend(p *pending, f *detect.Facts, all bool) (over bool) {
	limit := f.At
	next, followed := d.next(p) // what follows from there on belongs to the next load
	if followed {
		limit = next
	}
	var copies []step
	if f.HasGPU {
		copies = d.gpu.copies(p, limit)
	}
	if followed {
		p.until = min(p.until, next+lagging)
	} else {
		d.wait(p, f, copies)
	}
	listens := !followed && p.listens >= 0 && f.Listening > p.listens
	if f.Listening >= 0 && p.listens < 0 {
		p.listens = f.Listening
	}
	if !all && !listens && f.At < p.until {
		return false
	}
	d.end(p, f, copies, listens)
	return true
}

// compiles reports whether the job's newest compilation belongs to a load.
func (d *Detector) compiles(p *pending) bool {
	return d.compile.end > p.readEnd && d.compile.start >= p.found.Start && d.compile.start <= p.readEnd+warmUp
}

// wait sets until when something may follow that belongs to a load.
func (d *Detector) wait(p *pending, f *detect.Facts, copies []step) {
	if n := len(copies); n > 0 {
		p.until = max(p.until, copies[n-1].at+flat)
	}
	if f.HasGPU && p.listens == 0 {
		p.until = max(p.until, min(p.readEnd+warmUp, f.At+serving))
	}
	if d.compiles(p) && f.At-d.compile.end < quiet && p.listens <= 0 {
		p.until = max(p.until, min(p.readEnd+compiling, f.At+quiet))
	}
}

// end sets when a load ended, and its phases after the reading. It may have ended because its job listens.
func (d *Detector) end(p *pending, f *detect.Facts, copies []step, listens bool) {
	var device, compiled interval
	for _, s := range copies {
		p.grew += float64(s.to - s.from)
	}
	if len(copies) > 0 {
		end, open := ended(copies, p, f.Past)
		device = interval{max(copies[0].last, p.found.Start), end}
		if end > p.found.End {
			p.found.End, p.found.EndOpen = end, open
		}
	}
	if !listens {
		p.phases(0, device, compiled, f)
		return
	}
	end := f.Last + (f.At-f.Last)/2
	p.found.End, p.found.EndOpen = max(p.found.End, end), f.At-f.Last
	if d.compiles(p) {
		compiled = d.compile
	}
	p.phases(end, device, compiled, f)
}

// next returns when the load after this one began.
func (d *Detector) next(p *pending) (at time.Duration, ok bool) {
	earliest := func(begin time.Duration) {
		if begin >= p.readEnd && (!ok || begin < at) {
			at, ok = begin, true
		}
	}
	for _, t := range d.reads {
		if t.moved && t.named {
			earliest(t.open.start)
		}
	}
	for _, other := range d.pending {
		if other != p && !other.unnamed {
			earliest(other.found.Start)
		}
	}
	return at, ok
}

// phases adds the phases after the reading; listens is when the job began to listen, 0 if it did not.
func (p *pending) phases(listens time.Duration, device, compiled interval, f *detect.Facts) {
	after := p.readEnd
	if device.end > device.start {
		p.found.Phases = append(p.found.Phases, detect.Phase{
			Name: ToDevice, Start: device.start, End: min(device.end, p.found.End),
		})
		after = max(after, device.end)
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
	step := max(50*time.Millisecond, (listens-after)/1000)
	if at, ok := grewFrom(f.Past, detect.GPUBusy, interval{after, listens}, step, 0.01, 0.01); ok {
		p.found.Phases = append(p.found.Phases, detect.Phase{Name: WarmUp, Start: at, End: listens})
	}
}

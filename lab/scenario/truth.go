package scenario

import (
	"fmt"

	"github.com/stallspan/stallspan/lab/pipeline"
)

// waits are the program's own figures.
func waits(t *pipeline.Truth) Waits {
	return Waits{
		Duration: t.Duration.Seconds(), Busy: t.Busy.Seconds(), Read: t.Read.Seconds(), Decode: t.Decode.Seconds(),
		Write: t.Write.Seconds(), Sync: t.Sync.Seconds(), Ready: t.Ready.Seconds(), Other: t.Other.Seconds(),
	}
}

// truth returns how a window of the given length was spent. rerun is the same work from memory; nil without one.
func truth(seconds float64, plan *Plan, ran, rerun *pipeline.Truth) Truth {
	t := Truth{
		Raw: waits(
			ran,
		), ReadBlocked: ran.ReadBlocked.Seconds(), ReadReady: ran.ReadReady.Seconds(), ReadCPU: ran.ReadCPU.Seconds(),
		DecodeReady: ran.DecodeReady.Seconds(), Compute: plan.Compute.Seconds(), Decode: plan.Decode.Seconds(),
		Steps: ran.Steps, Checksum: ran.Checksum,
	}
	if rerun != nil {
		again := waits(rerun)
		t.Rerun = &again
	}
	if t.Load = plan.Load != ""; t.Load {
		t.Steps = 1
	}
	t.Pool = plan.Style == pipeline.TFData && plan.Workers > 1
	t.derive(seconds)
	return t
}

// derive splits a window by the program's log. The rerun from memory shows what reading costs there: that part of the
// wait belongs to the CPU, the rest to storage. Without a rerun nothing belongs to storage.
func (t *Truth) derive(seconds float64) {
	ran := t.Raw
	again := ran
	if t.Rerun != nil {
		again = *t.Rerun
		if again.Duration > 0 {
			t.Speedup = t.Raw.Duration / again.Duration
		}
	}
	if t.Load {
		ran.spread()
		again.spread()
	}
	reading, writing := min(ran.Read, again.Read), min(ran.Write, again.Write)
	t.Busy, t.CPU = ran.Busy, ran.Decode+reading+ran.Ready
	t.Storage = ran.Read - reading + ran.Write - writing
	if t.Rerun != nil {
		t.Unexplained = t.Raw.Duration - again.Duration - t.Storage
	}
	t.finish(seconds)
}

// spread charges the time after a load's first workers ended in proportion to the work of all of them, because the load
// continued.
func (w *Waits) spread() {
	if did := w.Read + w.Decode; did > 0 && w.Other > 0 {
		w.Read += w.Other * w.Read / did
		w.Decode += w.Other * w.Decode / did
		w.Other = 0
	}
}

// finish assigns the rest of the window to other and finds the verdict.
func (t *Truth) finish(seconds float64) {
	t.Other = max(0, seconds-t.Busy-t.Storage-t.CPU)
	t.Verdict = t.Label()
}

// join returns the truth of a window around others.
func join(seconds float64, parts []Truth) Truth {
	var t Truth
	var rerun Waits
	for i := range parts {
		p := &parts[i]
		t.Pool = t.Pool || p.Pool
		t.Busy += p.Busy
		t.Storage += p.Storage
		t.CPU += p.CPU
		t.Raw.Duration += p.Raw.Duration
		again := &p.Raw
		if p.Rerun != nil {
			again, t.Rerun = p.Rerun, &rerun
		}
		rerun.Duration += again.Duration
	}
	if t.Rerun != nil && rerun.Duration > 0 {
		t.Speedup = t.Raw.Duration / rerun.Duration
		t.Unexplained = t.Raw.Duration - rerun.Duration - t.Storage
	}
	t.finish(seconds)
	return t
}

// wholeEnd is the suffix of the name of a window around others.
const wholeEnd = "/whole"

// judge finds the verdict of the truth and reports whether the label holds.
func (r *Result) judge() {
	r.Truth.Verdict = r.Truth.Label()
	r.Void = ""
	switch {
	case r.Truth.Mismatch:
		r.Void = "the rerun read something else"
	case r.Truth.Verdict != r.Label:
		r.Void = fmt.Sprintf("its truth keeps no margin for %s", r.Label)
	}
}

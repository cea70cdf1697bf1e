// Package explain makes words from facts: the sentences, remedies and JSON of a window's report, and cells of tables.
package explain

import (
	"fmt"
	"strings"

	"github.com/stallspan/stallspan/internal/window"
)

// unexplained ends sentences about idle time without a cause.
func unexplained(r *window.Report) string {
	if lacksPressure(r) || r.Lacks(window.HiddenRemoteIO) {
		return ", for a reason that is not known"
	}
	return ", waiting for neither storage nor a CPU"
}

// Finding returns the verdict with its evidence, in one sentence. How a window was cut comes before it, in another one.
// Of a program that failed it is only what may be why.
func Finding(r *window.Report) string {
	how := cut(r) + silence(r)
	if r.Failed && r.Kind == window.Custom {
		return strings.TrimSpace(how)
	}
	return how + tookTooLong(r, judged(r))
}

// cut says how a window was cut, and ends in a space; "" if it was not, or if that is not known.
func cut(r *window.Report) string {
	what := "It was cut after "
	switch {
	case r.Ended == "" && !r.Failed:
		return ""
	case r.Failed:
		what = "It failed after "
	}
	how := Duration(r.Duration().Seconds())
	if r.Ended != "" {
		how += ": " + r.Ended
	}
	return what + how + ". "
}

func judged(r *window.Report) string {
	if m, ok := blocking(r); ok {
		return unjudged(r, m)
	}
	s := shown(r)
	return verdict(r, s) + others(r, s) + warmth(r) + faulted(r) + neighbor(r) + caveats(r) + "."
}

// shown are the shares in whole percents that add up to 100, as the table shows them.
func shown(r *window.Report) window.Shares {
	s := r.Shares()
	if r.Unattributed() || !r.Split {
		return s
	}
	all := wholePercents(r.GPUTime(), r.Busy, r.Storage, r.CPU-r.Ready, r.Ready, r.Other)
	for i, share := range []*float64{&s.Busy, &s.Storage, &s.CPU, &s.Ready, &s.Other} {
		*share = float64(all[i]) / 100
	}
	return s
}

// tookTooLong puts the duration first if it is why the window is slow.
func tookTooLong(r *window.Report, finding string) string {
	var than string
	switch r.SlowReason {
	case window.SlowThreshold:
		than = ", over the configured limit of " + Duration(r.Limit.Seconds())
	case window.SlowBaseline:
		than = fmt.Sprintf(" where %s is usual (p95 of %s)", Duration(r.Baseline.P95.Seconds()),
			count(uint64(r.Baseline.Count), kindName(r.Kind)))
	default:
		return finding
	}
	return "It took " + Duration(r.Duration().Seconds()) + than + ": " + lowerFirst(finding)
}

// lowerFirst makes a sentence the second part of another.
func lowerFirst(sentence string) string {
	if rest, ok := strings.CutPrefix(sentence, "The "); ok {
		return "the " + rest
	}
	return sentence
}

func kindName(k window.Kind) string {
	switch k {
	case window.ModelLoad:
		return "load"
	case window.Epoch:
		return "epoch"
	}
	return "window"
}

// subject begins most sentences: what worked, and how much of the time.
func subject(r *window.Report, s window.Shares) string {
	switch {
	case len(r.GPUIDs) > 0:
		gpus, _, were := theGPUs(r)
		return gpus + " " + were + " busy " + percent(s.Busy) + uneven(r)
	case r.Unattributed():
		return "The busiest CPU core of this machine was busy " + percent(s.CPU)
	}
	who := "The program was on the CPU " + percent(s.CPU)
	if s.Ready >= smallPart {
		who += andNoCore + " " + percent(s.Ready) + takenCores(r)
	}
	return who
}

// theGPUs begins a sentence about a window's GPUs, with a pronoun and a verb for them.
func theGPUs(r *window.Report) (gpus, they, were string) {
	if n := len(r.GPUIDs); n > 1 {
		return fmt.Sprintf("The %d GPUs", n), "they", "were"
	}
	return "The GPU", "it", "was"
}

// andNoCore joins the second part of a subject.
const andNoCore = " and had no core"

// listed is a subject that is followed by one more part.
func listed(who string) string {
	return strings.Replace(who, andNoCore, ","+strings.TrimPrefix(andNoCore, " and"), 1)
}

// takenCores says who took the cores that a program did not get, if that was others; else "".
func takenCores(r *window.Report) string {
	if r.CPUUsed < coresFull || r.CPUOthers < someCores {
		return ""
	}
	return fmt.Sprintf(" (other programs used %.1f of the %d cores)", r.CPUOthers, r.Cores)
}

// hadNoCore says how much of the CPU work of a GPU's job was ready to run and had no core; "" for little.
func hadNoCore(r *window.Report, s window.Shares) string {
	if s.Ready < smallPart {
		return ""
	}
	return "; for another " + percent(s.Ready) + " this work had no core" + takenCores(r)
}

// uneven names the GPUs that were busy least and most, if they differ.
func uneven(r *window.Report) string {
	least, most := r.Uneven()
	if least == nil {
		return ""
	}
	busy := func(l *window.GPULedger) string { return percent(l.Busy.Seconds() / r.Duration().Seconds()) }
	return fmt.Sprintf(" (%s %s, %s %s)", least.Name(), busy(least), most.Name(), busy(most))
}

// verdict states the verdict, without a period.
func verdict(r *window.Report, s window.Shares) string {
	who := subject(r, s)
	hasGPU := len(r.GPUIDs) > 0
	switch {
	case r.Unattributed() && r.Verdict == window.StorageBound:
		return who + " and some process waited for storage " + percent(s.Storage) + " of the time" + where(r)
	case r.Unattributed():
		return who + " of the time" + waited(" and some process waited for storage ", s, ": it is not known which")
	case r.Verdict == window.GPUBound:
		return who + " of the time" + harmlessQueue(r)
	case r.Verdict == window.StorageBound:
		return listed(who) + " and waited for storage " + percent(s.Storage) + " of the time" + where(r)
	case r.Verdict == window.NetworkBound:
		return listed(who) + " and waited for data from the network " + percent(s.Network) + " of the time" + fetched(r)
	case r.Verdict == window.Mixed && s.Network >= smallPart && hasGPU:
		gpus, they, were := theGPUs(r)
		return gpus + " waited " + waitedForAll(r, s) + ", and " + they + " " + were + " busy " + percent(s.Busy) + fetched(r)
	case r.Verdict == window.Mixed && s.Network >= smallPart:
		return who + " of the time and waited " + waitedForAll(r, s) + fetched(r)
	case r.Verdict == window.CPUBound && hasGPU:
		return who + " and waited for the CPU work of the input pipeline " + percent(s.CPU) + " of the time" +
			hadNoCore(r, s)
	case r.Verdict == window.CPUBound:
		return who + " of the time" + waited(" and waited for storage ", s, "")
	case r.Verdict == window.Mixed && hasGPU:
		gpus, _, were := theGPUs(r)
		return fmt.Sprintf("%s waited both for storage (%s of the time) and for the CPU work of the input pipeline (%s), "+
			"and %s busy %s", gpus, percent(s.Storage), percent(s.CPU), were, percent(s.Busy)) +
			hadNoCore(r, s) + where(r)
	case r.Verdict == window.Mixed:
		return who + " of the time and waited for storage " + percent(s.Storage) + where(r)
	}
	return unknown(r, s, who, hasGPU)
}

// unknown says why a ledger has no clear verdict.
func unknown(r *window.Report, s window.Shares, who string, hasGPU bool) string {
	idle := "idle "
	if !hasGPU {
		idle = "stood still "
	}
	idle += percent(s.Other) + unexplained(r)
	noPressure := lacksPressure(r)
	starved := r.Starved.Seconds() / max(r.Duration().Seconds(), 1e-9)
	switch {
	case s.Other >= window.Thresholds.Other && len(reasons(r)) > 0:
		return waitedElsewhere(r, s)
	case s.Other >= window.Thresholds.Other && starved >= s.Other/2:
		return who + " of the time; its processes were ready to run and had no CPU " + percent(starved) + " of the time" +
			takenCores(r)
	case r.Lacks(window.HiddenRemoteIO) && hasGPU:
		return who + " of the time, waited for CPU work " + percent(s.CPU) + " and stood " + idle + hadNoCore(r, s) +
			"; " + mountsUsed(r)
	case noPressure && s.Work() >= window.Thresholds.Stall && hasGPU:
		return who + " of the time, " + waited("waited for storage ", s, ", ") + "waited for CPU work " +
			percent(s.CPU) + " and stood " + idle + hadNoCore(r, s)
	case s.Other >= window.Thresholds.Other || noPressure && !hasGPU:
		return who + " of the time and " + idle
	case noPressure:
		return who + " of the time; no stall is known to be large (" + waited("storage ", s, ", ") + ofCPU(r, s) +
			"), and it was idle " + percent(s.Other) + unexplained(r)
	}
	return who + " of the time; no stall is large (storage " + percent(s.Storage) + ", " + ofCPU(r, s) + ")"
}

// ofCPU is the CPU's part in a list of small stalls.
func ofCPU(r *window.Report, s window.Shares) string {
	if s.Ready < smallPart || len(r.GPUIDs) == 0 { // without a GPU the subject has it
		return "CPU " + percent(s.CPU)
	}
	return "CPU " + percent(s.CPU) + ", no core " + percent(s.Ready)
}

// lacksPressure reports whether waiting for storage may be missing because the kernel reports no I/O pressure.
func lacksPressure(r *window.Report) bool { return r.Lacks(window.NoIOPressure) && !r.FromMemory }

// waited is the share of waiting for storage between two texts; "" for a share of zero. Without I/O pressure that means
// nothing.
func waited(before string, s window.Shares, after string) string {
	share := percent(s.Storage)
	if share == percent(0) {
		return ""
	}
	return before + share + after
}

// harmlessQueue names a disk that was loaded while the GPU was busy.
func harmlessQueue(r *window.Report) string {
	for i := range r.Disks {
		if r.Disks[i].QueueDepth >= 1 {
			return fmt.Sprintf("; %s had %.1f operations in flight, which did not slow it", r.Disks[i].Name,
				r.Disks[i].QueueDepth)
		}
	}
	return ""
}

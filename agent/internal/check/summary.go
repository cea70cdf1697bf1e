package check

import "strings"

// Essential says whether there is enough to tell what a program waits for: the disks' counters, and pressure or, in its
// place, what processes read.
func Essential(found []Finding) bool {
	return some(found, Disks, "disk counters") && (some(found, Pressure, "pressure") || some(found, Processes, "processes"))
}

// Summary is one sentence on what Stallspan can tell here, and one on what its verdicts will lack.
func Summary(found []Finding) string {
	pressure, disks := some(found, Pressure, "pressure"), some(found, Disks, "disk counters")
	if !pressure && !disks {
		return "Stallspan cannot tell what a program waits for here: neither pressure nor disks can be read."
	}
	text := "Stallspan can split a program's own time here: on the CPU, waiting for storage, other."
	if splitsGPU(found) {
		text = "Stallspan can split GPU time here: busy, waiting for storage, waiting for the CPU, other."
	}
	if lacks := lacking(found); len(lacks) > 0 {
		text += " Missing from its verdicts: " + strings.Join(lacks, "; ") + "."
	}
	return text
}

func lacking(found []Finding) (lacks []string) {
	if !splitsGPU(found) && some(found, GPU, "") {
		lacks = append(lacks, "how busy the GPU was")
	}
	if !some(found, Pressure, "pressure") {
		lacks = append(lacks, "the kernel's own count of waiting")
	}
	if !named(found) {
		lacks = append(lacks, "which disk was waited for")
	}
	switch {
	case !some(found, Processes, "processes"):
		lacks = append(lacks, "a job's CPU time and bytes")
	case !some(found, CPU, "cores"):
		lacks = append(lacks, "how busy the cores were")
	}
	if some(found, Pressure, "pressure") && !full(found, Cgroup, "own cgroup") {
		lacks = append(lacks, "certainty that neighbours' waiting is left out")
	}
	return lacks
}

// named says whether there is a disk that could be.
func named(found []Finding) bool {
	for _, f := range found {
		if disks, ok := f.Details["disks"].([]string); ok && f.Area == Disks && len(disks) > 0 {
			return true
		}
	}
	return false
}

// splitsGPU says whether the busy time of a GPU is told.
func splitsGPU(found []Finding) bool {
	for _, f := range found {
		if f.Area == GPU && f.Details["busy"] == true {
			return true
		}
	}
	return false
}

// some says whether anything of it was seen; what is "" for all of the area.
func some(found []Finding, area Area, what string) bool {
	return full(found, area, what) || is(found, area, what, Limited)
}

func full(found []Finding, area Area, what string) bool { return is(found, area, what, Seen) }

func is(found []Finding, area Area, what string, state State) bool {
	for _, f := range found {
		if f.Area == area && (what == "" || f.What == what) && f.State == state {
			return true
		}
	}
	return false
}

package check

import (
	"slices"
	"strings"
)

// Essential reports whether the causes of a stall can be found: from the disks' counters, and from pressure or the
// processes' bytes.
func Essential(found []Finding) bool {
	return some(found, Disks, "disk counters") && (some(found, Pressure, "pressure") ||
		some(found, Processes, "processes"))
}

// Summary is one sentence on what Stallspan can find here, and one on what its verdicts lack.
func Summary(found []Finding) string {
	pressure, disks := some(found, Pressure, "pressure"), some(found, Disks, "disk counters")
	if !pressure && !disks {
		return "Stallspan cannot find what a program waits for here: neither pressure nor disks can be read."
	}
	text := "Stallspan can divide a program's own time here: on the CPU, waiting for storage, other."
	if splitsGPU(found) {
		text = "Stallspan can divide GPU time here: busy, waiting for storage, waiting for the CPU, other."
	}
	if lacks := missing(found); len(lacks) > 0 {
		text += " Missing from its verdicts: " + strings.Join(lacks, "; ") + "."
	}
	return text
}

func missing(found []Finding) (lacks []string) {
	if !splitsGPU(found) && some(found, GPU, "") {
		lacks = append(lacks, "GPU utilization")
	}
	if !some(found, Pressure, "pressure") {
		lacks = append(lacks, "the kernel's pressure")
	}
	if !named(found) {
		lacks = append(lacks, "the disk that a program waits for")
	}
	switch {
	case !some(found, Processes, "processes"):
		lacks = append(lacks, "a job's CPU time and bytes")
	case !some(found, CPU, "cores"):
		lacks = append(lacks, "the cores' utilization")
	}
	if some(found, Pressure, "pressure") && !full(found, Cgroup, "own cgroup") {
		lacks = append(lacks, "certainty that other programs' waiting is left out")
	}
	return lacks
}

// named reports whether a disk can be named.
func named(found []Finding) bool {
	return slices.ContainsFunc(found, func(f Finding) bool {
		disks, ok := f.Details["disks"].([]string)
		return ok && f.Area == Disks && len(disks) > 0
	})
}

// splitsGPU reports whether a GPU's busy time can be read.
func splitsGPU(found []Finding) bool {
	return slices.ContainsFunc(found, func(f Finding) bool { return f.Area == GPU && f.Details["busy"] == true })
}

// some reports whether a check found at least a part. An empty what stands for the whole area.
func some(found []Finding, area Area, what string) bool {
	return full(found, area, what) || is(found, area, what, Limited)
}

func full(found []Finding, area Area, what string) bool { return is(found, area, what, Seen) }

func is(found []Finding, area Area, what string, state State) bool {
	return slices.ContainsFunc(found, func(f Finding) bool {
		return f.Area == area && (what == "" || f.What == what) && f.State == state
	})
}

package explain

import (
	"fmt"
	"strings"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/window"
)

// FurtherFinding is a finding besides the verdict, in words.
type FurtherFinding struct {
	Kind   window.FindingKind `json:"kind"`
	Text   string             `json:"text"` // one sentence
	Remedy string             `json:"remedy,omitempty"`
}

// FurtherFindings returns the findings besides the verdict.
func FurtherFindings(r *window.Report) (all []FurtherFinding) {
	for _, f := range r.Findings {
		text, remedy := further(r, f)
		all = append(all, FurtherFinding{f.Kind(), text, remedy})
	}
	return all
}

func further(r *window.Report, finding window.Finding) (text, remedy string) {
	switch f := finding.(type) {
	case window.IdleTensorCores:
		return tensorIdle(&f)
	case window.Throttling:
		return throttled(r, &f)
	case window.Overheating:
		text = fmt.Sprintf("%s went from %.0f to %.0f C and from %.0f to %.0f W, and did no more work", gpuName(r, f.GPU),
			f.FirstTemperature, f.LastTemperature, f.FirstPower, f.LastPower)
		if f.GPU.Limits.SlowdownAt > 0 {
			text += fmt.Sprintf("; it slows down at %.0f C", f.GPU.Limits.SlowdownAt)
		}
		return text + ".", coolIt
	case window.MemoryGrowth:
		return memoryGrows(r, &f), "Look for tensors that are kept from one epoch to the next: " +
			"losses that are summed up with their graph (.item() or .detach()), lists and caches that only grow."
	case window.FirstBatch:
		return firstBatch(r, &f)
	case window.FailingDisk:
		return f.Text, f.Remedy
	}
	return "", ""
}

func tensorIdle(f *window.IdleTensorCores) (text, remedy string) {
	gpus, its := "The GPU was", "its"
	if f.GPUs > 1 {
		gpus, its = fmt.Sprintf("The %d GPUs were", f.GPUs), "their"
	}
	text = fmt.Sprintf("%s busy %s of the time, but %s tensor cores only %s", gpus, percent(f.Busy), its,
		percent(f.Tensor))
	switch {
	case f.MemoryBound:
		return text + "; memory was at " + percent(f.DRAM) + " of its bandwidth, and is the limit.",
			"Move fewer bytes for each result: larger batches, fused kernels, or smaller types such as bf16."
	case f.SmallKernels:
		return text + ", and its SMs " + percent(f.SM) + ": the kernels are too small to fill it.",
			"Give it more work at a time: larger batches, fused kernels or CUDA graphs."
	}
	return text + ": it computes in types or shapes that tensor cores do not support.",
		"Compute in bf16, fp16 or TF32, with sizes that are multiples of 8; larger batches and fused kernels help too."
}

const coolIt = "Check its cooling: fans, airflow, dust, and hot devices next to it."

// throttleWords are the sentences for each cause of throttling.
var throttleWords = map[history.Detail]struct{ because, remedy string }{
	history.ThrottledThermal:   {"because it was too hot", coolIt},
	history.ThrottledHWThermal: {"because it was too hot for its own protection", coolIt},
	history.ThrottledPowerBrake: {"because the machine's power supply requested it",
		"Check the machine's power supplies and the power budget of its rack."},
	history.ThrottledSyncBoost: {"because another GPU of its group was slower",
		"Check the other GPUs of its group: the slowest one sets the pace."},
	history.ThrottledBoard: {"because its board was at its limit", "Check the machine's power supplies and their cables."},
	history.ThrottledPower: {"to stay below its power cap",
		"Raise the cap if the board may draw more (nvidia-smi -q -d POWER); otherwise this is the GPU's speed."},
}

func throttled(r *window.Report, f *window.Throttling) (text, remedy string) {
	words := throttleWords[f.Cause]
	text = fmt.Sprintf("%s held its clocks down for %s of the time %s", gpuName(r, f.GPU), percent(f.Share), words.because)
	return text + againstLimit(f.GPU, f.Cause) + ".", words.remedy
}

// againstLimit compares temperature or power with its limit.
func againstLimit(u *window.GPUUse, cause history.Detail) (text string) {
	switch cause {
	case history.ThrottledThermal, history.ThrottledHWThermal:
		temperature, known := u.Means.Get(history.Temperature)
		if known {
			text = fmt.Sprintf(": %.0f C on average", temperature)
		}
		if known && u.Limits.SlowdownAt > 0 {
			text += fmt.Sprintf(", and it slows down at %.0f C", u.Limits.SlowdownAt)
		}
	case history.ThrottledPower:
		if u.Limits.Power > 0 {
			text = fmt.Sprintf(" of %.0f W", u.Limits.Power)
		}
		if clock, known := u.Means.Get(history.SMClock); known && u.Limits.Clock > 0 {
			text += fmt.Sprintf(": its SMs ran at %.0f MHz on average, and have run at %.0f MHz", clock/1e6, u.Limits.Clock/1e6)
		}
	}
	return text
}

// maxEpochsLeft is the largest number of epochs until the memory is full that is worth a sentence.
const maxEpochsLeft = 1000

func memoryGrows(r *window.Report, f *window.MemoryGrowth) string {
	of, limit := "GPU memory", f.GPU.Limits.Memory
	if len(r.GPUIDs) > 1 {
		of = "Memory of " + gpuName(r, f.GPU)
	}
	text := fmt.Sprintf("%s grew by %s an epoch over %d epochs", of, Size(uint64(f.PerEpoch)), f.Epochs)
	switch {
	case limit == 0 || f.EpochsLeft > maxEpochsLeft:
	case f.EpochsLeft < 1:
		text += fmt.Sprintf(" and reaches its limit of %s in the next one", Size(limit))
	default:
		text += fmt.Sprintf(" and reaches its limit of %s in about %s", Size(limit), count(uint64(f.EpochsLeft), "epoch"))
	}
	return text + "."
}

// gpuName begins a sentence about one GPU.
func gpuName(r *window.Report, u *window.GPUUse) string {
	if len(r.GPUIDs) == 1 {
		return "The GPU"
	}
	if strings.HasPrefix(u.ID, "MIG-") {
		return u.ID
	}
	return u.Limits.Name()
}

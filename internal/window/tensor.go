package window

import (
	"fmt"

	"github.com/stallspan/stallspan/internal/history"
)

// tensorIdle is about the mean of the GPUs that tell of their tensor cores.
func (r *Report) tensorIdle() {
	t := &FindingThresholds
	var busy, tensor, n float64
	for i := range r.Uses {
		if share, told := r.Uses[i].Means.Get(history.TensorActive); told {
			busy, tensor, n = busy+r.Uses[i].Busy, tensor+share, n+1
		}
	}
	busy, tensor = busy/n, tensor/n
	if n == 0 || busy < t.TensorBusy || tensor >= t.Tensor {
		return
	}
	text := fmt.Sprintf("The GPU was busy %s of the time, but its tensor cores only %s", percent(busy), percent(tensor))
	if n > 1 {
		text = fmt.Sprintf("The %.0f GPUs were busy %s of the time, but their tensor cores only %s", n, percent(busy), percent(tensor))
	}
	dram, sm := r.mean(history.DRAMActive), r.mean(history.SMActive)
	switch {
	case dram != nil && *dram >= t.DRAM:
		r.find(TensorIdle, text+"; memory was at "+percent(*dram)+" of its bandwidth, and is the limit.",
			"Move fewer bytes for each result: larger batches, fused kernels, or smaller types such as bf16.")
	case sm != nil && *sm < t.SM:
		r.find(TensorIdle, text+", and its SMs "+percent(*sm)+": the kernels are too small to fill it.",
			"Give it more work at a time: larger batches, fused kernels or CUDA graphs.")
	default:
		r.find(TensorIdle, text+": it computes in types or shapes that these do not take.",
			"Compute in bf16, fp16 or TF32, with sizes that are multiples of 8; larger batches and fused kernels help too.")
	}
}

// mean is that of the GPUs that tell of d; nil where none does.
func (r *Report) mean(d history.Detail) *float64 {
	var sum, n float64
	for i := range r.Uses {
		if v, told := r.Uses[i].Means.Get(d); told {
			sum, n = sum+v, n+1
		}
	}
	if n == 0 {
		return nil
	}
	return new(sum / n)
}

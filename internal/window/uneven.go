package window

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// GPULedger is one GPU's part of the ledger of a window with several GPUs.
type GPULedger struct {
	ID                        string
	Index                     int    // as in nvidia-smi, or among AMD's; -1 if it is unknown
	Vendor                    string // sample.GPU.Vendor
	Busy, Storage, CPU, Other time.Duration
	Ready                     time.Duration // part of CPU, as in Ledger
}

// Name is how people name the GPU: by its number, if that is known.
func (l *GPULedger) Name() string {
	if l.Index < 0 || strings.HasPrefix(l.ID, "MIG-") {
		return l.ID
	}
	return sample.GPUName(l.Vendor, l.Index)
}

// Uneven returns the GPU that worked least and the one that worked most, if they differ by more than a tenth of the
// window, else nil.
func (r *Report) Uneven() (least, most *GPULedger) {
	if len(r.Ledgers) < 2 {
		return nil, nil
	}
	busy := func(a, b GPULedger) int { return cmp.Compare(a.Busy, b.Busy) }
	low, high := slices.MinFunc(r.Ledgers, busy), slices.MaxFunc(r.Ledgers, busy)
	if (high.Busy - low.Busy).Seconds() <= unevenShare*r.Duration().Seconds() {
		return nil, nil
	}
	return &low, &high
}

// busiest is what the busiest GPU worked, once for each of the window's GPUs: those that work in step cannot be faster.
func (l *Ledger) busiest() time.Duration {
	most := l.Busy
	for i := range l.Ledgers {
		most = max(most, l.Ledgers[i].Busy*time.Duration(len(l.Ledgers)))
	}
	return most
}

// Pacer returns the GPU that the others cannot outrun, if the window would be shorter without storage except for that
// one; else nil. A GPU that waits for others in a collective counts as busy.
func (r *Report) Pacer() *GPULedger {
	if _, most := r.Uneven(); most != nil && r.Gain > 0 && r.GPUTime()-r.Gain <= r.busiest() {
		return most
	}
	return nil
}

// gpuLedger is the ledger of one of several GPUs.
func (v *view) gpuLedger(gpu string, busy, storage, cpu time.Duration) GPULedger {
	l := GPULedger{ID: gpu, Index: -1, Busy: busy, Storage: storage, CPU: cpu}
	l.Ready = min(cpu, seconds(v.scheduledOf(history.LedgerReady, gpu)))
	l.Other = max(0, v.Duration()-busy-storage-cpu)
	if limits, known := v.history.LimitsOf(gpu); known {
		l.Index, l.Vendor = limits.Index, limits.Vendor
	}
	return l
}

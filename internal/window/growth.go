package window

import (
	"time"

	"github.com/stallspan/stallspan/internal/history"
)

// MemoryGrowth reports that a GPU's memory grew in each of several consecutive epochs.
type MemoryGrowth struct {
	GPU        *GPUUse
	PerEpoch   float64 // mean growth in bytes
	Epochs     int
	EpochsLeft float64 // until the memory is full, if the GPU reports its size
}

// Kind is MemoryGrows.
func (MemoryGrowth) Kind() FindingKind { return MemoryGrows }

// Growth detects memory that grows from epoch to epoch of a run. The zero value is ready. It is not safe for concurrent
// use.
type Growth struct {
	runs map[run]*memories
}

// run identifies the epochs of one program.
type run struct{ job, name string }

type memories struct {
	last time.Duration      // end of the newest epoch
	gpus map[string]*memory // by hw.id
}

// memory is the uninterrupted growth of a GPU's memory, from the mean of each epoch.
type memory struct {
	first, last float64 // bytes in the first and the newest epoch
	grew        float64 // in the newest epoch
	epochs      int
}

// maxRuns bounds Growth.runs. The run with the oldest last epoch is dropped.
const maxRuns = 64

// Learn uses a window that ended. It adds a finding to an epoch in which memory grew again. The GPU that is full first
// counts.
func (g *Growth) Learn(r *Report) {
	if r.Kind != Epoch || r.Unfinished || r.Lacks(GPULost) || r.Lacks(ReadingGap) || len(r.Uses) == 0 ||
		r.Duration() < FindingThresholds.MinDuration {
		return
	}
	runs := g.of(run{r.Job, r.Run})
	runs.last = r.End.Mono
	var worst *MemoryGrowth
	for i := range r.Uses {
		u := &r.Uses[i]
		used, known := u.Means.Get(history.MemoryUsed)
		if !known {
			continue
		}
		m := runs.gpus[u.ID]
		if m == nil {
			m = &memory{}
			runs.gpus[u.ID] = m
		}
		m.learn(used)
		if left := m.left(float64(u.Limits.Memory)); m.grows() && (worst == nil || left < worst.EpochsLeft) {
			worst = &MemoryGrowth{u, m.mean(), m.epochs, left}
		}
	}
	if worst != nil {
		r.Findings = append(r.Findings, *worst)
	}
}

func (g *Growth) of(key run) *memories {
	if known := g.runs[key]; known != nil {
		return known
	}
	if len(g.runs) >= maxRuns {
		g.dropOldest()
	}
	if g.runs == nil {
		g.runs = map[run]*memories{}
	}
	g.runs[key] = &memories{gpus: map[string]*memory{}}
	return g.runs[key]
}

func (g *Growth) dropOldest() {
	var oldest run
	first := true
	for k, m := range g.runs {
		if first || m.last < g.runs[oldest].last {
			oldest, first = k, false
		}
	}
	delete(g.runs, oldest)
}

func (m *memory) learn(used float64) {
	if m.epochs == 0 || used-m.last < FindingThresholds.Growth {
		*m = memory{first: used, last: used, epochs: 1}
		return
	}
	m.grew, m.last = used-m.last, used
	m.epochs++
}

// mean is the growth per epoch.
func (m *memory) mean() float64 { return (m.last - m.first) / float64(m.epochs-1) }

// grows reports whether the memory grew for long enough and does not level off, as a cache does that is filled once.
func (m *memory) grows() bool {
	t := &FindingThresholds
	return m.epochs >= t.GrowthEpochs && m.grew >= t.GrowthLast*m.mean()
}

// left is the number of epochs for which there is memory.
func (m *memory) left(total float64) float64 {
	if m.epochs < 2 {
		return 0
	}
	return max(0, total-m.last) / m.mean()
}

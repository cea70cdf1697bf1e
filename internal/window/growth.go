package window

import (
	"fmt"
	"time"

	"github.com/stallspan/stallspan/internal/history"
)

// Growth notices memory that grows from epoch to epoch of a run. The zero value is ready. It is not safe for concurrent
// use.
type Growth struct {
	runs map[run]*memories
}

// run tells the epochs of one program from those of another.
type run struct{ job, name string }

type memories struct {
	last time.Duration      // end of the newest epoch
	gpus map[string]*memory // by hw.id
}

// memory is how a GPU's memory has grown without a stop: of each epoch the mean counts.
type memory struct {
	first, last float64 // bytes, of the first and the newest epoch
	grew        float64 // in the newest
	epochs      int
}

// mostRuns bounds Growth.runs. The one that ended an epoch longest ago is forgotten.
const mostRuns = 64

// Learn is told of a window that ended, and adds the finding to an epoch in which memory has grown once more.
func (g *Growth) Learn(r *Report) {
	if r.Kind != Epoch || r.Unfinished || r.GPULost() || r.Unwatched() || len(r.Uses) == 0 || r.Duration() < FindingThresholds.Least {
		return
	}
	runs := g.of(run{r.Job, r.Run})
	runs.last = r.End.Mono
	var worst *GPUUse
	var soonest float64
	for i := range r.Uses {
		u := &r.Uses[i]
		used, told := u.Means.Get(history.MemoryUsed)
		if !told {
			continue
		}
		m := runs.gpus[u.ID]
		if m == nil {
			m = &memory{}
			runs.gpus[u.ID] = m
		}
		m.learn(used)
		if left := m.left(float64(u.Limits.Memory)); m.grows() && (worst == nil || left < soonest) {
			worst, soonest = u, left
		}
	}
	if worst != nil {
		r.find(MemoryGrows, runs.gpus[worst.ID].words(r, worst, soonest), "Look for tensors that are kept from one epoch to the next: "+
			"losses that are summed up with their graph (.item() or .detach()), lists and caches that only grow.")
	}
}

func (g *Growth) of(key run) *memories {
	if known := g.runs[key]; known != nil {
		return known
	}
	if len(g.runs) >= mostRuns {
		var oldest run
		first := true
		for k, m := range g.runs {
			if first || m.last < g.runs[oldest].last {
				oldest, first = k, false
			}
		}
		delete(g.runs, oldest)
	}
	if g.runs == nil {
		g.runs = map[run]*memories{}
	}
	g.runs[key] = &memories{gpus: map[string]*memory{}}
	return g.runs[key]
}

func (m *memory) learn(used float64) {
	if m.epochs == 0 || used-m.last < FindingThresholds.Growth {
		*m = memory{first: used, last: used, epochs: 1}
		return
	}
	m.grew, m.last = used-m.last, used
	m.epochs++
}

// mean is by how much it grew an epoch.
func (m *memory) mean() float64 { return (m.last - m.first) / float64(m.epochs-1) }

// grows says that it has grown for long enough, and does not come to rest, as what a program fills once does.
func (m *memory) grows() bool {
	t := &FindingThresholds
	return m.epochs >= t.GrowthEpochs && m.grew >= t.GrowthLast*m.mean()
}

// left is for how many epochs there is memory yet.
func (m *memory) left(total float64) float64 {
	if m.epochs < 2 {
		return 0
	}
	return max(0, total-m.last) / m.mean()
}

// mostLeft is how many epochs ahead a limit is still spoken of.
const mostLeft = 1000

func (m *memory) words(r *Report, u *GPUUse, left float64) string {
	of := "GPU memory"
	if len(r.GPUIDs) > 1 {
		of = "Memory of " + r.called(u)
	}
	text := fmt.Sprintf("%s grew by %s an epoch over %d epochs", of, size(uint64(m.mean())), m.epochs)
	switch {
	case u.Limits.Memory == 0 || left > mostLeft:
	case left < 1:
		text += fmt.Sprintf(" and reaches its limit of %s in the next one", size(u.Limits.Memory))
	default:
		text += fmt.Sprintf(" and reaches its limit of %s in about %s", size(u.Limits.Memory), count(uint64(left), "epoch"))
	}
	return text + "."
}

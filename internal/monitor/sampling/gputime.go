package sampling

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/sample"
)

// Bounds of what is remembered of GPU time.
const (
	maxTimes = 1024           // rows: about 300 bytes each
	keepTime = 24 * time.Hour // of a job that holds the GPU no more
)

// unusedAfter is how long a GPU that is held does nothing until that time is unused: longer than a checkpoint, or the
// wait for a slow rank.
const unusedAfter = 5 * time.Minute

// gpuTimes adds up the time of each GPU, by the job that held it and by the cause in the job's ledger. It follows the
// ledgers: up to the moment that they have reached, which is some seconds ago where a GPU's driver is late.
//
// A GPU that several jobs hold is divided among them: each gets an equal part of the time, with the causes of its own
// ledger. What no followed job holds is busy or other if any process holds memory, and else busy or idle.
type gpuTimes struct {
	gpus  []*gpuHolds
	jobs  []*jobOnly
	rows  []*sample.GPUTime
	names map[string]sample.JobName // of the jobs with rows
}

// gpuHolds are the jobs that hold one GPU.
type gpuHolds struct {
	gpu     string
	reached time.Duration // up to which its time is divided
	holds   []hold
	total   sample.GPUTime // of all jobs, also of those that are forgotten
}

// hold is a time in which the processes of a job held memory of a GPU.
type hold struct {
	job         string // "" for processes of no followed job
	from, until time.Duration

	quiet   time.Duration // since the GPU worked for the job
	waiting time.Duration // part of quiet, in other, that is not counted as unused yet
}

// rest returns how much of the time of a job is unused now. A part of it was divided into busy, other and more.
func (h *hold) rest(part, busy, other time.Duration) (unused time.Duration) {
	if 100*busy >= part { // less is the driver's own work
		h.quiet, h.waiting = 0, 0
		return 0
	}
	h.quiet += part
	h.waiting += other
	if h.quiet < unusedAfter {
		return 0
	}
	unused, h.waiting = h.waiting, 0
	return unused
}

// jobOnly is a job without a GPU.
type jobOnly struct {
	job     string
	reached time.Duration
	until   time.Duration // its processes ended; or holdsOn
}

// holdsOn is the end of a hold that has not ended.
const holdsOn = time.Duration(math.MaxInt64)

func (h *hold) covers(from, to time.Duration) bool { return h.from <= from && to <= h.until }

// learn notes which jobs hold which GPUs at a time. GPUs with MIG devices are left out: their time is that of the
// devices.
func (t *gpuTimes) learn(now time.Duration, latest *sample.Snapshot, followed map[string]*job) {
	gpus := latest.GPUs.GPUs
	t.gpus = slices.DeleteFunc(t.gpus, func(g *gpuHolds) bool {
		return !slices.ContainsFunc(gpus, func(x sample.GPU) bool { return x.ID == g.gpu }) || hasDevices(g.gpu, gpus)
	})
	owners := owners(latest, followed)
	for i := range gpus {
		if id := gpus[i].ID; !hasDevices(id, gpus) {
			t.of(id).hold(now, owners[id])
		}
	}
}

func hasDevices(gpu string, gpus []sample.GPU) bool {
	return slices.ContainsFunc(gpus, func(x sample.GPU) bool { return x.Parent == gpu })
}

// of returns the holds of a GPU.
func (t *gpuTimes) of(gpu string) *gpuHolds {
	if i := slices.IndexFunc(t.gpus, func(g *gpuHolds) bool { return g.gpu == gpu }); i >= 0 {
		return t.gpus[i]
	}
	g := &gpuHolds{gpu: gpu}
	t.gpus = append(t.gpus, g)
	return g
}

// owners returns the jobs that hold each GPU; "" for processes of no followed job. A process may be in several jobs,
// because a launcher may be followed and one of its ranks, too: then one with a name counts before those that are
// followed for windows alone, and after that the one with the fewest processes.
func owners(latest *sample.Snapshot, followed map[string]*job) map[string][]string {
	size := map[string]int{}
	for i := range latest.Jobs.Jobs {
		size[latest.Jobs.Jobs[i].ID] = latest.Jobs.Jobs[i].Processes
	}
	owners := map[string][]string{}
	for _, held := range latest.GPUs.GPUProcesses {
		owner := ""
		for i := range latest.Jobs.Processes {
			p := &latest.Jobs.Processes[i]
			if p.PID != held.PID || p.Feeder || followed[p.Job] == nil {
				continue
			}
			if owner == "" || before(followed[p.Job], followed[owner], size) {
				owner = p.Job
			}
		}
		if !slices.Contains(owners[held.GPU], owner) {
			owners[held.GPU] = append(owners[held.GPU], owner)
		}
	}
	return owners
}

// before reports whether one of two jobs with the same process counts before the other.
func before(one, other *job, size map[string]int) bool {
	named := func(j *job) int { // 0 comes first
		if j.Name.Name != "" {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(named(one), named(other)), cmp.Compare(size[one.ID], size[other.ID]),
		cmp.Compare(one.ID, other.ID)) < 0
}

// hold ends the holds of jobs that are no owners, and begins those of new owners.
func (g *gpuHolds) hold(now time.Duration, owners []string) {
	for i := range g.holds {
		if h := &g.holds[i]; h.until == holdsOn && !slices.Contains(owners, h.job) {
			h.until = max(now, h.from)
		}
	}
	for _, owner := range owners {
		on := slices.ContainsFunc(g.holds, func(h hold) bool { return h.job == owner && h.until == holdsOn })
		if !on {
			g.holds = append(g.holds, hold{job: owner, from: max(now, g.reached), until: holdsOn})
		}
	}
}

// leave ends the holds of a job whose processes have ended, or that is no longer followed.
func (t *gpuTimes) leave(job string, now time.Duration) {
	for _, g := range t.gpus {
		for i := range g.holds {
			if h := &g.holds[i]; h.job == job && h.until == holdsOn {
				h.until = max(now, h.from)
			}
		}
	}
	for _, j := range t.jobs {
		if j.job == job && j.until == holdsOn {
			j.until = max(now, j.reached)
		}
	}
}

// stay forgets that a job had ended: its cgroup has processes again.
func (t *gpuTimes) stay(job string) {
	t.jobs = slices.DeleteFunc(t.jobs, func(j *jobOnly) bool { return j.job == job && j.until != holdsOn })
}

// advance divides the time up to a moment that the ledgers have reached. newest is a stamp of the present.
func (t *gpuTimes) advance(
	h *history.History, to time.Duration, newest sample.Stamp, followed map[string]*job, without []string,
) {
	for _, g := range t.gpus {
		if g.reached == 0 {
			g.reached = to
			continue
		}
		if to > g.reached {
			t.divide(h, g, to, newest)
		}
	}
	t.withoutGPU(h, to, newest, without)
	t.forget(to, followed)
}

// divide divides the time of a GPU up to a moment.
func (t *gpuTimes) divide(h *history.History, g *gpuHolds, to time.Duration, newest sample.Stamp) {
	for _, end := range g.cuts(to) {
		t.piece(h, g, end, newest)
		g.reached = end
	}
	g.holds = slices.DeleteFunc(g.holds, func(x hold) bool { return x.until <= to })
	for _, r := range t.rows {
		if r.GPU == g.gpu {
			r.Held = slices.ContainsFunc(g.holds, func(x hold) bool { return x.job == r.Job })
		}
	}
}

// cuts returns the moments up to a time at which who holds the GPU changes, and the time itself.
func (g *gpuHolds) cuts(to time.Duration) []time.Duration {
	ends := []time.Duration{to}
	for _, h := range g.holds {
		for _, at := range []time.Duration{h.from, h.until} {
			if at > g.reached && at < to {
				ends = append(ends, at)
			}
		}
	}
	slices.Sort(ends)
	return slices.Compact(ends)
}

// piece divides a time in which the same jobs held a GPU.
func (t *gpuTimes) piece(h *history.History, g *gpuHolds, to time.Duration, newest sample.Stamp) {
	from, held := g.reached, false
	if g.total.GPU == "" {
		g.total = sample.GPUTime{GPU: g.gpu, Began: stampAt(from, newest)}
	}
	g.total.Until = stampAt(to, newest)
	var holders []*hold
	for i := range g.holds {
		if x := &g.holds[i]; x.covers(from, to) {
			held = true
			if x.job != "" {
				holders = append(holders, x)
			}
		}
	}
	length := to - from
	if len(holders) == 0 {
		row := t.row(g.gpu, "", from, to, newest)
		busy := min(length, growth(h, history.LedgerBusy, ledger.ID("", g.gpu), from, to)[0])
		for _, r := range []*sample.GPUTime{row, &g.total} {
			r.Busy += busy
			if held {
				r.Other += length - busy
				r.Allocated += length
			} else {
				r.Idle += length - busy
			}
		}
		return
	}
	g.total.Allocated += length
	n := time.Duration(len(holders))
	for i, x := range holders {
		part := length*time.Duration(i+1)/n - length*time.Duration(i)/n
		row := t.row(g.gpu, x.job, from, to, newest)
		row.Shared = row.Shared || n > 1
		if row.Job != "" {
			row.Allocated += length
		}
		before := *row
		divideLike(row, h, ledger.ID(x.job, g.gpu), from, to, part)
		row.Unused += x.rest(part, row.Busy-before.Busy, row.Other-before.Other)
		g.total.Busy += row.Busy - before.Busy
		g.total.Storage += row.Storage - before.Storage
		g.total.CPU += row.CPU - before.CPU
		g.total.Other += row.Other - before.Other
	}
}

// divideLike adds a part of an interval to a row, divided like the ledger of the whole of it.
func divideLike(r *sample.GPUTime, h *history.History, id string, from, to, part time.Duration) {
	length := to - from
	grown := growth(h, history.LedgerBusy, id, from, to)
	gain := growth(h, history.LedgerGain, id, from, to)[0]
	rest := part
	for i, sum := range []*time.Duration{&r.Busy, &r.Storage, &r.CPU} {
		share := min(rest, scale(grown[i], part, length))
		*sum += share
		rest -= share
	}
	r.Other += rest
	r.Gain += min(part, scale(gain, part, length))
}

// scale returns the part of a value that belongs to a part of a length.
func scale(value, part, length time.Duration) time.Duration {
	if part == length {
		return value
	}
	return time.Duration(float64(value) * float64(part) / float64(length))
}

// growth returns how much the columns of a ledger grew, up to three from a series on. A ledger that is not known did
// not grow.
func growth(h *history.History, first history.Series, id string, from, to time.Duration) (grown [3]time.Duration) {
	var deltas [3]history.Delta
	columns := 3
	if first == history.LedgerGain {
		columns = 1
	}
	if !h.BetweenAll(first, id, history.Point{At: from}, history.Point{At: to}, deltas[:columns]) {
		return grown
	}
	for i := range grown {
		grown[i] = time.Duration(math.Round(deltas[i].Value * float64(time.Second)))
	}
	return grown
}

// name notes who a job is.
func (t *gpuTimes) name(name sample.JobName) {
	t.names[name.ID] = name
}

// totals returns the time of each GPU, all jobs together.
func (t *gpuTimes) totals() (all []sample.GPUTime) {
	for _, g := range t.gpus {
		if g.total.GPU != "" {
			all = append(all, g.total)
		}
	}
	return all
}

// snapshot returns copies of the rows, and the names of their jobs.
func (t *gpuTimes) snapshot() (rows []sample.GPUTime, names []sample.JobName) {
	for _, r := range t.rows {
		rows = append(rows, *r)
		known := func(n sample.JobName) bool { return n.ID == r.Job }
		if name, named := t.names[r.Job]; named && !slices.ContainsFunc(names, known) {
			names = append(names, name)
		}
	}
	return rows, names
}

// row returns the row of a job on a GPU, which grows up to a moment. Where there are too many, the time is that of no
// job.
func (t *gpuTimes) row(gpu, job string, from, to time.Duration, newest sample.Stamp) *sample.GPUTime {
	i := slices.IndexFunc(t.rows, func(r *sample.GPUTime) bool { return r.GPU == gpu && r.Job == job })
	if i < 0 {
		if job != "" && len(t.rows) >= maxTimes && !t.dropOldest() {
			return t.row(gpu, "", from, to, newest)
		}
		t.rows = append(t.rows, &sample.GPUTime{GPU: gpu, Job: job, Began: stampAt(from, newest)})
		i = len(t.rows) - 1
	}
	t.rows[i].Until = stampAt(to, newest)
	return t.rows[i]
}

// stampAt returns the stamp of a moment before another stamp.
func stampAt(at time.Duration, newest sample.Stamp) sample.Stamp {
	return sample.Stamp{Mono: at, Wall: newest.Wall.Add(at - newest.Mono)}
}

// withoutGPU adds up the time of jobs without a GPU. Their CPU time is their own work.
func (t *gpuTimes) withoutGPU(h *history.History, to time.Duration, newest sample.Stamp, jobs []string) {
	t.jobs = slices.DeleteFunc(t.jobs, func(j *jobOnly) bool { return !slices.Contains(jobs, j.job) })
	for _, job := range jobs {
		i := slices.IndexFunc(t.jobs, func(j *jobOnly) bool { return j.job == job })
		if i < 0 {
			t.jobs = append(t.jobs, &jobOnly{job, to, holdsOn})
			continue
		}
		if from, end := t.jobs[i].reached, min(to, t.jobs[i].until); end > from {
			divideLike(t.row("", job, from, end, newest), h, ledger.ID(job, ""), from, end, end-from)
			t.jobs[i].reached = end
		}
	}
	for _, r := range t.rows {
		if r.GPU == "" {
			r.Held = slices.ContainsFunc(t.jobs, func(j *jobOnly) bool { return j.job == r.Job && j.until > to })
		}
	}
}

// dropOldest drops the row that has not grown for longest and is not held. It reports false if all are held.
func (t *gpuTimes) dropOldest() bool {
	oldest := -1
	for i, r := range t.rows {
		if !r.Held && r.Job != "" && (oldest < 0 || r.Until.Mono < t.rows[oldest].Until.Mono) {
			oldest = i
		}
	}
	if oldest < 0 {
		return false
	}
	t.rows = slices.Delete(t.rows, oldest, oldest+1)
	return true
}

// forget drops the rows of jobs that have ended a day ago, and the names of jobs without rows.
func (t *gpuTimes) forget(now time.Duration, followed map[string]*job) {
	t.rows = slices.DeleteFunc(t.rows, func(r *sample.GPUTime) bool {
		return !r.Held && r.Job != "" && now-r.Until.Mono > keepTime
	})
	for job := range t.names {
		if followed[job] == nil && !slices.ContainsFunc(t.rows, func(r *sample.GPUTime) bool { return r.Job == job }) {
			delete(t.names, job)
		}
	}
}

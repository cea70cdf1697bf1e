package past

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/store"
	"github.com/stallspan/stallspan/internal/trust"
)

const (
	timesEvery = 5 * time.Minute  // what a kill may lose of the GPU time of jobs that go on
	nameEvery  = 50 * time.Minute // so that each hour of the files names the jobs in it
	maxSums    = 4096             // rows of a sum: about 300 bytes each, and a name for each job
)

// Times are the counters of GPU time that are kept.
type Times struct {
	Now  func() ([]sample.GPUTime, []sample.JobName) // see sample.Snapshot; nil for none
	Boot string                                      // the machine's boot: identifiers of jobs are unique within it
}

// times passes the growth of the counters to the store: that of all jobs every five minutes, and that of a job when it
// has ended. Growth needs no memory of the program before, so a job that goes on in the next program adds up.
type times struct {
	Times

	mu    sync.Mutex // guards the fields below
	kept  map[timeKey]sample.GPUTime
	named map[string]named
	next  time.Duration // when the growth of all jobs is passed again; monotonic
}

type timeKey struct{ job, gpu string }

// named is a name that was passed at a time.
type named struct {
	name sample.JobName
	at   time.Duration
}

// timesEntry is the text of an entry of the store.
type timesEntry struct {
	Boot  string          `json:"boot,omitempty"`
	Job   string          `json:"job,omitempty"`  // "" for the time that no followed job held
	Name  *sample.JobName `json:"name,omitempty"` // if it is new, and once an hour
	Parts []growth        `json:"parts"`
}

// growth is how much the time of a job on one GPU grew. Moments are in Unix microseconds, and the rest in
// nanoseconds.
type growth struct {
	GPU       string        `json:"gpu,omitempty"` // "" for a job without a GPU
	Began     int64         `json:"began"`         // the time of the job there
	From      int64         `json:"from"`
	Until     int64         `json:"until"`
	Shared    bool          `json:"shared,omitempty"`
	Busy      time.Duration `json:"busy,omitempty"`
	Storage   time.Duration `json:"storage,omitempty"`
	CPU       time.Duration `json:"cpu,omitempty"`
	Other     time.Duration `json:"other,omitempty"`
	Idle      time.Duration `json:"idle,omitempty"`
	Allocated time.Duration `json:"allocated,omitempty"`
	Gain      time.Duration `json:"gain,omitempty"`
	Unused    time.Duration `json:"unused,omitempty"`
}

// grown returns how much a row grew since it was kept, and whether it did.
func (t *times) grown(row *sample.GPUTime) (p growth, ok bool) {
	before := t.kept[timeKey{row.Job, row.GPU}]
	from := before.Until
	if before.Began != row.Began { // a new row
		before, from = sample.GPUTime{}, row.Began
	}
	p = growth{
		GPU: row.GPU, Began: row.Began.Wall.UnixMicro(), From: from.Wall.UnixMicro(), Until: row.Until.Wall.UnixMicro(),
		Shared: row.Shared, Busy: row.Busy - before.Busy, Storage: row.Storage - before.Storage, CPU: row.CPU - before.CPU,
		Other: row.Other - before.Other, Idle: row.Idle - before.Idle, Allocated: row.Allocated - before.Allocated,
		Gain: row.Gain - before.Gain, Unused: row.Unused - before.Unused,
	}
	return p, row.Until.Mono > from.Mono
}

// pass passes to the writer what has grown, and reports whether that was everything. At other times than every five
// minutes it passes only what jobs left that have ended.
func (t *times) pass(now sample.Stamp, last bool, to *store.Writer) (everything bool) {
	if t.Now == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if everything = last || now.Mono >= t.next; everything {
		t.next = now.Mono + timesEvery
	}
	rows, names := t.Now()
	who := make(map[string]*sample.JobName, len(names))
	for i := range names {
		who[names[i].ID] = &names[i]
	}
	var order []string
	jobs := map[string][]*sample.GPUTime{}
	known := make(map[timeKey]bool, len(rows))
	for i := range rows {
		row := &rows[i]
		known[timeKey{row.Job, row.GPU}] = true
		if !everything && (row.Held || row.Job == "") {
			continue
		}
		if jobs[row.Job] == nil {
			order = append(order, row.Job)
		}
		jobs[row.Job] = append(jobs[row.Job], row)
	}
	for _, job := range order {
		t.passJob(now, job, who[job], jobs[job], to)
	}
	maps.DeleteFunc(t.kept, func(key timeKey, _ sample.GPUTime) bool { return !known[key] })
	maps.DeleteFunc(t.named, func(job string, _ named) bool { return who[job] == nil })
	return everything
}

func (t *times) passJob(
	now sample.Stamp, job string, name *sample.JobName, rows []*sample.GPUTime, to *store.Writer,
) {
	e := timesEntry{Boot: t.Boot, Job: job}
	var grew []*sample.GPUTime
	for _, row := range rows {
		if p, ok := t.grown(row); ok {
			e.Parts, grew = append(e.Parts, p), append(grew, row)
		}
	}
	if len(grew) == 0 {
		return
	}
	client := ""
	if name != nil {
		client = name.Client
		if old, was := t.named[job]; !was || now.Mono-old.at >= nameEvery || !old.name.Equal(*name) {
			e.Name = name
		}
	}
	text, err := json.Marshal(&e)
	if err != nil || !to.AddEntry(store.Entry{
		Kind: store.Times, At: now.Wall, Client: client, Text: text, Lane: trust.Lane(client),
	}) {
		return // it goes on growing, and is passed later
	}
	if t.kept == nil {
		t.kept, t.named = map[timeKey]sample.GPUTime{}, map[string]named{}
	}
	for _, row := range grew {
		t.kept[timeKey{job, row.GPU}] = *row
	}
	if e.Name != nil {
		t.named[job] = named{*e.Name, now.Mono}
	}
}

// waiting returns the counters of now, and a view of the files that lacks nothing but how much they have grown. The
// view is nil before the folder is open.
func (t *times) waiting(w *store.Writer) (
	rows []sample.GPUTime, names []sample.JobName, grown []growth, v *store.View,
) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Now != nil {
		rows, names = t.Now()
	}
	for i := range rows {
		p, _ := t.grown(&rows[i])
		grown = append(grown, p)
	}
	if w.Opened() {
		v = w.View()
	}
	return rows, names, grown, v
}

// JobTimes returns the time of GPUs and jobs between two moments, zero for no limit, and who the jobs are: of earlier
// programs, from the files, and of this one. A job that goes on in this program has one row on each GPU. Time in
// which no agent ran counts for no job. It reads at half of a core's speed. With an error, the times are those of
// this program alone.
func (r *Recorder) JobTimes(since, until time.Time) ([]sample.GPUTime, []sample.JobName, error) {
	rows, names, grown, files := r.times.waiting(r.writer)
	s := newSums(since, until)
	if files != nil {
		if err := s.read(files, since, until); err != nil {
			return rows, names, err
		}
	}
	for i := range rows {
		s.add(r.times.Boot, rows[i].Job, &grown[i])
		s.present(r.times.Boot, &rows[i], until.IsZero())
	}
	for i := range names {
		s.names[jobKey{r.times.Boot, names[i].ID}] = names[i]
	}
	all, named := s.rowsOf(r.times.Boot)
	return all, named, nil
}

// sums are the times of jobs between two moments.
type sums struct {
	since, until int64 // Unix microseconds
	rows         map[sumKey]*sample.GPUTime
	names        map[jobKey]sample.JobName
}

type (
	jobKey struct{ boot, job string }
	sumKey struct {
		jobKey
		gpu string
	}
)

func newSums(since, until time.Time) *sums {
	s := &sums{math.MinInt64, math.MaxInt64, map[sumKey]*sample.GPUTime{}, map[jobKey]sample.JobName{}}
	if !since.IsZero() {
		s.since = since.UnixMicro()
	}
	if !until.IsZero() {
		s.until = until.UnixMicro()
	}
	return s
}

// read adds what files have. Growth from before the first moment may reach into the time, and names may be older.
func (s *sums) read(files *store.View, since, until time.Time) error {
	if !since.IsZero() {
		since = since.Add(-time.Hour)
	}
	if !until.IsZero() {
		until = until.Add(time.Hour)
	}
	return files.Each(since, until, func(file io.Reader) error {
		in := store.NewReader(file)
		in.From, in.Until, in.OnlyTimes = since, until, true
		return in.Each(context.Background(), func(item *store.Item) {
			for i := range item.Times {
				s.addEntry(&item.Times[i])
			}
		})
	})
}

func (s *sums) addEntry(e *store.Entry) {
	var t timesEntry
	if json.Unmarshal(e.Text, &t) != nil {
		return // of no writer
	}
	key := jobKey{t.Boot, t.Job}
	if name, known := s.names[key]; t.Name != nil {
		s.names[key] = *t.Name
	} else if t.Job != "" && !known {
		name.ID, name.Client = t.Job, e.Client
		s.names[key] = name
	}
	for i := range t.Parts {
		s.add(t.Boot, t.Job, &t.Parts[i])
	}
}

// share returns how much of a part is between the two moments.
func (s *sums) share(p *growth) float64 {
	from, until := max(p.From, s.since), min(p.Until, s.until)
	switch length := p.Until - p.From; {
	case p.Until <= s.since || p.From >= s.until:
		return 0
	case length <= 0: // the clock was set
		return 1
	default:
		return float64(until-from) / float64(length)
	}
}

func (s *sums) add(boot, job string, p *growth) {
	part := s.share(p)
	if part <= 0 {
		return
	}
	scaled := func(d time.Duration) time.Duration {
		if part >= 1 {
			return d
		}
		return time.Duration(float64(d) * part)
	}
	if job == "" {
		boot = "" // a GPU stays the same
	}
	row := s.row(sumKey{jobKey{boot, job}, p.GPU})
	if began := time.UnixMicro(p.Began); row.Began.Wall.IsZero() || began.Before(row.Began.Wall) {
		row.Began.Wall = began
	}
	if at := time.UnixMicro(min(p.Until, s.until)); at.After(row.Until.Wall) {
		row.Until.Wall = at
	}
	row.Shared = row.Shared || p.Shared
	row.Busy += scaled(p.Busy)
	row.Storage += scaled(p.Storage)
	row.CPU += scaled(p.CPU)
	row.Other += scaled(p.Other)
	row.Idle += scaled(p.Idle)
	row.Allocated += scaled(p.Allocated)
	row.Gain += scaled(p.Gain)
	row.Unused += scaled(p.Unused)
}

// present notes that a row is of now. A job that has no time yet is listed if the time has no end.
func (s *sums) present(boot string, now *sample.GPUTime, endless bool) {
	if now.Job == "" {
		return
	}
	key := sumKey{jobKey{boot, now.Job}, now.GPU}
	row := s.rows[key]
	if row == nil && endless && now.Held {
		row = s.row(key)
		row.Began.Wall, row.Until.Wall = now.Began.Wall, now.Until.Wall
	}
	if row != nil {
		row.Held = now.Held
	}
}

func (s *sums) row(key sumKey) *sample.GPUTime {
	row := s.rows[key]
	if row == nil {
		if len(s.rows) >= 2*maxSums {
			s.trim()
		}
		row = &sample.GPUTime{GPU: key.gpu, Job: key.job}
		s.rows[key] = row
	}
	return row
}

// trim drops the jobs that ended first, until maxSums rows are left.
func (s *sums) trim() {
	keys := make([]sumKey, 0, len(s.rows))
	for key := range s.rows {
		if key.job != "" {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b sumKey) int { return s.rows[a].Until.Wall.Compare(s.rows[b].Until.Wall) })
	for _, key := range keys[:max(0, len(keys)-maxSums)] {
		delete(s.rows, key)
		delete(s.names, key.jobKey)
	}
}

// rowsOf returns the rows and the names, those of a machine's boot with the identifiers that they have now.
func (s *sums) rowsOf(boot string) (rows []sample.GPUTime, names []sample.JobName) {
	if len(s.rows) > maxSums {
		s.trim()
	}
	named := map[jobKey]bool{}
	for key, row := range s.rows {
		job := key.job
		if job != "" && key.boot != boot {
			job += " in boot " + key.boot[:min(len(key.boot), 8)]
		}
		row.Job = job
		rows = append(rows, *row)
		if name, known := s.names[key.jobKey]; known && !named[key.jobKey] {
			named[key.jobKey] = true
			name.ID = job
			names = append(names, name)
		}
	}
	slices.SortFunc(rows, func(a, b sample.GPUTime) int {
		return cmp.Or(a.Began.Wall.Compare(b.Began.Wall), cmp.Compare(a.Job, b.Job), cmp.Compare(a.GPU, b.GPU))
	})
	slices.SortFunc(names, func(a, b sample.JobName) int { return cmp.Compare(a.ID, b.ID) })
	return rows, names
}

package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/process"
)

// Jobs is the response to GET /v1/jobs. All times are in seconds.
type Jobs struct {
	Since   time.Time `json:"since"`             // the first moment that may count
	Problem string    `json:"problem,omitempty"` // why earlier times are missing
	Jobs    []Job     `json:"jobs"`              // those that run, and those that did since then; the oldest first
	GPUs    []FreeGPU `json:"gpus"`              // the time of GPUs that no followed job held
}

// Job is what became of the time of one job.
type Job struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	User       string            `json:"user,omitempty"`
	PID        int               `json:"pid,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"` // of OpenTelemetry
	Claimed    []string          `json:"claimed,omitempty"`    // keys of those that only the job or its user says
	Running    bool              `json:"running"`
	Began      time.Time         `json:"began"`
	Until      time.Time         `json:"until"` // up to which its time is known
	JobTime                      // the sum over its GPUs
	GPUs       []JobGPU          `json:"gpus"`          // none for a job without a GPU
	Fix        *Fix              `json:"fix,omitempty"` // nil if none of them would give a twentieth of its time
}

// JobGPU is the time of a job on one GPU.
type JobGPU struct {
	ID     string `json:"id"`
	Shared bool   `json:"shared,omitempty"` // some of the time was divided among jobs
	JobTime
}

// JobTime is time in seconds, by cause.
type JobTime struct {
	Allocated float64 `json:"allocated"` // the job held memory of the GPU; of a job without one, it ran
	Busy      float64 `json:"busy"`
	Storage   float64 `json:"storage"`
	CPU       float64 `json:"cpu"`
	Other     float64 `json:"other"`
	Unused    float64 `json:"unused"` // part of other: the GPU did nothing for five minutes or more
	Gain      float64 `json:"gain"`   // that instant storage would have saved
}

// Lost is the time in which the job held GPUs that did not work.
func (t *JobTime) Lost() float64 { return t.Storage + t.CPU + t.Other }

// Sum is the time that the causes add up to: less than the allocated time where GPUs were shared.
func (t *JobTime) Sum() float64 { return t.Busy + t.Lost() }

// Kinds of fixes.
const (
	FixStorage = "storage" // serve the job's data at once, as from memory
	FixCPU     = "cpu"     // more workers of the input pipeline
	FixRelease = "release" // end or suspend the job while it does nothing
)

// Fix is the change that would give the most of a job's GPU time.
type Fix struct {
	Kind   string  `json:"kind"`
	Saves  float64 `json:"saves"`   // seconds of GPU time
	AtMost bool    `json:"at_most"` // it saves no more than that
	Says   string  `json:"says"`
}

// minFix is the least part of a job's time that is worth a fix: 1.05 times as fast.
const minFix = 0.05

// fix returns the best one, or nil.
func (t *JobTime) fix() *Fix {
	total := t.Sum()
	best := Fix{Kind: FixStorage, Saves: t.Gain}
	if t.CPU > best.Saves {
		best = Fix{Kind: FixCPU, Saves: t.CPU, AtMost: true}
	}
	if t.Unused > best.Saves {
		best = Fix{Kind: FixRelease, Saves: t.Unused}
	}
	if total <= 0 || best.Saves < minFix*total {
		return nil
	}
	times := total / max(total-best.Saves, total/100)
	faster := fmt.Sprintf("%.1fx", times)
	if times >= 9.95 {
		faster = fmt.Sprintf("%.0fx", times)
	}
	switch best.Kind {
	case FixStorage:
		best.Says = "instant storage: " + faster
	case FixCPU:
		best.Says = "more CPU: " + faster + " at most"
	case FixRelease:
		best.Says = fmt.Sprintf("release it when idle: %.0f %%", 100*best.Saves/total)
	}
	return &best
}

// FreeGPU is the time of a GPU that no followed job held.
type FreeGPU struct {
	ID    string  `json:"id"`
	Idle  float64 `json:"idle"`  // no process held memory of it
	Busy  float64 `json:"busy"`  // it worked for processes that are not followed
	Other float64 `json:"other"` // such a process held memory, and it did not work
}

func (t *JobTime) add(row *sample.GPUTime) {
	allocated := row.Allocated
	if row.GPU == "" {
		allocated = row.Sum()
	}
	t.Allocated += allocated.Seconds()
	t.Busy += row.Busy.Seconds()
	t.Storage += row.Storage.Seconds()
	t.CPU += row.CPU.Seconds()
	t.Other += row.Other.Seconds()
	// Five minutes are counted at their end, and may have begun before the time that is listed.
	t.Unused = min(t.Unused+row.Unused.Seconds(), t.Other)
	t.Gain += row.Saved().Seconds()
}

// jobsSpan is the time of the jobs that are listed without a query.
const jobsSpan = 24 * time.Hour

// jobs lists the jobs: all to root and the server's user, their own to others.
func (s *Server) jobs(w http.ResponseWriter, r *http.Request) error {
	since, until, err := historyQuery(r)
	if err != nil {
		return err
	}
	if since.IsZero() {
		since = time.Now().Add(-jobsSpan)
	}
	who := peerOfRequest(r.Context())
	if err := s.patient(w); err != nil {
		return err
	}
	release, err := s.acquire(who.name)
	if err != nil {
		return err
	}
	defer release()
	rows, names, problem := s.jobTimes(who.name, since, until)
	all := newJobs(rows, names, who.lists)
	all.Since = s.jobsSince(since, rows)
	if problem != nil {
		all.Problem = problem.Error()
	}
	reply(w, http.StatusOK, all)
	return nil
}

// jobTimes returns the times of jobs from the store, or those of this program without a store.
func (s *Server) jobTimes(client string, since, until time.Time) ([]sample.GPUTime, []sample.JobName, error) {
	var problem error
	if s.past != nil {
		if problem = s.copies.Take(client); problem == nil {
			defer s.copies.Release(client)
			rows, names, err := s.past.JobTimes(since, until)
			if err != nil {
				err = fmt.Errorf("times before this agent began are missing: %w", err)
			}
			return rows, names, err
		}
		problem = errors.New("times before this agent began are missing, because others read the history: try again")
	}
	rows, names := s.monitor.JobTimes()
	return rows, names, problem
}

// jobsSince returns the first moment whose times are known.
func (s *Server) jobsSince(wanted time.Time, rows []sample.GPUTime) time.Time {
	first := time.Now()
	if s.past != nil {
		if oldest, ok := s.past.Oldest(); ok {
			first = oldest
		}
	}
	for i := range rows {
		if began := rows[i].Began.Wall; began.Before(first) {
			first = began
		}
	}
	if s.past != nil && first.Before(wanted) {
		return wanted
	}
	return first
}

// newJobs makes the response. owns reports whether the caller may see jobs of a client.
func newJobs(rows []sample.GPUTime, names []sample.JobName, owns func(client string) bool) *Jobs {
	all := &Jobs{Jobs: []Job{}, GPUs: []FreeGPU{}}
	for i := range rows {
		row := &rows[i]
		if row.Job == "" {
			all.GPUs = append(all.GPUs, FreeGPU{row.GPU, row.Idle.Seconds(), row.Busy.Seconds(), row.Other.Seconds()})
			continue
		}
		name := sample.JobName{ID: row.Job}
		if n := slices.IndexFunc(names, func(n sample.JobName) bool { return n.ID == row.Job }); n >= 0 {
			name = names[n]
		}
		if !owns(name.Client) {
			continue
		}
		k := slices.IndexFunc(all.Jobs, func(j Job) bool { return j.ID == row.Job })
		if k < 0 {
			all.Jobs = append(all.Jobs, newJob(&name, row))
			k = len(all.Jobs) - 1
		}
		all.Jobs[k].add(row)
	}
	for i := range all.Jobs {
		all.Jobs[i].Fix = all.Jobs[i].fix()
	}
	slices.SortStableFunc(all.Jobs, func(a, b Job) int { return a.Began.Compare(b.Began) })
	return all
}

func newJob(name *sample.JobName, row *sample.GPUTime) Job {
	j := Job{ID: name.ID, Name: name.Name, User: name.User, PID: name.PID, Began: row.Began.Wall, Until: row.Until.Wall,
		GPUs: []JobGPU{}}
	if j.PID == 0 {
		j.PID = process.PIDOf(j.ID)
	}
	if j.Name == "" {
		j.Name = j.ID
		if j.PID > 0 { // its start is for programs
			j.Name = fmt.Sprint("process ", j.PID)
		}
	}
	if len(name.Attributes) > 0 {
		j.Attributes = map[string]string{}
	}
	for _, a := range name.Attributes {
		j.Attributes[a.Key] = a.Value
		if a.Claimed {
			j.Claimed = append(j.Claimed, a.Key)
		}
	}
	return j
}

func (j *Job) add(row *sample.GPUTime) {
	j.JobTime.add(row)
	j.Running = j.Running || row.Held
	if row.Began.Wall.Before(j.Began) {
		j.Began = row.Began.Wall
	}
	if row.Until.Wall.After(j.Until) {
		j.Until = row.Until.Wall
	}
	if row.GPU != "" {
		on := JobGPU{ID: row.GPU, Shared: row.Shared}
		on.add(row)
		j.GPUs = append(j.GPUs, on)
	}
}

// Jobs returns the jobs of a server that the caller may see, and their time between two moments, zero for the defaults.
func (c *Client) Jobs(ctx context.Context, since, until time.Time) (*Jobs, error) {
	all, err := ask(ctx, c, http.MethodGet, "/v1/jobs?"+between(since, until), nil, func(j *Jobs) bool {
		return j.Jobs != nil && j.GPUs != nil
	})
	if err != nil {
		return nil, err
	}
	return &all, nil
}

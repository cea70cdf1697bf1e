package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Jobs is the response to GET /v1/jobs. All times are in seconds.
type Jobs struct {
	Jobs []Job     `json:"jobs"` // those that run, and those that ended within a day; the oldest first
	GPUs []FreeGPU `json:"gpus"` // the time of GPUs that no followed job held
}

// Job is what became of the time of one job.
type Job struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	User       string            `json:"user,omitempty"`
	PID        int               `json:"pid,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"` // of OpenTelemetry
	Running    bool              `json:"running"`
	Began      time.Time         `json:"began"`
	Until      time.Time         `json:"until"` // up to which its time is known
	JobTime                      // the sum over its GPUs
	GPUs       []JobGPU          `json:"gpus"` // none for a job without a GPU
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
	Gain      float64 `json:"gain"` // that instant storage would have saved
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
	t.Gain += row.Gain.Seconds()
}

// jobs lists the jobs: all to root and the server's user, their own to others.
func (s *Server) jobs(w http.ResponseWriter, r *http.Request) error {
	who := peerOfRequest(r.Context())
	release, err := s.acquire(who.name)
	if err != nil {
		return err
	}
	defer release()
	rows, names := s.monitor.JobTimes()
	reply(w, http.StatusOK, newJobs(rows, names, who.owns))
	return nil
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
		name := sample.JobName{ID: row.Job, Name: row.Job}
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
	slices.SortStableFunc(all.Jobs, func(a, b Job) int { return a.Began.Compare(b.Began) })
	return all
}

func newJob(name *sample.JobName, row *sample.GPUTime) Job {
	j := Job{ID: name.ID, Name: name.Name, User: name.User, PID: name.PID, Began: row.Began.Wall, Until: row.Until.Wall,
		GPUs: []JobGPU{}}
	if j.Name == "" {
		j.Name = j.ID
	}
	if len(name.Attributes) > 0 {
		j.Attributes = map[string]string{}
	}
	for _, a := range name.Attributes {
		j.Attributes[a.Key] = a.Value
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

// Jobs returns the jobs of a server that the caller may see.
func (c *Client) Jobs(ctx context.Context) (*Jobs, error) {
	answer, err := c.limited(ctx, http.MethodGet, "/v1/jobs", nil, maxListing)
	if err != nil {
		return nil, err
	}
	var all Jobs
	if err := json.Unmarshal(answer, &all); err != nil || all.Jobs == nil || all.GPUs == nil {
		return nil, c.foreign(answer)
	}
	return &all, nil
}

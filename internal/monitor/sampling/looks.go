package sampling

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// JobLook is what the newest readings have of a followed job, for detectors of windows.
type JobLook struct {
	ID        string
	Since     time.Duration // its first reading
	ReadAt    time.Duration // the newest reading of jobs
	CPUTime   time.Duration
	Moved     uint64           // bytes read and written, by calls and from storage
	Processes []sample.Process // alive
	GPUs      []string         // on which it has held memory
	GPUMemory uint64           // bytes in use on these
	Drivers   []int            // processes that hold memory of a GPU now
}

// Looks lists the followed jobs.
func (r *Readings) Looks() (list []JobLook) {
	r.mu.Lock()
	defer r.mu.Unlock()
	latest := &r.now.latest
	for i := range latest.Jobs.Jobs {
		reading := &latest.Jobs.Jobs[i]
		j := r.now.jobs.byID[reading.ID]
		if j == nil {
			continue
		}
		look := JobLook{
			ID: j.ID, Since: j.since, ReadAt: latest.Jobs.At.Mono, CPUTime: reading.CPUTime,
			Moved: reading.ReadChars + reading.ReadBytes + reading.WriteBytes, GPUs: slices.Clone(j.gpus),
		}
		for k := range latest.GPUs.GPUs {
			if g := &latest.GPUs.GPUs[k]; g.Has&sample.HasMemory != 0 && slices.Contains(j.gpus, g.ID) {
				look.GPUMemory += g.MemoryUsed
			}
		}
		list = append(list, look)
	}
	for i := range latest.Jobs.Processes {
		p := &latest.Jobs.Processes[i]
		for k := range list {
			if list[k].ID == p.Job {
				list[k].Processes = append(list[k].Processes, *p)
				holds := func(h sample.GPUProcess) bool { return h.PID == p.PID }
				if !p.Feeder && slices.ContainsFunc(latest.GPUs.GPUProcesses, holds) {
					list[k].Drivers = append(list[k].Drivers, p.PID)
				}
				break
			}
		}
	}
	return list
}

// Followed returns since when a job is followed, and who it is. The latter is zero if that is not known.
func (r *Readings) Followed(id string) (since time.Duration, name sample.JobName, followed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.now.jobs.byID[id]
	if j == nil {
		return 0, sample.JobName{}, false
	}
	return j.since, j.Name, true
}

// StampOf returns a moment in the past on both clocks. A step of the wall clock since then moves it.
func (r *Readings) StampOf(mono time.Duration) sample.Stamp {
	now := r.Present()
	return sample.Stamp{Mono: mono, Wall: now.Wall.Add(mono - now.Mono)}
}

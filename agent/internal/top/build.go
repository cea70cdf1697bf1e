package top

import (
	"cmp"
	"slices"

	"github.com/stallspan/stallspan/agent/internal/stat"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// builder makes frames from the readings of a monitor, each from those since the frame before.
type builder struct {
	monitor *monitor.Monitor
	name    func(pid int) string // "" if it is unknown
	parent  func(pid int) int    // 0 if it is unknown
	host    string

	before sample.Snapshot
	begun  bool
	gpus   []stat.GPU // rates for the time up to the newest reading of the driver
}

// watched is a job that frames show.
type watched struct {
	id    string
	pid   int
	name  string
	since sample.Stamp // from when on it has readings: of the GPUs whose memory it holds, if it does
	holds bool         // memory of a GPU
	ended bool
	last  Job // as in the newest frame: what stays of a job that has ended
}

// frame returns the present frame. The rates are for the time since the previous call.
func (b *builder) frame(jobs []*watched) *Frame {
	now := b.monitor.Collect()
	if !b.begun {
		b.before, b.begun = now, true
	}
	rates := stat.Between(&b.before, &now)
	f := &Frame{At: newest(&now).Wall, Host: b.host, Cores: len(now.Cores.Cores), CPU: rates.Busy,
		BusiestCore: rates.BusiestCore, Pressure: rates.Pressure}
	if now.GPUs.At.Mono > b.before.GPUs.At.Mono || len(b.gpus) != len(rates.GPUs) {
		b.gpus = rates.GPUs[:min(len(rates.GPUs), shownGPUs)]
	} // else the driver has not answered since
	for _, g := range b.gpus {
		f.GPUs = append(f.GPUs, GPU{g, b.holders(&now, g.ID, jobs)})
	}
	for i := range rates.Disks {
		if d := rates.Disks[i]; d.Leaf && len(f.Disks) < shownDisks {
			disk := Disk{Disk: d}
			if i := slices.IndexFunc(now.Ceilings, func(c sample.Ceiling) bool { return c.Disk == d.Name }); i >= 0 {
				disk.ReadCeiling, disk.WriteCeiling = now.Ceilings[i].Read, now.Ceilings[i].Write
			}
			f.Disks = append(f.Disks, disk)
		}
	}
	for _, j := range jobs {
		f.Jobs = append(f.Jobs, b.job(j, &now))
	}
	b.before = now
	return f
}

// settled is the end of ledgers: the newest moment that needs no reading of its own. Drivers of GPUs return their
// samples a second or two late.
func (b *builder) settled(s *sample.Snapshot) sample.Stamp {
	end := newest(s)
	if at, ok := b.monitor.Spans.Settled(); ok && at < end.Mono {
		end.Wall = end.Wall.Add(at - end.Mono)
		end.Mono = at
	}
	return end
}

// newest is the time of the newest reading that an interval needs.
func newest(s *sample.Snapshot) sample.Stamp {
	at := s.Disks.At
	for _, other := range [...]sample.Stamp{s.Cores.At, s.Jobs.At, s.Pressures.At} {
		if other.Mono > at.Mono {
			at = other
		}
	}
	return at
}

// holders lists the processes that hold memory of a GPU, the largest first.
func (b *builder) holders(s *sample.Snapshot, gpu string, jobs []*watched) (list []Holder) {
	for _, p := range s.GPUs.GPUProcesses {
		if p.GPU == gpu {
			name := cmp.Or(b.name(p.PID), nameIn(s, p.PID, jobs))
			list = append(list, Holder{PID: p.PID, Name: name, Memory: p.Memory, Has: p.Has})
		}
	}
	slices.SortStableFunc(list, func(a, b Holder) int { return cmp.Compare(b.Memory, a.Memory) })
	return list[:min(len(list), shownHolders)]
}

// nameIn is the name of the job that a process belongs to; "" for none.
func nameIn(s *sample.Snapshot, pid int, jobs []*watched) string {
	for i := range s.Jobs.Processes {
		if p := &s.Jobs.Processes[i]; p.PID == pid {
			if k := slices.IndexFunc(jobs, func(j *watched) bool { return j.id == p.Job }); k >= 0 {
				return jobs[k].name
			}
		}
	}
	return ""
}

// job returns a job with its ledgers. Those of a job that has ended are the last ones.
func (b *builder) job(w *watched, now *sample.Snapshot) Job {
	if w.ended {
		w.last.Ended, w.last.CPU, w.last.Read, w.last.Write, w.last.Processes, w.last.Members = true, -1, 0, 0, 0, nil
		return w.last
	}
	j := Job{ID: w.id, PID: w.pid, Name: w.name, CPU: -1, Holds: held(now, w.id)}
	end := b.settled(now)
	if j.Holds > 0 && !w.holds && w.since.Mono > 0 {
		w.holds = true
		if w.last.Watched > 0 { // before, its own time was divided
			w.since = end
		}
	}
	j.Watched = max(0, end.Mono-w.since.Mono)
	reading, last := find(now.Jobs.Jobs, w.id), find(b.before.Jobs.Jobs, w.id)
	if reading != nil {
		j.HasIO, j.Processes = reading.HasIO, reading.Processes
	}
	if elapsed := (now.Jobs.At.Mono - b.before.Jobs.At.Mono).Seconds(); reading != nil && last != nil && elapsed > 0 {
		j.CPU = (reading.CPUTime - last.CPUTime).Seconds() / elapsed
		j.Read = float64(reading.ReadBytes-min(reading.ReadBytes, last.ReadBytes)) / elapsed
		j.Write = float64(reading.WriteBytes-min(reading.WriteBytes, last.WriteBytes)) / elapsed
		j.Members = b.members(w.id, now, elapsed)
	}
	j.Whole = b.ledger(w, w.since, end)
	from := end
	from.Mono, from.Wall = end.Mono-Recent, end.Wall.Add(-Recent)
	if from.Mono <= w.since.Mono {
		j.Recent = j.Whole
	} else {
		j.Recent = b.ledger(w, from, end)
	}
	w.last = j
	return j
}

// held is how many GPUs the processes of a job hold memory of.
func held(s *sample.Snapshot, id string) int {
	gpus := map[string]bool{}
	for _, h := range s.GPUs.GPUProcesses {
		if !gpus[h.GPU] && slices.ContainsFunc(s.Jobs.Processes, func(p sample.Process) bool {
			return p.Job == id && p.PID == h.PID
		}) {
			gpus[h.GPU] = true
		}
	}
	return len(gpus)
}

func find(jobs []sample.Job, id string) *sample.Job {
	if i := slices.IndexFunc(jobs, func(j sample.Job) bool { return j.ID == id }); i >= 0 {
		return &jobs[i]
	}
	return nil
}

// members lists the processes of a job that do most.
func (b *builder) members(id string, now *sample.Snapshot, elapsed float64) (list []Member) {
	for i := range now.Jobs.Processes {
		p := &now.Jobs.Processes[i]
		if p.Job != id {
			continue
		}
		m := Member{PID: p.PID}
		if k := slices.IndexFunc(b.before.Jobs.Processes, func(o sample.Process) bool {
			return o.PID == p.PID && o.Started == p.Started
		}); k >= 0 {
			last := &b.before.Jobs.Processes[k]
			m.CPU = max(0, (p.CPUTime-last.CPUTime).Seconds()/elapsed)
			m.Read = float64(p.ReadBytes-min(p.ReadBytes, last.ReadBytes)) / elapsed
		}
		list = append(list, m)
	}
	slices.SortStableFunc(list, func(a, b Member) int {
		return cmp.Or(cmp.Compare(b.CPU+b.Read/(100<<20), a.CPU+a.Read/(100<<20)), cmp.Compare(a.PID, b.PID))
	})
	rest := list[min(len(list), shownMembers):]
	list = slices.Clip(list[:len(list)-len(rest)])
	for i := 0; i < len(list); i++ { // list grows by those that started its processes
		m := &list[i]
		m.Name, m.Parent = b.name(m.PID), b.parent(m.PID)
		is := func(o Member) bool { return o.PID == m.Parent }
		if k := slices.IndexFunc(rest, is); k >= 0 && len(list) < 2*shownMembers && !slices.ContainsFunc(list, is) {
			list = append(list, rest[k])
		}
	}
	return list
}

// ledger returns the ledger of a job from one moment to another. The readings at the ends are those of the history.
func (b *builder) ledger(w *watched, from, to sample.Stamp) Ledger {
	if to.Mono <= from.Mono {
		return Ledger{}
	}
	return newLedger(b.monitor.Spans.Report(window.Window{Kind: window.Custom, Name: w.name, Job: w.id, PID: w.pid,
		Source: window.Announced, Start: from, End: to}))
}

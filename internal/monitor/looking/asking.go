package looking

import (
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/process"
)

// look gives the facts of a job to its detector.
func (l *Looker) look(j *job, now time.Duration) {
	f := &j.facts
	f.Job, f.At, f.Last = j.look.ID, now, min(j.last, now)
	f.Files, f.Processes = l.files[:0], f.Processes[:0]
	j.hadGPU = j.hadGPU || len(j.look.GPUs) > 0
	f.HasGPU, f.GPUMemory, f.GPUMemoryAt = j.hadGPU, j.look.GPUMemory, 0
	if used, at := l.memoryOf(j.look.GPUs); now-at < staleBy {
		f.GPUMemory, f.GPUMemoryAt = used, at
	}
	f.Past = past{l.config.Readings.History(), j.look.ID, j.look.GPUs}
	l.ask(j, now)
	f.Listening = -1
	unknown := false
	for i := range j.look.Processes {
		p := j.processes[j.look.Processes[i].PID]
		if p.ended { // it is listed until it is read again
			continue
		}
		p.facts.Drives = slices.Contains(j.look.Drivers, p.facts.PID)
		f.Processes = append(f.Processes, p.facts)
		f.Files = append(f.Files, p.files...)
		unknown = unknown || p.listening < 0 && !p.facts.Denied
		if p.listening >= 0 {
			f.Listening = max(0, f.Listening) + p.listening
		}
	}
	if unknown {
		f.Listening = -1
	}
	for pid, p := range j.processes {
		if p.seen != now {
			delete(j.processes, pid)
		}
	}
	j.looked, j.last, j.cpu, j.moved = now, now, j.look.CPUTime, j.look.Moved
	l.report(j, j.detector.Look(f))
	j.busy = j.detector.Busy()
	l.files, f.Files = f.Files, nil
}

// memoryOf returns how much memory of GPUs is in use, and when the oldest of the readings was; 0 if it is not known.
func (l *Looker) memoryOf(gpus []string) (used uint64, at time.Duration) {
	if l.config.GPUs == nil {
		return 0, 0
	}
	for _, gpu := range gpus {
		one, read := l.config.GPUs.Memory(gpu)
		if read == 0 {
			return 0, 0
		}
		if used += one; at == 0 || read < at {
			at = read
		}
	}
	return used, at
}

// ask asks processes of a job for their files: those that have models open and new ones before the others, which take
// turns. What is known of the rest is of an earlier look.
func (l *Looker) ask(j *job, now time.Duration) {
	list := j.look.Processes
	for i := range list {
		of := &list[i]
		p := j.processes[of.PID]
		if p == nil || p.started != of.Started {
			p = &program{started: of.Started, models: true, listening: -1, facts: facts(of, now)}
			j.processes[of.PID] = p
			l.own(j, of.PID)
		}
		p.seen, p.queried = now, false
	}
	for _, models := range [...]bool{true, false} {
		first := j.turn
		for k := range list {
			at := (first + k) % len(list)
			p := j.processes[list[at].PID]
			if p.queried || p.models != models {
				continue
			}
			if l.asks <= 0 {
				j.turn = at
				return
			}
			l.asks--
			p.queried = true
			l.process(j, p, &list[at], now)
		}
	}
}

// facts are those of a process whose files are not known.
func facts(of *sample.Process, now time.Duration) detect.Process {
	started := of.Started - sample.Origin()
	if of.Started == 0 || started > now {
		started = 0 // it is not known, or the machine was suspended
	}
	return detect.Process{PID: of.PID, Started: started, Denied: true}
}

// process asks a process for its files.
func (l *Looker) process(j *job, p *program, of *sample.Process, now time.Duration) {
	memory := process.Memory(l.config.Root, of.PID)
	if p.ended = memory.Ended; memory.Size == 0 {
		p.facts, p.files, p.models, p.listening = facts(of, now), nil, false, -1
		return
	}
	want := process.FilesWanted{Sockets: j.busy, Others: true}
	left := &l.maps[0]
	if j.busy {
		left = &l.maps[1]
	}
	want.Maps = *left > 0 && now >= p.mapsLate && p.mayMap(memory.Size, now, j.busy)
	all, err := l.filesOf(of, want)
	if want.Maps && errors.Is(err, syscall.ETIMEDOUT) {
		p.mapsLate, want.Maps = now+mapsLate, false
		all, err = l.filesOf(of, want)
	}
	switch {
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ESRCH),
		errors.Is(err, syscall.ENOENT):
		p.facts, p.files, p.models, p.listening = facts(of, now), nil, false, -1
		return
	case err != nil: // there is no answer now: what was open may still be
		return
	}
	p.facts.Denied, p.facts.Memory, p.facts.Resident = false, memory.Files, memory.Resident
	if p.facts.Last = p.facts.At; p.facts.At == 0 || p.facts.At == j.looked {
		p.facts.Last = j.facts.Last
	}
	p.facts.At = now
	p.listening = -1
	if want.Sockets {
		p.listening = all.Listening
	}
	if want.Maps {
		*left--
		p.facts.MapsLast = p.mapsAt
		p.mapsAt, p.highest = now, memory.Size
		p.mapped = p.mapped[:0]
	}
	p.files = p.files[:0]
	for i := range all.List {
		x := &all.List[i]
		if x.Mapped > 0 {
			p.mapped = append(p.mapped, *x)
		}
		if x.FD >= 0 {
			p.files = append(p.files, fact(of.PID, x))
		}
	}
	for i := range p.mapped {
		x := p.mapped[i]
		x.FD = -1
		p.files = append(p.files, fact(of.PID, &x))
	}
	p.models = slices.ContainsFunc(p.files, func(f detect.File) bool { return process.OfModel(f.Path) })
}

// mayMap reports whether the mappings of a process may be others than those that are known, by the size of its address
// space. In a load, a part of a model may be as large as the one before.
func (p *program) mayMap(size int64, now time.Duration, busy bool) bool {
	since := now - p.mapsAt
	switch {
	case p.mapsAt == 0:
		return true
	case size > p.highest+model, len(p.mapped) > 0 && size+model < p.highest:
		return since >= mapsSoon
	case len(p.mapped) > 0 && (busy || size != p.highest):
		return since >= mapsOften
	}
	return size > p.highest+larger && since >= mapsEvery
}

func fact(pid int, x *process.File) detect.File {
	f := detect.File{
		PID: pid, FD: x.FD, Path: x.Path, Size: x.Size,
		Offset: x.Offset, Write: x.Write, Mapped: x.Mapped,
	}
	if x.FD >= 0 {
		f.Mapped = 0 // the mapping is a fact of its own
	}
	return f
}

// filesOf asks for the files of a process, with more rights where there are any.
func (l *Looker) filesOf(of *sample.Process, want process.FilesWanted) (process.Files, error) {
	key := process.KeyOf(of)
	all, err := l.direct.ModelFiles(key, want)
	if err != nil && l.config.Reader != nil && (errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM)) {
		return l.config.Reader.ModelFiles(key, want)
	}
	return all, err
}

package window

import (
	"slices"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/sample"
)

// Silence is a time in which the window's job waited and nothing came: from a peer, a file system, a disk, or processes
// of its own that have ended.
type Silence struct {
	Peer  *PeerUse       // that the job waited for; nil for others
	Mount *MountUse      // without a disk; nil if it is another one, or not known
	Disk  string         // that completed nothing; "" if it is another one, or not known
	Ended []sample.Ended // processes that will give nothing more, in the order of their ends; nil for others

	Since, Until time.Duration // monotonic
	Goes         bool          // it goes on at the window's end
	Came         uint64        // bytes before: on the open connections, or since the window began; 0 if unknown
}

// Length is how long nothing came.
func (s *Silence) Length() time.Duration { return s.Until - s.Since }

// counts reports whether one is worth a sentence in a window of that length.
func (s *Silence) counts(window time.Duration) bool {
	return s.Length() >= ledger.MinHold && (s.Goes || s.Length().Seconds() >= silentShare*window.Seconds())
}

// silence finds the longest one that counts.
func (v *view) silence(r *Report, l *Ledger) (found *Silence) {
	if !l.Evidence.Followed() {
		return nil
	}
	keep := func(s *Silence) {
		if s.counts(v.Duration()) && (found == nil || s.Length() > found.Length()) {
			found = s
		}
	}
	for i := range l.Peers {
		if p := &l.Peers[i]; p.Silent {
			keep(&Silence{Peer: p, Since: p.Heard, Until: v.End.Mono, Goes: true, Came: p.Came})
		}
	}
	for _, h := range v.machine.Holds {
		if h.Others {
			s := Silence{Since: h.From, Until: h.To, Goes: v.End.Mono-h.To < startSlack}
			if s.Ended = v.ended(h, s.Goes); len(s.Ended) > 0 {
				keep(&s)
			}
			continue
		}
		h = v.quiet(history.JobReadBytes, v.quiet(history.JobReadChars, h))
		s := Silence{Since: h.From, Until: h.To, Goes: v.End.Mono-h.To < startSlack}
		s.Came = v.brought(v.Start.Mono, h.From)
		s.Mount, s.Disk = v.silentStorage(r, h.From, h.To)
		keep(&s)
	}
	return found
}

// ended lists the processes of the job that a wait for other threads may be for, as they have ended and no other one
// works: those that a signal ended or stopped, and those that ended shortly before the wait or in it, with an error or
// while it goes on. A pipeline's commands end as their readers do, and many helpers in no time.
func (v *view) ended(h ledger.Hold, goes bool) (list []sample.Ended) {
	length := h.To - h.From
	if v.grown(history.JobCPUTime, v.machine.Target.Job, h.From, h.To) > idleWorkers*length.Seconds() {
		return nil
	}
	for _, e := range v.machine.Ended {
		status := syscall.WaitStatus(e.Status)
		switch {
		case e.At > h.To, status.Signaled() && status.Signal() == syscall.SIGPIPE:
		case status.Signaled(), status.Stopped(),
			e.Lived >= helperLives && e.At >= h.From-beforeWait && (e.Status != 0 || goes):
			list = append(list, e)
		}
	}
	return list
}

// quiet returns the longest part of a wait in which next to nothing came, by a count of bytes. Where others read for
// the leading thread, one of them always waits, and it waits all the time. What came in a step over either end of the
// wait may have come before or after it.
func (v *view) quiet(s history.Series, h ledger.Hold) (longest ledger.Hold) {
	steps := v.history.Steps(history.Key{Series: s, ID: v.machine.Target.Job}, v.from(), v.to())
	if len(steps) == 0 {
		return ledger.Hold{} // it is not known
	}
	steps = slices.DeleteFunc(steps, func(x history.Step) bool { return x.Start < h.From || x.End > h.To })
	all := 0.0
	for i := range steps {
		all += steps[i].Grown
	}
	if all <= trickle {
		return h
	}
	since, came := h.From, 0.0
	for _, step := range append(steps, history.Step{Start: h.To, Grown: all}) {
		if came += step.Grown; came <= min(trickle, hushed*all) {
			continue
		}
		if step.Start-since > longest.To-longest.From {
			longest = ledger.Hold{From: since, To: step.Start}
		}
		since, came = step.End, 0
	}
	return longest
}

// silentStorage returns what the job waited for in a time in which nothing came from storage.
func (v *view) silentStorage(r *Report, from, to time.Duration) (mount *MountUse, disk string) {
	for i := range r.Mounts {
		use := MountUse{Mount: r.Mounts[i]}
		for j := range r.MountUses {
			if r.MountUses[j].ID == use.ID {
				use = r.MountUses[j]
			}
		}
		if mount == nil || use.Waiting > mount.Waiting {
			mount = &use
		}
	}
	if mount != nil {
		return mount, ""
	}
	edge := time.Duration(silenceEdge * float64(to-from)) // reading ahead goes on, and what is given up ends
	from, to = from+edge, to-edge
	longest := -1.0 // with an operation that does not complete: a disk without any is behind one that hangs
	consider := func(name string, least float64) {
		if v.grown(history.DiskReadIOs, name, from, to)+v.grown(history.DiskWriteIOs, name, from, to) > 0 {
			return
		}
		if busy := v.grown(history.DiskIOTicks, name, from, to); busy > max(longest, least) {
			disk, longest = name, busy
		}
	}
	for _, name := range r.From {
		consider(name, -1)
	}
	s := stack{view: v}
	for _, device := range slices.Concat(v.machine.Devices...) { // one that hangs all the time did nothing in the window
		for _, name := range s.below(device) {
			consider(name, 0)
		}
	}
	return nil, disk
}

// brought is how much the job's reads brought from one moment to another, in bytes.
func (v *view) brought(from, to time.Duration) uint64 {
	job := v.machine.Target.Job
	return uint64(max(v.grown(history.JobReadChars, job, from, to), v.grown(history.JobReadBytes, job, from, to)))
}

// grown returns the growth of a quantity in a part of the window.
func (v *view) grown(s history.Series, id string, from, to time.Duration) float64 {
	if from >= to {
		return 0
	}
	start, end := history.Point{At: from}, history.Point{At: to}
	if from <= v.Start.Mono {
		start = v.from()
	}
	if to >= v.End.Mono {
		end = v.to()
	}
	grown, _ := v.history.Between(history.Key{Series: s, ID: id}, start, end)
	return max(0, grown.Value)
}

// hush notes for how long the job has waited for peers that have fallen silent, and counts that as waiting for the
// network. A thread that waits in a lock or for several files waits for those peers if there is nothing else that it
// could wait for: no thread of the job did anything since.
func (v *view) hush(r *Report, peers []PeerUse) {
	for i := range peers {
		p := &peers[i]
		from := max(p.Heard, v.Start.Mono)
		length := (v.End.Mono - from).Seconds()
		if p.Heard == 0 || p.Accepted || p.Connections == 0 || v.End.Mono-p.Heard < ledger.MinHold || length <= 0 {
			continue
		}
		var waits, others float64
		for _, gpu := range r.ledgers() {
			id := v.ledgerID(gpu)
			waits += v.grown(history.OtherNetwork, id, from, v.End.Mono)
			others += v.grown(history.OtherLock, id, from, v.End.Mono) + v.grown(history.OtherEvent, id, from, v.End.Mono)
		}
		p.hush(length*float64(len(r.ledgers())), waits, others)
	}
}

// hush decides whether a peer is silent that was heard so long ago, by the time that the job has waited for the network
// since, and for what is not known better. All are in seconds.
func (p *PeerUse) hush(length, waits, others float64) {
	switch {
	case p.Waited > 0 && waits >= waitsAll*length:
		p.Silent = true
	case p.Waited == 0 && p.Came >= Serving.Bytes && others >= waitsAll*length:
		p.Silent, p.Waited = true, seconds(others)
	}
}

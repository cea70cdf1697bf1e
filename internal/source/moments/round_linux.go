package moments

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/source/procfile"
)

// round is what the goroutine that looks has at hand.
type round struct {
	source *Source
	turn   int // of the source
	looker looker
	random *rand.Rand
	swept  time.Duration // Stamp.Mono, when unused files were closed
	due    []due
	in     []sighting
	unseen float64 // for how many threads in stands that were not looked at
}

// due is a job to look at now.
type due struct {
	*job
	pids    []int
	leaders []int
	idle    bool // no window needs it
}

// others are the threads of a job besides the leading one.
type others struct {
	known     map[int]*other
	read      map[int]time.Duration // by process, when one of its threads was seen to read
	all       []*other              // the same
	listed    time.Duration
	processes int           // when they were listed
	again     time.Duration // between two listings while none does anything
	busy      bool          // one of them did something at the newest moment
	next      int           // process at which the next listing begins
}

// other is one of them.
type other struct {
	tid, pid  int
	parent    int           // of its process
	active    time.Duration // when it was seen to do something; 0 for never
	read      time.Duration // when it was seen to read
	looks     int
	runs      int
	first     process.Stat // when it was first seen to read, with
	ran       uint64       // ticks for which it ran since then
	share     float64      // of them in the kernel, at most what its bytes can take
	begin     process.Stat // of the ticks by which yields is judged next
	yields    bool         // it runs mostly in the kernel
	forgotten bool         // it has ended
}

// sighting is what another thread was in, and for how many threads it stands.
type sighting struct {
	*other
	sample.In
	weight float64
}

// takeAll looks at the jobs that are due, and returns the mean time until the next moment.
func (r *round) takeAll() time.Duration {
	s, now := r.source, sample.Now().Mono
	if now-r.swept >= openFor {
		r.looker.sweep(now - openFor)
		r.swept = now
	}
	gap := idleGap
	s.mu.Lock()
	for _, j := range s.jobs {
		gap = min(gap, s.gap(j, now))
	}
	r.due = r.due[:0]
	for _, j := range s.jobs {
		if len(j.leaders) == 0 || r.random.Float64()*float64(s.gap(j, now)) > float64(gap) || s.held >= maxHeld {
			continue
		}
		d := due{job: j, pids: j.pids, idle: s.idle[j.name]}
		for tid := range j.leaders {
			d.leaders = append(d.leaders, tid)
		}
		r.due = append(r.due, d)
	}
	s.mu.Unlock()
	for i := range r.due {
		if !r.take(&r.due[i]) {
			break
		}
	}
	return gap
}

// take looks at the threads of a job. It reports false if another goroutine has taken over.
func (r *round) take(d *due) bool {
	type leading struct {
		tid int
		m   sample.Moment
	}
	var seen []leading
	looked := false
	for _, tid := range d.leaders {
		at := sample.Now().Mono
		in, ok, err := r.look(tid, true)
		if !ok {
			return false
		}
		if err != nil {
			continue
		}
		if in.State != sample.StateReady && !looked {
			looked = true
			if !r.lookAtOthers(d, at) {
				return false
			}
		}
		seen = append(seen, leading{tid, sample.Moment{At: at, In: in}})
	}
	s := r.source
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range seen {
		l := d.job.leaders[seen[i].tid]
		if l == nil {
			continue
		}
		m := seen[i].m
		if m.State != sample.StateReady {
			m.Others, m.Unseen = r.othersOf(&d.others, l.tid), r.unseen
		}
		l.moments = append(l.moments, m)
		s.held++
	}
	return s.turn == r.turn
}

// look looks at a thread, unless an earlier look did not end. ok is false if another goroutine has taken over.
func (r *round) look(tid int, leads bool) (in sample.In, ok bool, err error) {
	s := r.source
	if !procfile.May("/proc", tid) {
		return in, true, errGone
	}
	s.mu.Lock()
	s.at, s.since = tid, sample.Now().Mono
	s.mu.Unlock()
	in, err = r.looker.look(tid, leads)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn != r.turn {
		return in, false, err
	}
	s.at = 0
	return in, true, err
}

// lookAtOthers looks at some of the other threads of a job: all of them if they are few, else more often at those that
// did something recently.
func (r *round) lookAtOthers(d *due, now time.Duration) bool {
	o := &d.others
	o.update(d, &r.looker, now)
	r.in = r.in[:0]
	var active, idle []*other
	for _, one := range o.all {
		switch {
		case one.forgotten, len(d.leaders) == 1 && one.tid == d.leaders[0]:
		case one.active > 0 && now-one.active < activeFor:
			active = append(active, one)
		default:
			idle = append(idle, one)
		}
	}
	o.busy = false
	takes, rest := min(len(active), maxActive), min(len(idle), maxIdle)
	weight, idleWeight := float64(len(active))/max(1, float64(takes)), 1.0
	if len(idle) >= crowd { // work may pass from each to the next
		rest = min(len(idle), maxActive)
		idleWeight = float64(len(idle)) / max(1, float64(rest))
	}
	r.unseen = (weight-1)*float64(takes) + (idleWeight-1)*float64(rest)
	for n := range takes + rest {
		from, each := &active, weight
		if n >= takes {
			from, each = &idle, idleWeight
		}
		i := r.random.IntN(len(*from))
		one := (*from)[i]
		(*from)[i] = (*from)[len(*from)-1]
		*from = (*from)[:len(*from)-1]
		in, ok, err := r.look(one.tid, false)
		if !ok {
			return false
		}
		if err != nil {
			one.forgotten = true
			delete(o.known, one.tid)
			continue
		}
		if one.learn(&in, now) {
			o.read[one.pid] = now
		}
		one.parent = r.looker.stat.Parent
		one.count(r.looker.stat, r.looker.readBytes)
		one.judge(r.looker.stat)
		o.busy = o.busy || one.active == now
		r.in = append(r.in, sighting{one, in, each})
	}
	return true
}

// learn notes what a thread does, and reports whether it reads.
func (o *other) learn(in *sample.In, now time.Duration) (reads bool) {
	if o.looks++; o.looks > 2*spinLooks {
		o.looks, o.runs = o.looks/2, o.runs/2
	}
	onFile := !in.Lock && in.State == sample.StateBlocked || in.File == sample.RegularFile ||
		in.Syscall == sample.NoSyscall || sample.CallOf(runtime.GOARCH, in.Syscall) == sample.AIOCall
	switch {
	case in.State == sample.StateReady:
		o.runs++
		o.active = now
		return false
	case onFile, in.File == sample.Socket && isRemote(in.Peer):
		o.active = now
	}
	if onFile {
		o.read = now
	}
	return onFile
}

// spins reports whether a thread may only look for work: it has run at nearly all looks, or at most of them while
// another thread of its process reads, which it does not, or so mostly in the kernel.
func (o *others) spins(one *other, now time.Duration) bool {
	read, reads := o.read[one.pid]
	pool := reads && now-read < readsFor && (one.read == 0 || now-one.read >= readsFor)
	return one.looks >= spinLooks && (one.runs >= one.looks-1 || pool && one.runs >= poolRuns*one.looks/100) ||
		pool && one.yields
}

// ticks are for how long a thread ran from one look to another.
func ticks(before, now process.Stat) (user, system uint64) {
	return now.User - min(now.User, before.User), now.System - min(now.System, before.System)
}

// judge learns whether a thread runs mostly in the kernel: if it does not read, it looks for work, and gives up its CPU
// in between.
func (o *other) judge(now process.Stat) {
	user, system := ticks(o.begin, now)
	if o.begin == (process.Stat{}) {
		o.begin = now
	} else if user+system >= yieldTicks {
		o.begin, o.yields = now, system > user
	}
}

// count learns how much of its time on a CPU a thread that reads is in the kernel, to read. Other calls and interrupts
// are in its system time, too: so there is no more than its bytes can take.
func (o *other) count(now process.Stat, readBytes func(tid int) (uint64, bool)) {
	if o.read == 0 || o.first == (process.Stat{}) {
		o.first = now
		return
	}
	user, system := ticks(o.first, now)
	if user+system == o.ran {
		return
	}
	o.ran = user + system
	share := float64(system) / float64(o.ran+priorTicks)
	if bytes, known := readBytes(o.tid); known {
		share = min(share, float64(bytes)*maxRead/float64(o.ran*uint64(process.Tick)))
	}
	o.share = math.Round(share*shareSteps) / shareSteps
}

// othersOf sums up what the others of a leading thread were in.
func (r *round) othersOf(of *others, leader int) (all []sample.Other) {
	pid := leader
	if one := of.known[leader]; one != nil {
		pid = one.pid
	}
	now := sample.Now().Mono
	for _, one := range r.in {
		if one.tid == leader || r.shadowed(one.other) {
			continue
		}
		o := sample.Other{
			In: one.In, Same: one.pid == pid, Reads: one.read > 0 && now-one.read < readsFor,
			Spins: of.spins(one.other, now), Weight: one.weight,
		}
		if o.Reads {
			o.System = one.share
		}
		i := slices.IndexFunc(all, func(x sample.Other) bool { x.Weight = o.Weight; return x == o })
		if i < 0 {
			all = append(all, o)
		} else {
			all[i].Weight += o.Weight
		}
	}
	return all
}

// shadowed reports whether a thread's process was begun, maybe through others, by one whose first thread does something
// now: that one does not wait for it.
func (r *round) shadowed(of *other) bool {
	parent := of.parent
	for range maxDepth {
		i := slices.IndexFunc(r.in, func(s sighting) bool { return s.tid == s.pid && s.pid == parent })
		if i < 0 {
			return false
		}
		if s := &r.in[i]; s.State == sample.StateReady || s.State == sample.StateBlocked {
			return true
		}
		parent = r.in[i].parent
	}
	return false
}

// update lists the threads of a job again: of its processes in turn, and of their children, which may have begun after
// the job's processes were found. It does so at once if nothing is seen that could be waited for.
func (o *others) update(d *due, looker *looker, now time.Duration) {
	since := now - o.listed
	every := listEvery
	if d.idle {
		every = listIdle
	}
	if o.listed > 0 && since < every && o.processes == len(d.pids) && (o.busy || since < o.again) {
		return
	}
	o.listed, o.processes = now, len(d.pids)
	before := len(o.known)
	defer func() {
		if o.again = min(max(2*o.again, listAgain), every/8); len(o.known) > before || o.busy {
			o.again = listAgain
		}
	}()
	pids := d.pids
	for _, tid := range d.leaders {
		pids = looker.children(pids, tid)
	}
	for _, one := range o.all[:min(len(o.all), maxForking)] { // a child is listed by the thread that began it
		if one.tid != one.pid {
			pids = looker.children(pids, one.tid)
		}
	}
	for i, n := 0, len(d.pids); i < len(pids); i++ {
		if turn := i < n && (i+n-o.next%n)%n < listAtOnce; turn || i >= n || o.known[pids[i]] == nil {
			o.list(pids[i], now)
			pids = looker.children(pids, pids[i])
		}
	}
	if len(d.pids) > 0 {
		o.next = (o.next + listAtOnce) % len(d.pids)
	}
	for pid := range o.read {
		if !slices.Contains(pids, pid) {
			delete(o.read, pid)
		}
	}
	o.all = slices.DeleteFunc(o.all, func(one *other) bool {
		if one.forgotten || !slices.Contains(pids, one.pid) {
			delete(o.known, one.tid)
			return true
		}
		return false
	})
}

// list lists the threads of a process.
func (o *others) list(pid int, now time.Duration) {
	names, err := kernfile.Names("/proc/"+strconv.Itoa(pid)+"/task", maxThreads)
	if err != nil {
		return
	}
	for _, name := range names {
		tid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if one := o.known[tid]; one != nil && one.pid == pid {
			continue
		}
		if len(o.known) >= maxThreads {
			return
		}
		o.known[tid] = &other{tid: tid, pid: pid, active: now}
		o.all = append(o.all, o.known[tid])
	}
}

// Package chain finds out why a thread did not run. It follows wake-ups from thread to thread: a thread that slept
// until another one woke it had to wait for whatever that one did meanwhile.
//
// The idea is that of wPerf (Zhou et al., OSDI 2018), applied to one thread and any interval.
package chain

import (
	"runtime"
	"slices"
	"sort"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Bounds of a Timeline. A thread that finds no room is left out, and its job has no evidence then.
const (
	maxThreads  = 16384
	maxSegments = 1 << 18 // of all threads: about 20 MiB
	maxReasons  = 256
)

// Timeline holds what the threads of followed jobs did in the last seconds. It is not safe for concurrent use.
type Timeline struct {
	threads  map[int]*thread
	jobs     map[string]*jobTimes
	until    time.Duration // events are complete up to here
	gap      time.Duration // end of the last stretch with lost events; everything before is incomplete
	since    time.Duration // the first reading
	segments int
	reasons  reasons
	others   map[int]string // names of threads that are not followed and woke one that is
	steal    steal
	arch     string
	lastOut  *thread       // that left its CPU last
	lastIn   time.Duration // when a thread got a CPU last
	watch    func(*Stretch)
	nested   int // threads that attend others, whose clocks are being asked for
}

// NewTimeline returns an empty Timeline.
func NewTimeline() *Timeline {
	return &Timeline{
		threads: map[int]*thread{}, jobs: map[string]*jobTimes{}, arch: runtime.GOARCH, reasons: reasons{most: maxReasons},
	}
}

// thread is the recent past of one thread: segments without a gap, and the state that has not ended.
type thread struct {
	tid, pid int
	name     string
	job      *jobTimes
	place    int // in job.threads
	creator  int
	born     time.Duration // when it was created, or first seen
	died     time.Duration // 0 if it lives
	segments []segment     // in order of time; each begins where the one before ends

	since    time.Duration // of the open state
	state    openState
	pause    pause               // of the open state, if it pauses
	found    reasonID            // what ended its last wait for several files; 0 if unknown
	usual    [sample.Calls]int32 // what ended the last pause in such a call: the waking thread and 1; 0 if unknown
	reads    bool                // it has read data
	unproved time.Duration       // its work since it last woke another thread or slept, which may be spinning
	fetching float64             // share of its last running time that was work of the kernel to fetch data, a moving mean
	naps     naps
	looks    looks
	gives    gives
	cut      cut
	clocks   clocks
	cold     coldness
	hands    hands
	summing  bool // its events are sums
}

type openState uint8

const (
	stateUnknown openState = iota // since the thread was adopted, or since events were lost
	stateOn                       // on a CPU
	stateOff                      // ready or paused; pause says more
)

// pause is why a thread is off its CPU.
type pause struct {
	kind   kind
	call   sample.Call
	reason reasonID
	serves bool // of ready: another program may have taken the CPU to serve storage
}

// kind is what a thread does in a segment.
type kind uint8

const (
	running           kind = iota
	ready                  // without a CPU
	readyAfterStorage      // it wakes up, for less than minSlice, or the job's own threads read and work in turn
	storage                // waits for storage
	taken                  // on a CPU whose time the hypervisor stole
	asleep                 // until waker, or for reason if that is 0
	unknown
)

// segment is a stretch of a thread's time.
type segment struct {
	from, to    time.Duration
	waker       int32
	kind        kind
	serves      bool // of ready: what took the CPU may have served storage
	receives    bool // asleep until a peer sent something over TCP
	spins       bool // running until it yielded its CPU: it looks for work again and again
	nap         bool // asleep until a timeout of poll
	timed       bool // asleep until a timeout
	attends     bool // asleep between two looks at what the threads do that this one began
	reason      reasonID
	slow        float32 // share of running that a pause before it took, which would not be there without storage
	slowNetwork float32 // the same, without waiting for peers, too
	fetch       float32 // share of running, or of ready after running, for work of the kernel to fetch data from storage
}

// Learn adds events. They are copied.
func (t *Timeline) Learn(s *sample.Schedule) {
	if t.since == 0 {
		t.since = s.Until
		if len(s.Events) > 0 {
			t.since = min(t.since, s.Events[0].At)
		}
	}
	if s.Lost > 0 {
		t.lose(s.Until)
	}
	if s.Arch != "" {
		t.arch = s.Arch
	}
	for i := range s.Events {
		t.event(&s.Events[i])
	}
	t.until = max(t.until, s.Until)
}

// lose makes every thread's state unknown: events are missing before until.
func (t *Timeline) lose(until time.Duration) {
	t.gap = until
	for _, th := range t.threads {
		if th.died == 0 {
			th.leave(until)
			th.close(t, max(th.since, until), segment{kind: unknown})
			th.state = stateUnknown
		}
	}
}

func (t *Timeline) event(e *sample.ThreadEvent) {
	switch e.Kind {
	case sample.ThreadBegan:
		t.begin(e)
		return
	case sample.ThreadNamed:
		t.name(e)
		return
	}
	th := t.threads[e.TID]
	if th == nil || th.died != 0 {
		return
	}
	switch e.Kind {
	case sample.ThreadFound:
		th.pause.reason = t.reason(reasonOf(&th.pause, e))
		th.found = th.pause.reason
	case sample.ThreadOut:
		th.out(t, e)
	case sample.ThreadIn:
		th.in(t, e)
	case sample.ThreadSum:
		th.sum(t, e)
	}
}

func (t *Timeline) begin(e *sample.ThreadEvent) {
	if len(t.threads) >= maxThreads {
		t.gap = e.At
		return
	}
	j := t.jobs[e.Job]
	if j == nil {
		j = &jobTimes{id: e.Job}
		t.jobs[e.Job] = j
	}
	th := &thread{tid: e.TID, pid: e.PID, name: clean(e.Name), job: j, creator: e.Creator, born: e.At, since: e.At}
	if e.Creator != 0 { // a new thread is ready at once
		th.state, th.pause = stateOff, pause{kind: ready}
	}
	th.clocks = t.clocksAt(e.Creator, j, e.At)
	t.threads[e.Creator].starts(th, e.At)
	th.place = len(j.threads)
	j.threads = append(j.threads, th)
	if old := t.threads[e.TID]; old != nil {
		t.remove(old)
	}
	t.threads[e.TID] = th
}

func (t *Timeline) remove(th *thread) {
	t.segments -= len(th.segments)
	th.job.leave(th)
	delete(th.job.leading, th.tid)
	delete(t.threads, th.tid)
}

// leave removes a thread of a job. The last one takes its place.
func (j *jobTimes) leave(th *thread) {
	last := j.threads[len(j.threads)-1]
	j.threads[th.place], last.place = last, th.place
	j.threads[len(j.threads)-1] = nil
	j.threads = j.threads[:len(j.threads)-1]
}

// out ends a running segment and opens a pause.
func (th *thread) out(t *Timeline, e *sample.ThreadEvent) {
	th.leave(e.At)
	if th.state == stateOff { // the event between was lost
		th.close(t, e.At, segment{kind: unknown})
	}
	th.reads = th.reads || e.Fetched > 0 || e.Chars > 0
	th.hands.read(e)
	if th.state == stateUnknown && e.At-th.since > maxRunning {
		th.close(t, e.At, segment{kind: unknown})
	}
	th.ran(t, e.At, e)
	if e.State == sample.StateDead {
		th.died = e.At
		th.uncut(t)
		return
	}
	th.state, th.pause = stateOff, t.pauseOf(e)
	t.displaced(th, e)
}

// in ends a pause.
func (th *thread) in(t *Timeline, e *sample.ThreadEvent) {
	left := t.replaces(e.At)
	th.leave(e.At)
	if th.state == stateOn {
		th.close(t, e.At, segment{kind: unknown})
	}
	if th.state == stateUnknown {
		th.close(t, e.At, segment{kind: unknown})
		th.state = stateOn
		return
	}
	woken := e.At
	if e.Woken != 0 {
		woken = min(max(e.Woken, th.since), e.At)
	}
	p := th.pause
	if p.kind == ready {
		serves := p.serves && e.At-th.since < minSlice
		th.close(t, e.At, segment{kind: ready, fetch: float32(th.fetching), serves: serves})
		th.state = stateOn
		return
	}
	s := segment{kind: p.kind, reason: p.reason}
	if by := t.causeOf(&p, e); by != 0 {
		s.kind, s.waker = asleep, int32(by)
		t.threads[by].proved()
		t.wakes(t.threads[by], th, th.since, e)
	} else if p.kind == asleep && p.call == sample.NoCall && e.WakerKind != sample.UserThread {
		s.kind = storage // a page fault that something in the kernel ended, such as the answer of a server or of an NVMe
	} else if p.kind == asleep && (e.WakerKind == sample.UserThread || e.WakerKind == sample.SoftIRQ) &&
		t.threads[e.Waker] == nil {
		s.reason = t.wokenBy(s.reason, e)
	}
	s.timed = s.kind == asleep && s.waker == 0 && p.mayTimeOut() && e.WakerKind == sample.Interrupt &&
		t.reasons.get(p.reason).Kind != ForGPU
	s.nap = s.timed && p.call.Polls()
	if s.nap && t.reasons.get(p.reason).Kind == ForPipe { // it looks whether the one that brings something still lives
		if next := (&walker{Timeline: t}).expected(th); next != nil {
			s.waker = int32(next.tid)
		}
	}
	if s.kind == asleep && s.waker == 0 && !s.timed {
		th.mayCut(t, woken)
	}
	if !s.nap && (s.waker != 0 || p.kind == asleep) {
		th.usual[p.call] = s.waker + 1
	}
	th.close(t, woken, s)
	after := segment{kind: ready}
	ownCore := left != nil && left.job == th.job
	if s.kind == storage && (ownCore || e.At-woken < minSlice) {
		after.kind = readyAfterStorage
	}
	th.close(t, e.At, after)
	th.state = stateOn
}

// sum replaces events by sums. The order of the parts is not known; the stretch is short.
func (th *thread) sum(t *Timeline, e *sample.ThreadEvent) {
	th.leave(e.At)
	p := t.pauseOf(e)
	asleepFor := segment{kind: p.kind, reason: p.reason}
	if by := t.causeOf(&p, e); by != 0 {
		asleepFor.kind, asleepFor.waker = asleep, int32(by)
		t.threads[by].proved()
	}
	if p.kind == ready || p.kind == storage {
		asleepFor.kind = asleep
	}
	th.close(t, max(th.since, e.From), segment{kind: unknown})
	th.reads = th.reads || e.Fetched > 0 || e.Chars > 0
	th.hands.read(e)
	if e.Fetched > 0 || e.Blocked > 0 {
		th.job.requested = e.At
	}
	th.summing = true
	defer func() { th.summing = false }()
	at := min(th.since+e.Running, e.At)
	on := th.ran(t, at, e)
	for _, part := range []struct {
		time time.Duration
		segment
	}{{e.Blocked, segment{kind: storage}}, {e.Asleep, asleepFor}, {e.Ready, segment{kind: ready}}} {
		at = min(at+part.time, e.At)
		th.close(t, at, part.segment)
	}
	th.close(t, e.At, on)
	th.state, th.pause = stateOff, pause{kind: ready}
}

// close ends the open state at a moment, as a segment of that kind.
func (th *thread) close(t *Timeline, at time.Duration, s segment) {
	if at <= th.since {
		return
	}
	th.pass(t, at, &s)
	s.from, s.to = th.since, at
	s.receives = s.kind == asleep && s.waker == 0 && t.reasons.get(s.reason).From != ""
	if s.kind == running {
		th.hands.busy += at - th.since
	}
	th.warm(&s)
	was := th.clocks.at
	th.look(t, &s)
	th.clocks.add(t, th, th.whole(&s))
	if !th.summing { // many short pauses are no long one
		th.cool(&s, th.clocks.at[memory]-was[memory], th.clocks.at[network]-was[network])
	}
	if s.kind == running && !s.spins {
		th.worked(time.Duration(float64(s.to-s.from) * (1 - float64(s.fetch) - float64(s.slow))))
	}
	if n := len(th.segments); n > 0 && th.segments[n-1].joins(&s) {
		th.segments[n-1].to = at
	} else {
		if t.segments >= maxSegments {
			t.gap = at
			t.Forget(at - minKept)
		}
		th.segments = append(th.segments, s)
		t.segments++
	}
	th.since = at
}

func (s *segment) joins(next *segment) bool {
	return s.kind == next.kind && s.waker == next.waker && s.reason == next.reason && s.waker == 0 &&
		s.fetch == next.fetch && s.slow == next.slow && s.slowNetwork == next.slowNetwork && s.serves == next.serves &&
		s.nap == next.nap && s.timed == next.timed && s.attends == next.attends
}

// minKept is how much is kept when there is no room.
const minKept = time.Second

// Forget drops what ended before a moment.
func (t *Timeline) Forget(before time.Duration) {
	for _, th := range t.threads {
		n := sort.Search(len(th.segments), func(i int) bool { return th.segments[i].to > before })
		if n > 0 {
			th.segments = slices.Delete(th.segments, 0, n)
			t.segments -= n
		}
		if th.died != 0 && len(th.segments) == 0 {
			t.remove(th)
		}
	}
	for id, j := range t.jobs {
		if len(j.threads) == 0 {
			delete(t.jobs, id)
		}
	}
}

// Covers reports whether the states of a thread are known from one moment to another, or from a moment in between on.
// Before it was created, its states are those of the thread that created it, as Walk has it: a short-lived child may
// lead, and be younger than the time that is divided.
func (t *Timeline) Covers(tid int, from, to time.Duration) bool {
	th := t.threads[tid]
	for depth := 0; th != nil && th.born >= to && depth < maxDepth; depth++ {
		th = t.threads[th.creator]
	}
	return th != nil && th.born < to && t.gap < to && to <= t.until+slack && (th.died == 0 || th.died > from) &&
		(len(th.segments) == 0 || th.segments[0].from <= max(from, th.born))
}

// Heir returns the thread whose time counts for a thread that has ended at a moment: the one that created it, as a
// launcher created a rank. It returns the thread itself if that lives or nothing is known of its creator.
func (t *Timeline) Heir(tid int, at time.Duration) int {
	heir := tid
	for range maxDepth {
		th := t.threads[heir]
		switch {
		case th == nil:
			return tid
		case th.died == 0 || th.died > at:
			return heir
		}
		heir = th.creator
	}
	return tid
}

// Knows reports whether a thread is followed, or was until recently.
func (t *Timeline) Knows(tid int) bool { return t.threads[tid] != nil }

// Gap is the end of the last stretch in which events were lost, or not kept for want of room; 0 if there was none.
func (t *Timeline) Gap() time.Duration { return t.gap }

// Until is the moment up to which all events are known.
func (t *Timeline) Until() time.Duration { return t.until }

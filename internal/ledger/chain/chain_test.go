package chain

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

const (
	sysRead  = 0 // of amd64
	sysWrite = 1
	sysPoll  = 7

	aPeer    = "10.0.0.7:443 over TCP"
	sysFutex = 202
	sysSleep = 230
	sysRecv  = 45
	sysWait4 = 61
)

// script writes the events of threads.
type script struct {
	events []sample.ThreadEvent
	lost   uint64
}

func ms(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

func (s *script) began(at float64, tid, creator int) {
	s.events = append(s.events, sample.ThreadEvent{At: ms(at), Kind: sample.ThreadBegan, TID: tid, PID: tid, Job: "job",
		Creator: creator})
}

// on has a thread get a CPU without a pause before.
func (s *script) on(at float64, tid int) {
	s.events = append(s.events, sample.ThreadEvent{At: ms(at), Kind: sample.ThreadIn, TID: tid, PID: tid})
}

func (s *script) out(at float64, tid int, e sample.ThreadEvent) {
	e.At, e.Kind, e.TID, e.PID = ms(at), sample.ThreadOut, tid, tid
	s.events = append(s.events, e)
}

func (s *script) in(at, woken float64, tid, waker int) {
	kind := sample.UserThread
	if waker == 0 {
		kind = sample.Interrupt
	}
	s.inFrom(kind, at, woken, tid, waker)
}

// inFrom has a thread get a CPU after it was woken in a context.
func (s *script) inFrom(kind sample.WakerKind, at, woken float64, tid, waker int) {
	s.events = append(s.events, sample.ThreadEvent{At: ms(at), Kind: sample.ThreadIn, TID: tid, PID: tid, Woken: ms(woken),
		Waker: waker, WakerKind: kind})
}

var (
	disk     = sample.ThreadEvent{State: sample.StateBlocked, IOWait: true, Syscall: sysRead, File: sample.RegularFile}
	pipe     = sample.ThreadEvent{State: sample.StateAsleep, Syscall: sysRead, File: sample.Pipe}
	futex    = sample.ThreadEvent{State: sample.StateAsleep, Syscall: sysFutex}
	nap      = sample.ThreadEvent{State: sample.StateAsleep, Syscall: sysSleep}
	receive  = sample.ThreadEvent{State: sample.StateAsleep, Syscall: sysRecv, File: sample.Socket, Peer: aPeer}
	child    = sample.ThreadEvent{State: sample.StateAsleep, Syscall: sysWait4}
	preempt  = sample.ThreadEvent{State: sample.StateReady}
	fault    = sample.ThreadEvent{State: sample.StateAsleep, Syscall: sample.NoSyscall}
	lock     = sample.ThreadEvent{State: sample.StateBlocked, Syscall: sysRead, File: sample.RegularFile}
	fuseRead = sample.ThreadEvent{State: sample.StateAsleep, Syscall: sysRead, File: sample.RegularFile}
	died     = sample.ThreadEvent{State: sample.StateDead}
)

func (s *script) timeline(until float64) *Timeline {
	t := NewTimeline()
	slices.SortStableFunc(s.events, func(a, b sample.ThreadEvent) int { return int(a.At - b.At) })
	t.Learn(&sample.Schedule{Until: ms(until), Events: s.events, Lost: s.lost, Arch: "amd64"})
	return t
}

// shares sums the milliseconds of the pieces.
func shares(pieces []Piece) (work, noCore, storage, other, unknown float64) {
	for _, p := range pieces {
		of := float64(p.To-p.From) / float64(time.Millisecond)
		switch p.Kind {
		case Work:
			work += of
		case NoCore:
			noCore += of
		case Storage:
			storage += of
		case Other:
			other += of
		case Unknown:
			unknown += of
		}
	}
	return work, noCore, storage, other, unknown
}

func check(t *testing.T, what string, pieces []Piece, want ...float64) {
	t.Helper()
	work, noCore, storage, other, unknown := shares(pieces)
	got := []float64{work, noCore, storage, other, unknown}
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v ms of work, no core, storage, other, unknown, want %v", what, got, want)
	}
}

func TestWalk(t *testing.T) {
	tests := map[string]struct {
		write func(s *script)
		want  []float64
	}{
		"reads itself": {func(s *script) {
			s.out(20, 1, disk)
			s.in(70, 69.5, 1, 0)
		}, []float64{50, 0, 50, 0, 0}},
		"has no core after it read": {func(s *script) {
			s.out(20, 1, disk)
			s.in(70, 40, 1, 0)
		}, []float64{50, 30, 20, 0, 0}},
		"reads in turn with another": {func(s *script) {
			s.began(0, 2, 0)
			s.out(20, 1, disk)
			s.on(40, 2)
			s.out(70, 2, futex)
			s.in(70, 40, 1, 0)
		}, []float64{50, 0, 50, 0, 0}},
		"sleeps on a file without a block device": {func(s *script) {
			s.out(20, 1, fuseRead)
			s.in(70, 70, 1, 99)
		}, []float64{50, 0, 50, 0, 0}},
		"is preempted": {func(s *script) {
			s.out(20, 1, preempt)
			s.on(50, 1)
		}, []float64{70, 30, 0, 0, 0}},
		"has no core after a wake-up": {func(s *script) {
			s.out(20, 1, futex)
			s.in(60, 40, 1, 0)
		}, []float64{60, 20, 0, 20, 0}},
		"a page fault that an interrupt ends": {func(s *script) {
			s.out(20, 1, fault)
			s.in(70, 70, 1, 0)
		}, []float64{50, 0, 50, 0, 0}},
		"a page fault that a packet of a server ends": {func(s *script) {
			s.out(20, 1, fault)
			s.inFrom(sample.SoftIRQ, 70, 70, 1, 0)
		}, []float64{50, 0, 50, 0, 0}},
		"a page fault that a packet ends, while another program sends on that CPU": {func(s *script) {
			s.out(20, 1, fault)
			s.inFrom(sample.SoftIRQ, 70, 70, 1, 99)
		}, []float64{50, 0, 50, 0, 0}},
		"a page fault that a packet ends, while a thread of the job sends on that CPU": {func(s *script) {
			s.began(0, 2, 0)
			s.on(0, 2)
			s.out(20, 1, fault)
			s.inFrom(sample.SoftIRQ, 70, 70, 1, 2)
		}, []float64{50, 0, 50, 0, 0}},
		"a page fault that another program ends": {func(s *script) {
			s.out(20, 1, fault)
			s.in(70, 70, 1, 99)
		}, []float64{50, 0, 0, 50, 0}},
		"receives what a packet brings": {func(s *script) {
			s.out(20, 1, receive)
			s.inFrom(sample.SoftIRQ, 70, 70, 1, 99)
		}, []float64{50, 0, 0, 50, 0}},
		"receives": {func(s *script) {
			s.out(20, 1, receive)
			s.in(70, 70, 1, 0)
		}, []float64{50, 0, 0, 50, 0}},
		"waits for a lock that is not released": {func(s *script) {
			s.began(0, 2, 0)
			s.on(0, 2)
			s.out(10, 1, futex)
			s.out(20, 2, disk)
			s.in(60, 60, 2, 0)
			s.out(80, 2, futex)
		}, []float64{40, 0, 40, 20, 0}},
		"is woken by a thread that polls while another one reads": {func(s *script) {
			s.began(0, 2, 0)
			s.began(0, 3, 0)
			s.on(0, 2)
			s.on(0, 3)
			s.out(10, 1, futex)
			s.out(10, 2, disk)
			for at := 10.0; at < 50; at += 10 {
				s.out(at, 3, nap)
				s.in(at+9, at+9, 3, 0)
			}
			s.in(50, 50, 1, 3)
			s.in(60, 60, 2, 0)
		}, []float64{60, 0, 40, 0, 0}},
		"is woken by a thread that receives data in pieces while another one reads": {func(s *script) {
			s.began(0, 2, 0)
			s.began(0, 3, 0)
			s.on(0, 2)
			s.on(0, 3)
			s.out(10, 1, futex)
			s.out(10, 2, disk)
			for at := 10.0; at < 50; at += 10 {
				s.out(at, 3, receive)
				s.inFrom(sample.SoftIRQ, at+9, at+9, 3, 99)
			}
			s.in(50, 50, 1, 3)
			s.in(60, 60, 2, 0)
		}, []float64{64, 0, 0, 36, 0}},
		"is woken by a thread that sleeps once while another one reads": {func(s *script) {
			s.began(0, 2, 0)
			s.began(0, 3, 0)
			s.on(0, 2)
			s.on(0, 3)
			s.out(10, 1, futex)
			s.out(10, 2, disk)
			s.out(10, 3, nap)
			s.in(50, 50, 3, 0)
			s.in(50, 50, 1, 3)
			s.in(60, 60, 2, 0)
		}, []float64{60, 0, 0, 40, 0}},
		"waits for a worker that reads": {func(s *script) {
			s.began(0, 2, 0)
			s.on(0, 2)
			s.out(10, 1, pipe)
			s.out(20, 2, disk)
			s.in(60, 60, 2, 0)
			s.in(80, 80, 1, 2)
		}, []float64{60, 0, 40, 0, 0}},
		"waits for a worker that waits for a feeder that sleeps": {func(s *script) {
			s.began(0, 2, 0)
			s.began(0, 3, 0)
			s.on(0, 2)
			s.on(0, 3)
			s.out(10, 1, pipe)
			s.out(20, 2, futex)
			s.out(30, 3, nap)
			s.in(50, 50, 3, 0)
			s.in(60, 60, 2, 3)
			s.in(80, 80, 1, 2)
		}, []float64{80, 0, 0, 20, 0}},
		"waits for a thread that was just born": {func(s *script) {
			s.out(10, 1, pipe)
			s.began(0, 2, 0)
			s.on(0, 2)
			s.out(30, 2, disk) // the creator reads first
			s.in(50, 50, 2, 0)
			s.began(60, 3, 2)
			s.on(60, 3)
			s.in(80, 80, 1, 3)
		}, []float64{80, 0, 20, 0, 0}},
		"waits for a lock that another thread holds": {func(s *script) {
			s.began(0, 2, 0)
			s.on(0, 2)
			s.out(10, 1, lock)
			s.in(60, 60, 1, 2)
		}, []float64{100, 0, 0, 0, 0}},
		"is woken by an interrupt on another thread's core": {func(s *script) {
			s.began(0, 2, 0)
			s.on(0, 2)
			s.out(10, 1, nap)
			s.events = append(s.events, sample.ThreadEvent{At: ms(60), Kind: sample.ThreadIn, TID: 1, PID: 1, Woken: ms(60),
				Waker: 2, WakerKind: sample.Interrupt})
		}, []float64{50, 0, 0, 50, 0}},
		"sleeps until now as it did before": {func(s *script) {
			s.began(0, 2, 0)
			s.on(0, 2)
			s.out(10, 1, futex)
			s.in(20, 20, 1, 2)
			s.out(40, 2, disk)
			s.out(50, 1, futex) // open: thread 2 usually ends it
		}, []float64{50, 0, 50, 0, 0}},
		"waits for its child": {func(s *script) {
			s.out(10, 1, child)
			s.began(10, 2, 1)
			s.on(10, 2)
			s.out(30, 2, disk)
			s.in(90, 90, 2, 0)
		}, []float64{40, 0, 60, 0, 0}},
		"waits for a child that was there before the job was followed": {func(s *script) {
			s.out(0, 1, child)
			s.began(0, 2, 0)
			s.on(0, 2)
			s.out(30, 2, disk)
			s.in(90, 90, 2, 0)
		}, []float64{40, 0, 60, 0, 0}},
		"died": {func(s *script) {
			s.out(40, 1, died)
		}, []float64{40, 0, 0, 60, 0}},
		"wakes each other in turn": {func(s *script) {
			s.began(0, 2, 0)
			s.out(10, 1, futex)
			s.on(0, 2)
			s.in(50, 50, 1, 2)
			s.out(50, 2, futex)
			s.in(90, 90, 2, 1)
			s.out(90, 1, futex)
		}, []float64{100, 0, 0, 0, 0}},
	}
	for name, test := range tests {
		s := &script{}
		s.began(0, 1, 0)
		s.on(0, 1)
		test.write(s)
		pieces := s.timeline(100).Walk(1, 0, ms(100), nil)
		check(t, name, pieces, test.want...)
	}
}

func TestReasons(t *testing.T) {
	for want, e := range map[Reason]sample.ThreadEvent{
		{ForNetwork, "receiving from 10.0.0.7:443 over TCP", "10.0.0.7:443"}: receive,
		{Kind: ForLock, Name: "futex"}:                                       futex,
		{Kind: ForTimer, Name: "sleep in the program"}:                       nap,
		{Kind: ForPipe, Name: "reading a pipe"}:                              pipe,
		{Kind: ForGPU, Name: "GPU driver"}:                                   {State: sample.StateAsleep, Syscall: 16, File: sample.CharDevice, Detail: 195 << 8},
	} {
		s := &script{}
		s.began(0, 1, 0)
		s.on(0, 1)
		s.out(10, 1, e)
		s.in(90, 90, 1, 0)
		timeline := s.timeline(100)
		pieces := timeline.Walk(1, ms(20), ms(80), nil)
		if len(pieces) != 1 || timeline.Reason(1, &pieces[0]) != want {
			t.Errorf("got %v (%v), want %v", pieces, timeline.Reason(1, &pieces[0]), want)
		}
	}
}

func TestLostEventsLeaveAGap(t *testing.T) {
	s := &script{}
	s.began(0, 1, 0)
	s.on(0, 1)
	timeline := s.timeline(100)
	timeline.Learn(&sample.Schedule{Until: ms(200), Lost: 3, Events: []sample.ThreadEvent{
		{At: ms(250), Kind: sample.ThreadOut, TID: 1, State: sample.StateBlocked, IOWait: true},
	}})
	timeline.Learn(&sample.Schedule{Until: ms(400)})
	if timeline.Covers(1, ms(150), ms(200)) || !timeline.Covers(1, ms(150), ms(300)) {
		t.Error("got a thread that is known in a stretch with lost events, or not after it")
	}
	check(t, "in the gap", timeline.Walk(1, ms(110), ms(200), nil), 0, 0, 0, 0, 90)
	check(t, "after the gap", timeline.Walk(1, ms(200), ms(300), nil), 50, 0, 50, 0, 0)
}

// TestClocks checks the prediction for a reader that reads 40 ms and works 10 ms for each 20 ms of work of the thread
// that waits for it.
func TestClocks(t *testing.T) {
	s := &script{}
	s.began(0, 1, 0)
	s.began(0, 2, 0)
	s.began(0, 3, 1) // of a pool that spins until it gets work
	s.events[len(s.events)-1].PID = 1
	s.on(0, 1)
	s.on(0, 2)
	s.on(0, 3)
	for at := 0.0; at < 1000; at += 50 {
		s.out(at, 2, disk)
		s.in(at+40, at+40, 2, 0)
		s.out(at+20, 1, pipe)
		s.in(at+50, at+50, 1, 2)
		s.out(at+30, 3, preempt)
		s.in(at+31, at+30, 3, 0)
	}
	timeline := s.timeline(1000)
	got := timeline.TimesAt(1)
	if want := ms(380); got.Memory < want || got.Memory > want+ms(30) {
		t.Errorf("without storage: got %v, want about %v: 19 ms a turn", got.Memory, want)
	}
	if got.Work < ms(550) || got.Work > ms(570) {
		t.Errorf("work: got %v, want 560 ms", got.Work)
	}
}

// TestWalkIsGapless walks random schedules.
func TestWalkIsGapless(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 7))
		s := &script{}
		threads := 1 + random.IntN(6)
		for tid := 1; tid <= threads; tid++ {
			s.began(float64(random.IntN(50)), tid, random.IntN(tid))
			at := 50.0
			for at < 900 {
				at += random.Float64() * 40
				s.out(at, tid, []sample.ThreadEvent{disk, pipe, futex, nap, preempt, lock}[random.IntN(6)])
				woken := at + random.Float64()*40
				at = woken + random.Float64()*5
				s.in(at, woken, tid, random.IntN(threads+1))
			}
		}
		timeline := s.timeline(1000)
		for range 5 {
			from := ms(random.Float64() * 900)
			to := from + ms(random.Float64()*200)
			pieces := timeline.Walk(1, from, to, nil)
			at := from
			for _, p := range pieces {
				if p.From != at || p.To <= p.From {
					t.Fatalf("seed %d: got %+v at %v, want no gap", seed, p, at)
				}
				at = p.To
			}
			if at != to {
				t.Fatalf("seed %d: got pieces up to %v, want %v", seed, at, to)
			}
		}
	}
}

// TestSumThatEndsInWork: a thread whose switches were summed while it read, and that then works without a switch.
func TestSumThatEndsInWork(t *testing.T) {
	s := &script{}
	s.began(0, 1, 0)
	s.on(0, 1)
	s.events = append(s.events, sample.ThreadEvent{
		At: ms(120), Kind: sample.ThreadSum, TID: 1, PID: 1, From: 0, Running: ms(110), Blocked: ms(10), Syscall: sysRead,
		Fetching: ms(20), Fetched: 1 << 20,
	})
	fetched := 0.0
	for _, p := range s.timeline(120).Walk(1, 0, ms(120), nil) {
		fetched += p.Fetch * float64(p.To-p.From) / float64(time.Millisecond)
	}
	if math.Abs(fetched-20) > 0.01 { // float32
		t.Errorf("got %.0f ms of running for the reads, want 20 ms", fetched)
	}
}

// TestSumBeforeWakeUp: a thread's waits for storage were merged until it woke another one, and it runs on.
func TestSumBeforeWakeUp(t *testing.T) {
	s := &script{}
	for _, tid := range []int{1, 2} {
		s.began(0, tid, 0)
		s.on(0, tid)
	}
	s.out(1, 1, futex)
	s.events = append(s.events, sample.ThreadEvent{
		At: ms(10), Kind: sample.ThreadSum, TID: 2, PID: 2, From: 0, Running: ms(4), Blocked: ms(6), Syscall: sysRead,
		Fetched: 1 << 20,
	})
	s.on(10, 2)
	s.in(10, 10, 1, 2)
	s.out(50, 2, disk)
	times := s.timeline(30)
	check(t, "a thread that another one fetched data for", times.Walk(1, 0, ms(10), nil), 4, 0, 6, 0, 0)
	if got := times.TimesAt(1).Memory; got != ms(24) {
		t.Errorf("got %v after 30 ms without storage, want 24 ms", got)
	}
	if !times.threads[2].reads {
		t.Error("got a thread that does not read, want one that does: its sum has data")
	}
}

// TestWorkAfterPeer: work after a wait for a peer is slower, which only the replay without such waits leaves out.
func TestWorkAfterPeer(t *testing.T) {
	s := &script{}
	s.began(0, 1, 0)
	s.on(0, 1)
	s.out(20, 1, receive)
	s.in(50, 50, 1, 0)
	s.out(100, 1, receive)
	times := s.timeline(100).TimesAt(1)
	if want := ms(100); times.Memory != want {
		t.Errorf("got %v without storage, want %v", times.Memory, want)
	}
	if want := ms(100 - 30 - 1); (times.Network - want).Abs() > ms(0.01) { // float32
		t.Errorf("got %v without waiting for peers, want %v: a tenth of 10 ms less", times.Network, want)
	}
}

// TestWorkToFetchData: the kernel needs 4 ms of a stretch of 20 ms, and of two stretches around a preemption.
func TestWorkToFetchData(t *testing.T) {
	s := &script{}
	s.began(0, 1, 0)
	s.on(0, 1)
	read, interrupted := disk, preempt
	read.Fetching, interrupted.Fetching = ms(4), ms(4)
	s.out(20, 1, read)
	s.in(50, 50, 1, 0)
	s.out(70, 1, interrupted)
	s.on(75, 1)
	s.out(100, 1, disk)
	timeline := s.timeline(100)
	fetched := 0.0
	for _, p := range timeline.Walk(1, 0, ms(70), nil) {
		if p.Kind == Work {
			fetched += p.Fetch * float64(p.To-p.From) / float64(time.Millisecond)
		}
	}
	if math.Abs(fetched-8) > 0.01 {
		t.Errorf("got %.2f ms for data, want 8 ms", fetched)
	}
	times := timeline.TimesAt(1)
	// A fifth of the preemption, too, and a tenth of the first 10 ms of other work after the pause.
	if want := ms(100 - 30 - 8 - 1 - 0.8 - 0.8); (times.Memory - want).Abs() > ms(0.5) {
		t.Errorf("got %v without storage, want %v", times.Memory, want)
	}
	if want := ms(100 - 30); times.Pending != want {
		t.Errorf("got %v without waiting, want %v", times.Pending, want)
	}
}

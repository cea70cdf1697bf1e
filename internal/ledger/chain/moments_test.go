package chain

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

const leader = 100

// asleepIn is a moment at which the leading thread slept in a call, with what others did.
func asleepIn(call int, file sample.FileKind, others ...sample.Other) sample.Moment {
	return sample.Moment{In: sample.In{State: sample.StateAsleep, Syscall: call, File: file}, Others: others}
}

var (
	busy    = sample.Other{Weight: 1}
	reading = sample.Other{In: sample.In{State: sample.StateBlocked, File: sample.RegularFile}, Reads: true, Weight: 1}
	idles   = sample.Other{In: sample.In{State: sample.StateAsleep, Syscall: 202}, Weight: 1}
)

// TestView: what a leading thread slept for is what those do that it may wait for.
func TestView(t *testing.T) {
	spinning, same, weighs := busy, busy, reading
	spinning.Spins, same.Same, weighs.Weight = true, true, 3
	blocked := func(call int, file sample.FileKind) sample.Moment {
		return sample.Moment{In: sample.In{State: sample.StateBlocked, Syscall: call, File: file}}
	}
	remote := asleepIn(45, sample.Socket)
	remote.Peer = "10.0.0.7:443 over TCP"
	meeting := sample.Other{Weight: 1, In: sample.In{
		State: sample.StateAsleep, Syscall: 45, File: sample.Socket, Peer: "127.0.0.1:1 over TCP",
	}}
	for name, test := range map[string]struct {
		moment  sample.Moment
		drives  bool
		storage float64 // share
		work    float64
		other   ReasonKind // of the rest
	}{
		"a read":                  {moment: blocked(0, sample.RegularFile), storage: 1},
		"a page of a mapped file": {moment: blocked(sample.NoSyscall, sample.NoFile), storage: 1},
		"a read of FUSE":          {moment: asleepIn(0, sample.RegularFile), storage: 1},
		"io_uring":                {moment: asleepIn(426, sample.OtherFile), storage: 1},
		"blocked by a lock of the file it writes to": {
			moment: sample.Moment{In: sample.In{State: sample.StateBlocked, Syscall: 1, File: sample.RegularFile, Lock: true}},
			other:  ForLock,
		},
		"blocked, and its call is hidden": {moment: blocked(sample.UnknownSyscall, sample.NoFile), storage: 1},
		"asleep, and its call is hidden":  {moment: asleepIn(sample.UnknownSyscall, sample.NoFile), other: ForEvent},
		"the same while a worker reads":   {moment: asleepIn(sample.UnknownSyscall, sample.NoFile, reading), storage: 1},
		"stopped": {moment: sample.Moment{In: sample.In{State: sample.StateStopped, Syscall: sample.UnknownSyscall},
			Others: []sample.Other{busy}}, other: ForStop},
		"a fork":                                 {moment: blocked(58, sample.NoFile), other: ForChild},
		"unmapping memory":                       {moment: blocked(11, sample.NoFile), other: ForLock},
		"a worker waits for one of the job":      {moment: asleepIn(0, sample.Pipe, meeting, reading), storage: 1},
		"the GPU's driver":                       {moment: blocked(16, sample.CharDevice), other: ForGPU},
		"a pipe, workers rest":                   {moment: asleepIn(0, sample.Pipe, idles, idles), other: ForPipe},
		"a pipe, one worker reads":               {moment: asleepIn(0, sample.Pipe, reading, idles), storage: 1},
		"a pipe, one reads and one works":        {moment: asleepIn(0, sample.Pipe, reading, busy), storage: 0.5, work: 0.5},
		"one stands for three":                   {moment: asleepIn(0, sample.Pipe, weighs, busy), storage: 0.75, work: 0.25},
		"a thread of its process is no worker":   {moment: asleepIn(0, sample.Pipe, reading, same), storage: 1},
		"but it is where no other does anything": {moment: asleepIn(0, sample.Pipe, idles, same), work: 1},
		"a lock is for threads of its process":   {moment: asleepIn(202, sample.NoFile, reading, same), work: 1},
		"one that spins does not count":          {moment: asleepIn(0, sample.Pipe, reading, spinning), storage: 1},
		"unless it is alone":                     {moment: asleepIn(0, sample.Pipe, spinning), work: 1},
		"a timer, as a launcher":                 {moment: asleepIn(230, sample.NoFile, reading), storage: 1},
		"a timer of one that drives a GPU":       {moment: asleepIn(230, sample.NoFile, reading), drives: true, other: ForTimer},
		"another machine":                        {moment: func() sample.Moment { remote.Others = []sample.Other{busy}; return remote }(), other: ForNetwork},
		"a child that reads":                     {moment: asleepIn(61, sample.NoFile, reading), storage: 1},
		"a child that nothing is known of":       {moment: asleepIn(61, sample.NoFile), other: ForChild},
	} {
		m := NewMoments()
		m.arch = "amd64"
		storage, work, rest := 0.0, 0.0, 1.0
		for _, p := range m.viewOf(newWatched(0), &test.moment, test.drives) {
			switch p.Kind {
			case Storage:
				storage += p.weight
			case Work:
				work += p.weight
			default:
				if kind := m.ReasonKind(&p.Piece); kind != test.other {
					t.Errorf("%s: got the reason %v, want %v", name, m.Reason(leader, &p.Piece), test.other)
				}
			}
		}
		if rest -= test.storage + test.work; math.Abs(storage-test.storage)+math.Abs(work-test.work) > 1e-9 {
			t.Errorf("%s: got storage %.2f, work %.2f; want %.2f and %.2f, the rest %.2f", name, storage, work,
				test.storage, test.work, rest)
		}
	}
	m := NewMoments()
	if got := m.viewOf(newWatched(0), &sample.Moment{}, false); got != nil {
		t.Errorf("a thread that busy: got %v, want nothing", got)
	}
}

// A timer of one that takes batches from workers is no look at them, until it has taken none for long.
func TestViewOfATrainingThatSleeps(t *testing.T) {
	m, w := NewMoments(), newWatched(0)
	m.arch = "amd64"
	for i, test := range []struct {
		at   time.Duration
		call int
		file sample.FileKind
		want PieceKind
	}{
		{time.Second, sysSleep, sample.NoFile, Storage},
		{2 * time.Second, sysRead, sample.Pipe, Storage}, // as the start of a program
		{2 * time.Second, sysSleep, sample.NoFile, Storage},
		{2 * time.Second, sysRead, sample.Pipe, Storage},
		{2 * time.Second, sysRead, sample.Pipe, Storage},
		{3 * time.Second, sysSleep, sample.NoFile, Other},
		{4*time.Second + asksFor, sysSleep, sample.NoFile, Storage},
	} {
		one := asleepIn(test.call, test.file, reading)
		one.At = test.at
		if got := m.viewOf(w, &one, false); len(got) != 1 || got[0].Kind != test.want {
			t.Errorf("moment %d: got %+v, want kind %d", i, got, test.want)
		}
	}
}

// life is what a thread did, drawn: stretches of working, reading and waiting for a child.
type life struct {
	until []time.Duration
	kind  []PieceKind
}

func newLife(r *rand.Rand, length time.Duration) (l life) {
	mean := [3]float64{r.Float64() * 0.05, r.Float64() * 0.05, r.Float64() * 0.05} // s
	kinds := [3]PieceKind{Work, Storage, Other}
	for at := time.Duration(0); at < length; {
		i := r.IntN(3)
		at += time.Duration(r.ExpFloat64() * mean[i] * 1e9)
		l.until, l.kind = append(l.until, min(at, length)), append(l.kind, kinds[i])
	}
	return l
}

func (l life) at(when time.Duration) PieceKind {
	for i, until := range l.until {
		if when < until {
			return l.kind[i]
		}
	}
	return Other
}

func (l life) spent(kind PieceKind, from, to time.Duration) (sum time.Duration) {
	begin := time.Duration(0)
	for i, until := range l.until {
		if l.kind[i] == kind {
			sum += max(0, min(until, to)-max(begin, from))
		}
		begin = until
	}
	return sum
}

// TestMomentsOfALife: what moments find of a life that is known is off by chance alone. What the kernel counts is
// exact.
func TestMomentsOfALife(t *testing.T) {
	const length, tick = 10 * time.Second, 100 * time.Millisecond
	states := map[PieceKind]sample.In{
		Work:    {},
		Storage: {State: sample.StateBlocked, File: sample.RegularFile},
		Other:   {State: sample.StateAsleep, Syscall: 61},
	}
	worst := 0.0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		l, m := newLife(r, length), NewMoments()
		m.arch = "amd64"
		next := time.Duration(0)
		for at := time.Duration(0); at < length; at += tick {
			ran := l.spent(Work, at, at+tick)
			w := sample.Watched{TID: leader, From: at, Counted: true, Ran: ran / 2, Ready: ran - ran/2}
			for ; next < at+tick; next += time.Duration(min(4, r.ExpFloat64()) * 1e7) {
				w.Moments = append(w.Moments, sample.Moment{At: next, In: states[l.at(next)]})
			}
			m.Learn(&sample.Moments{Until: at + tick, Threads: []sample.Watched{w}})
		}
		if !m.Covers(leader, 0, length) {
			t.Fatalf("seed %d: it is not covered", seed)
		}
		pieces := m.Walk(leader, 0, length, nil)
		var got [Unknown + 1]time.Duration
		end := time.Duration(0)
		for _, p := range pieces {
			if p.From != end || p.To <= p.From {
				t.Fatalf("seed %d: %+v follows %v", seed, p, end)
			}
			got[p.Kind], end = got[p.Kind]+p.To-p.From, p.To
		}
		if end != length {
			t.Errorf("seed %d: pieces end at %v, want %v", seed, end, length)
		}
		if work, want := got[Work]+got[NoCore], l.spent(Work, 0, length); (work - want).Abs() > maxAhead {
			t.Errorf("seed %d: got %v on a CPU or ready, want %v", seed, work, want)
		}
		n := float64(m.Seen(leader, 0, length))
		off := math.Abs((got[Storage] - l.spent(Storage, 0, length)).Seconds()) / length.Seconds()
		worst = max(worst, off)
		if off > 4*0.5/math.Sqrt(n) { // four standard deviations
			t.Errorf("seed %d: storage is %.1f points off, of %.0f moments", seed, 100*off, n)
		}
	}
	t.Logf("at most %.1f points off", 100*worst)
}

// TestSilence: what a thread does that was not seen for too long is unknown, and its earlier time stays.
func TestSilence(t *testing.T) {
	const tick, seen, length = 100 * time.Millisecond, time.Second, 6 * time.Second
	m := NewMoments()
	for at := time.Duration(0); at < length; at += tick {
		w := sample.Watched{TID: leader, From: at}
		if at < seen {
			w.Moments = []sample.Moment{{At: at + tick/2}}
		}
		m.Learn(&sample.Moments{Until: at + tick, Threads: []sample.Watched{w}})
	}
	var unknown time.Duration
	for _, p := range m.Walk(leader, 0, length, nil) {
		if p.Kind == Unknown {
			unknown += p.To - p.From
		}
	}
	if want := length - seen - 3*time.Second; (unknown - want).Abs() > 2*tick {
		t.Errorf("got %v unknown, want %v", unknown, want)
	}
	if m.Knows(leader+1) || m.Covers(leader+1, 0, tick) {
		t.Error("a thread that was never looked at is known")
	}
	m.Forget(time.Hour)
	if m.Knows(leader) {
		t.Error("a thread of the past is kept")
	}
}

// TestMomentReasons: names of peers come and go; the table does not grow, and a kept piece keeps its name.
func TestMomentReasons(t *testing.T) {
	m := NewMoments()
	kept := m.reasons.id(Reason{Kind: ForNetwork, Name: "kept"})
	m.threads[leader] = &watched{end: time.Hour, pieces: []Piece{{To: time.Hour, Kind: Other, reason: kept}}}
	for i := range 10 * maxWhy {
		m.reasons.id(Reason{Kind: ForNetwork, Name: time.Duration(i).String()})
		if i%100 == 0 {
			m.Forget(time.Minute)
		}
	}
	if len(m.reasons.all) > maxWhy+ReasonKinds {
		t.Errorf("got %d reasons, want at most %d", len(m.reasons.all), maxWhy)
	}
	if got := m.reasons.get(kept).Name; got != "kept" {
		t.Errorf("got %q, want the name that a piece has", got)
	}
}

// TestFrame: predictions for a leading thread alone, and for one with workers.
func TestFrame(t *testing.T) {
	second := func(f frame, l lead) (got [5]float64) {
		of := f.times(&l)
		all := []time.Duration{of.Memory, of.Pending, of.Workers, of.GPU, of.Network}
		for i := range all {
			got[i] = all[i].Seconds()
		}
		return got
	}
	for name, test := range map[string]struct {
		frame
		lead
		want [5]float64
	}{
		"it reads itself":        {frame{all: 1, storage: 0.6, running: 0.4, fetch: 0.1}, lead{}, [5]float64{0.3, 0.4, 1, 1, 0.3}},
		"workers that only read": {frame{all: 1, fedStorage: 0.6, running: 0.4}, lead{}, [5]float64{0.4, 0.4, 0.5, 1, 0.4}},
		"workers that read and decode": {frame{all: 1, fedStorage: 0.3, fedWork: 0.3, running: 0.4}, lead{},
			[5]float64{0.5, 0.7, 0.5, 1, 0.5}},
		"its GPU is the limit": {frame{all: 1, running: 0.2, sleeping: 0.8}, lead{sleeping: 1, gpu: true},
			[5]float64{1, 1, 1, 0.6, 1}},
		"a peer": {frame{all: 1, network: 0.5, sleeping: 0.5, running: 0.5}, lead{}, [5]float64{1, 1, 1, 1, 0.5}},
	} {
		got := second(test.frame, test.lead)
		for i := range got {
			if math.Abs(got[i]-test.want[i]) > 1e-6 {
				t.Errorf("%s: got %.2f, want %.2f", name, got, test.want)
				break
			}
		}
	}
}

// TestCrowd: where only a few of many threads are looked at, a thread that waits for them waits for those that work,
// although hardly ever one of them is seen.
func TestCrowd(t *testing.T) {
	const looks = 8
	random := rand.New(rand.NewPCG(1, 19))
	for _, test := range []struct {
		name             string
		threads          int
		running, blocked int
		duty             float64 // share of the time for which they do so
		work, storage    float64
	}{
		{"none works", 500, 0, 0, 1, 0, 0},
		{"three run, another one at each moment", 200, 3, 0, 1, 1, 0},
		{"they run and read", 200, 2, 6, 1, 0.25, 0.75},
		{"one runs for a tenth of the time", 60, 1, 0, 0.1, 0.1, 0},
	} {
		s := &sample.Moments{Arch: "amd64", Until: 20 * time.Second}
		var all []sample.Moment
		for at := time.Duration(0); at < s.Until; at += 20 * time.Millisecond {
			m := asleepIn(202, sample.NoFile)
			m.At = at
			active := random.Float64() < test.duty
			rest := asleepOther(202)
			m.Unseen = float64(test.threads - looks)
			for range looks {
				o := rest
				if n := random.IntN(test.threads); active && n < test.running+test.blocked {
					o = sample.Other{In: sample.In{State: sample.StateBlocked}, Same: true}
					if n < test.running {
						o.State = sample.StateReady
					}
				}
				o.Weight = float64(test.threads) / looks
				i := slices.IndexFunc(m.Others, func(x sample.Other) bool { return x.In == o.In })
				if i < 0 {
					m.Others = append(m.Others, o)
				} else {
					m.Others[i].Weight += o.Weight
				}
			}
			all = append(all, m)
		}
		s.Threads = []sample.Watched{{TID: 1, Job: "job", Moments: all}}
		m := NewMoments()
		m.Learn(s)
		var work, storage float64
		for _, p := range m.Walk(1, 0, s.Until, nil) {
			switch p.Kind {
			case Work:
				work += (p.To - p.From).Seconds()
			case Storage:
				storage += (p.To - p.From).Seconds()
			}
		}
		work, storage = work/s.Until.Seconds(), storage/s.Until.Seconds()
		if math.Abs(work-test.work) > 0.1 || math.Abs(storage-test.storage) > 0.1 {
			t.Errorf("%s: got %.2f of the time work, %.2f storage, want %.2f, %.2f", test.name, work, storage, test.work,
				test.storage)
		}
	}
}

// TestCrowdForgets: what was seen counts until enough is seen later, and for two seconds at most.
func TestCrowdForgets(t *testing.T) {
	const second = time.Second
	seen := func(at time.Duration, o sample.Other) *sample.Moment {
		return &sample.Moment{At: at, Others: []sample.Other{o}, Unseen: 1}
	}
	for _, test := range []struct {
		name    string
		later   int // that are seen to run after one that reads
		at      time.Duration
		forgets bool
	}{
		{"nine later ones", 9, second, false},
		{"ten later ones", 10, second, true},
		{"just under two seconds", 0, 1900 * time.Millisecond, false},
		{"two seconds", 0, 2 * second, true},
	} {
		var c crowd
		c.learn(seen(0, reading))
		for range test.later {
			c.learn(seen(test.at, busy))
		}
		c.learn(seen(test.at, asleepOther(202)))
		all, _ := c.mean()
		if got := !slices.ContainsFunc(all, func(o sample.Other) bool { return o.Reads }); got != test.forgets {
			t.Errorf("%s: forgotten: got %v, want %v", test.name, got, test.forgets)
		}
	}
}

// asleepOther is another thread of the same process that sleeps in a call.
func asleepOther(call int) sample.Other {
	return sample.Other{In: sample.In{State: sample.StateAsleep, Syscall: call}, Same: true}
}

package chain

import (
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// launcher is a program that begins another one and then looks again and again, in between asleep in a call for pause.
// The other one waits for the disk in four fifths of its time. All are in ms.
func launcher(until, pause, look float64, sleep sample.ThreadEvent, creator int) *script {
	s := &script{}
	s.began(0, 5, 0)
	s.began(0, 10, 5)
	s.on(0, 10)
	s.began(0, 20, creator)
	s.on(0, 20)
	for at := look; at < until; at += pause + look {
		s.out(at, 10, sleep)
		if at+pause < until {
			s.in(at+pause, at+pause, 10, 0)
		}
	}
	for at := 0.0; at < until; at += 10 {
		s.out(at, 20, disk)
		s.in(at+8, at+8, 20, 0)
	}
	return s
}

var poll = sample.ThreadEvent{State: sample.StateAsleep, Syscall: sysPoll}

// A program that does nothing but look whether others have ended waits for what they do.
func TestAttending(t *testing.T) {
	for what, of := range map[string]struct {
		pause, look float64
		sleep       sample.ThreadEvent
		creator     int
		attends     bool
	}{
		"a launcher that sleeps":               {100, 0.5, nap, 10, true},
		"a launcher that polls":                {900, 0.5, poll, 10, true},
		"a launcher that rarely looks":         {5000, 0.5, nap, 10, true},
		"looks that take longer, and are rare": {1000, 20, nap, 10, true},
		"work between the sleeps":              {100, 20, nap, 10, false},
		"a program that another one has begun": {100, 0.5, nap, 5, false},
	} {
		const until = 6005
		tl := launcher(until, of.pause, of.look, of.sleep, of.creator).timeline(until)
		_, _, storage, other, _ := shares(tl.Walk(10, 0, ms(until), nil))
		if of.attends && (storage < 0.7*until || other > 0.1*until) || !of.attends && storage > 0 {
			t.Errorf("%s: got %v ms of storage and %v of other, want four fifths of %d of storage: %v",
				what, storage, other, until, of.attends)
		}
		before := launcher(3005, of.pause, of.look, of.sleep, of.creator).timeline(3005).TimesAt(10)
		memory := (tl.TimesAt(10).Memory - before.Memory).Seconds()
		if of.attends && memory > 0.8 || !of.attends && memory < 2.9 {
			t.Errorf("%s: without storage it takes %v of 3 s, want a fifth: %v", what, memory, of.attends)
		}
	}
}

// What a launcher sleeps on after the others have ended is for no storage: it takes its time until the next look.
func TestAttendingTheDead(t *testing.T) {
	const died, until = 1000, 3000
	s := launcher(died, 5000, 0.5, nap, 10)
	s.out(died, 20, sample.ThreadEvent{State: sample.StateDead})
	tl := s.timeline(until)
	if got := tl.TimesAt(10).Memory; got < ms(2180) || got > ms(2300) {
		t.Errorf("without storage it takes %v, want a fifth of %d ms and all of %d ms after", got, died, until-died)
	}
}

// A shell that starts sleep(1) again and again waits for the program in its background.
func TestAttendingByProcesses(t *testing.T) {
	const until = 3000
	s := launcher(until, until, 1, child, 10)
	for at, pid := 1.0, 100; at < until; at, pid = at+300, pid+1 {
		s.began(at, pid, 10)
		s.on(at+1, pid)
		s.out(at+3, pid, nap)
		s.in(at+298, at+298, pid, 0)
		s.out(at+299, pid, died)
	}
	tl := s.timeline(until)
	if got := tl.TimesAt(10).Memory; got < ms(0.17*until) || got > ms(0.3*until) {
		t.Errorf("without storage it takes %v of %d ms, want a fifth, also in the middle of a sleep", got, until)
	}
	_, _, storage, other, _ := shares(tl.Walk(10, ms(1), ms(until), nil))
	if storage < 0.7*until || other > 0.1*until {
		t.Errorf("got %v ms of storage and %v of other, want four fifths of %d and none", storage, other, until)
	}
}

// A thread that sleeps while its GPU works does not wait for what its workers do then.
func TestDrivingIsNoAttending(t *testing.T) {
	const until = 1000
	s := launcher(until, 100, 0.5, nap, 10)
	tl := NewTimeline()
	tl.Learn(&sample.Schedule{Until: ms(0), Events: s.events[:2], Arch: "amd64"})
	tl.Lead(10, true, 0, 1)
	all := s.timeline(until)
	tl.Learn(&sample.Schedule{Until: ms(until), Events: s.events[2:], Arch: "amd64"})
	_, _, without, _, _ := shares(all.Walk(10, 0, ms(until), nil))
	if _, _, with, _, _ := shares(tl.Walk(10, 0, ms(until), nil)); without < 0.7*until || with > 0 {
		t.Errorf("got %v ms of storage with a GPU and %v without, want none and four fifths of %d", with, without, until)
	}
}

// The first sleeps are not settled until it is known whether the thread attends others.
func TestSettledSleeps(t *testing.T) {
	const pause = 900 // ms
	for until, want := range map[float64]float64{1500: 0.5, 2500: 0.5, 3500: 1501.5} {
		tl := launcher(until, pause, 0.5, nap, 10).timeline(until)
		if got := tl.Settled(10, 2*time.Second); got != ms(want) && !(until > 3000 && got >= ms(want)) {
			t.Errorf("after %v ms: got %v, want %v ms", until, got, want)
		}
	}
}

// A training that sleeps in place of an accelerator does not attend its workers: it asks for a batch in each step.
func TestGivingIsNoAttending(t *testing.T) {
	const until, helper = 6005, 30
	for name, test := range map[string]struct {
		pause, asleep float64 // of the loop, and of a helper before it is woken
		creator       int
		attends       bool
	}{
		"it asks a thread that it began":        {100, 99, 10, false},
		"and sleeps for long":                   {1500, 1499, 10, false},
		"it passes the global lock on":          {100, 5, 10, true},
		"it wakes one that another one began":   {100, 99, 5, true},
		"it asks a process that a worker began": {100, 99, 20, false},
	} {
		const look = 0.5
		s := launcher(until, test.pause, look, nap, 10)
		s.began(0, helper, test.creator)
		s.on(0.1, helper)
		for at := look; at < until; at += test.pause + look {
			s.out(max(0.2, at-0.1-test.asleep), helper, futex)
			s.in(at-0.1, at-0.1, helper, 10)
		}
		tl := s.timeline(until)
		_, _, storage, _, _ := shares(tl.Walk(10, ms(test.pause+2*look), ms(until), nil)) // without its first sleep
		memory := tl.TimesAt(10).Memory
		if test.attends && (storage < 0.7*until || memory > ms(0.5*until)) ||
			!test.attends && (storage > 0 || memory < ms(0.75*until)) {
			t.Errorf("%s: got %v ms of storage, and %v without it, of %v ms, want four fifths of storage: %v",
				name, storage, memory, until, test.attends)
		}
	}
}

// A training that waits at a pipe for a batch waits for the worker that makes it. The thread that gave it the last one,
// or that passes batches on, is idle meanwhile. The wait may be in pieces, after which it looks whether workers live.
func TestWaitingForWorkers(t *testing.T) {
	const (
		first, passes, second = 20, 21, 30
		until, piece          = 6000, 5000
	)
	poll := sample.ThreadEvent{State: sample.StateAsleep, Syscall: sysPoll, File: sample.Pipe}
	for name, test := range map[string]struct {
		gives  int // the thread that gave it a batch; 0 for none
		reader int // that reads meanwhile
		until  float64
	}{
		"the one that gave the last batch":      {first, first, 1000},
		"another one":                           {first, second, 1000},
		"one that passes batches on":            {passes, first, 1000},
		"no batch yet":                          {0, second, 1000},
		"no batch yet, from the older one":      {0, first, 1000},
		"another one, in pieces":                {first, second, until},
		"one that passes batches on, in pieces": {passes, first, until},
		"no batch yet, in pieces":               {0, second, until},
	} {
		s := &script{}
		s.began(0, 1, 0)
		s.on(0, 1)
		s.began(0, first, 1)
		s.began(0, second, 1)
		s.began(0, passes, first)
		for i := range s.events {
			e := &s.events[i]
			if e.Name = "python3"; e.TID == passes {
				e.PID = first
			}
		}
		for _, tid := range []int{first, passes, second} {
			s.on(0.1, tid)
			if tid != test.reader {
				s.out(20, tid, receive) // for nothing that the job has
			}
		}
		s.out(1, 1, poll)
		if test.gives != 0 {
			s.in(15, 15, 1, test.gives)
			s.out(25, 1, poll)
		}
		s.in(piece+25, piece+25, 1, 0)
		s.out(piece+30, 1, poll) // it looks for longer than in a nap
		for at := 20.0; at < until; at += 10 {
			s.out(at, test.reader, disk)
			s.in(at+9, at+9, test.reader, 0)
		}
		slices.SortStableFunc(s.events, func(a, b sample.ThreadEvent) int { return int(a.At - b.At) })
		tl := NewTimeline()
		for at := 100.0; at <= test.until; at += 100 { // readings
			n := slices.IndexFunc(s.events, func(e sample.ThreadEvent) bool { return e.At > ms(at) })
			if n < 0 {
				n = len(s.events)
			}
			tl.Learn(&sample.Schedule{Until: ms(at), Events: s.events[:n], Arch: "amd64"})
			s.events = s.events[n:]
		}
		_, _, storage, other, _ := shares(tl.Walk(1, ms(30), ms(test.until), nil))
		if storage < 0.85*(test.until-30) || other > 10 {
			t.Errorf("%s: got %v ms of storage and %v of other, want nine tenths of %v", name, storage, other, test.until)
		}
	}
}

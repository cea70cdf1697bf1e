package switches

import (
	"encoding/binary"
	"testing"
	"time"
)

// written is a record as the kernel writes it.
func written(kind uint32, misc uint16, body []byte, pid, tid uint32, at uint64) []byte {
	b := make([]byte, headerBytes, headerBytes+len(body)+idBytes)
	binary.NativeEndian.PutUint32(b, kind)
	binary.NativeEndian.PutUint16(b[4:], misc)
	b = append(b, body...)
	b = binary.NativeEndian.AppendUint32(b, pid)
	b = binary.NativeEndian.AppendUint32(b, tid)
	b = binary.NativeEndian.AppendUint64(b, at)
	binary.NativeEndian.PutUint16(b[6:], uint16(len(b)))
	return b
}

func numbers(of ...uint32) (b []byte) {
	for _, n := range of {
		b = binary.NativeEndian.AppendUint32(b, n)
	}
	return b
}

func TestDecode(t *testing.T) {
	task := append(numbers(7, 1, 8, 2), make([]byte, 8)...) // process, its parent, thread, its parent, time
	for name, test := range map[string]struct {
		in   []byte
		want record
		lost uint64
		ok   bool
	}{
		"in":        {written(typeSwitch, 0, nil, 7, 8, 5), record{at: 5, kind: switchedIn, pid: 7, tid: 8}, 0, true},
		"out":       {written(typeSwitch, miscSwitchOut, nil, 7, 8, 5), record{at: 5, kind: switchedOut, pid: 7, tid: 8}, 0, true},
		"preempted": {written(typeSwitch, miscSwitchOut|miscPreempted, nil, 7, 8, 5), record{at: 5, kind: switchedOut, pid: 7, tid: 8, preempted: true}, 0, true},
		"fork":      {written(typeFork, 0, task, 1, 2, 9), record{at: 9, kind: forked, pid: 7, tid: 8, parent: 2}, 0, true},
		"exit":      {written(typeExit, 0, task, 7, 8, 9), record{at: 9, kind: exited, pid: 7, tid: 8, parent: 2}, 0, true},
		"lost":      {written(typeLost, 0, append(make([]byte, 8), numbers(3, 0)...), 7, 8, 9), record{}, 3, false},
		"name": {
			written(typeName, 0, append(numbers(7, 8), "feeder\x00\x00"...), 7, 8, 9),
			record{at: 9, kind: named, pid: 7, tid: 8, name: "feeder"}, 0, true,
		},
		"short":   {written(typeFork, 0, task[:8], 7, 8, 9), record{}, 0, false},
		"other":   {written(1, 0, make([]byte, 16), 7, 8, 9), record{}, 0, false},
		"damaged": {[]byte{1, 2, 3}, record{}, 0, false},
	} {
		got, lost, ok := decode(test.in)
		if ok != test.ok || lost != test.lost || ok && got != test.want {
			t.Errorf("%s: got %+v, %d lost, %v; want %+v, %d lost, %v", name, got, lost, ok, test.want, test.lost, test.ok)
		}
	}
}

// TestGuess: a pause is assumed to be for what pauses of its length were for, and not for what was looked at most.
func TestGuess(t *testing.T) {
	disk, timer := cause{syscall: 1}, cause{syscall: 2}
	s := newState()
	var p past
	if got := p.guess(0, time.Second, s.random); got != unseen {
		t.Errorf("of no pause: got %+v, want %+v", got, unseen)
	}
	for i := range 40 { // the shorter ones are looked at less often
		p.add(0, 30*time.Millisecond, timer)
		if i%10 == 0 {
			p.add(0, 2*time.Millisecond, disk)
		}
	}
	for _, test := range []struct {
		length time.Duration
		want   cause
	}{{3 * time.Millisecond, disk}, {25 * time.Millisecond, timer}} {
		for range 100 {
			if got := p.guess(0, test.length, s.random); got != test.want {
				t.Errorf("of a pause of %v: got %+v, want %+v", test.length, got, test.want)
			}
		}
	}
}

// TestGuessOfMixedPauses: of pauses of one length, each cause gets its share.
func TestGuessOfMixedPauses(t *testing.T) {
	s := newState()
	var p past
	for i := range maxSeen {
		p.add(0, 5*time.Millisecond, cause{syscall: min(i%4, 1)})
	}
	const draws = 4000
	zero := 0
	for range draws {
		if p.guess(0, 5*time.Millisecond, s.random).syscall == 0 {
			zero++
		}
	}
	if share := float64(zero) / draws; share < 0.2 || share > 0.3 {
		t.Errorf("got %.2f of the pauses for a cause that was seen in one of four", share)
	}
}

// TestWaker: the waker is the thread of the job whose run ended next to the wake-up.
func TestWaker(t *testing.T) {
	const ms = time.Millisecond
	a, b := &job{}, &job{}
	of := func(tid int, job *job) *thread { return &thread{tid: tid, job: job, often: 20, busy: 0.1} }
	sleeper, worker, other, foreign := of(1, a), of(2, a), of(3, a), of(4, b)
	frequent := of(5, a)
	frequent.often = 2000
	lock := cause{syscall: 1000}
	all := runs{
		{other, 1 * ms, 2 * ms, false}, {foreign, 9 * ms, 10 * ms, false}, {frequent, 9 * ms, 10*ms + 10*time.Microsecond, false},
		{worker, 5 * ms, 10*ms + 20*time.Microsecond, false}, {sleeper, 10 * ms, 11 * ms, false}, {other, 4 * ms, 30 * ms, false}, {worker, 29 * ms, 31 * ms, false},
	}
	for name, test := range map[string]struct {
		to    time.Duration
		cause cause
		want  *thread
	}{
		"nearest end":      {10 * ms, lock, worker},
		"ran long before":  {40 * ms, lock, nil},
		"began afterwards": {28 * ms, lock, other},
		"of storage":       {10 * ms, cause{state: 2}, nil},
	} {
		p := &pause{thread: sleeper, from: 3 * ms, to: test.to, cause: test.cause}
		if name != "of storage" {
			p.cause.state = 1
		}
		if got := all.waker(p); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(written(typeSwitch, miscSwitchOut, nil, 7, 8, 5))
	f.Add(written(typeLost, 0, make([]byte, 16), 7, 8, 9))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, _, ok := decode(b); ok && r.kind == 0 {
			t.Errorf("got a record without a kind from %x", b)
		}
	})
}

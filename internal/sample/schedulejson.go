package sample

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// A Schedule is written as one JSON string: base64 of a version byte and of integers in the form of encoding/binary,
// most of them as differences. docs/internals/schedule.md has the format. It keeps the fields of each kind of event.

const (
	scheduleVersion = 3    // before, CPU times in place of fetching; 1 had neither names nor stolen time
	guessedFlag     = 0x80 // of the version byte: causes and wakers were guessed, in recordings of before

	maxScheduleText   = 8 << 20 // characters of the string
	maxScheduleEvents = 1 << 18
	maxScheduleWord   = 256 // bytes of a job's name or a peer
)

// The first byte of an event has its kind in the lower three bits, and above them what follows.
const (
	kindBits = 3

	// Of ThreadOut and ThreadSum.
	hasIOWait = 1 << (kindBits + iota - 1)
	hasFile   // file, detail and peer
	hasTimes  // fetching and stolen
	hasBytes  // fetched and chars
	hasWaker  // of ThreadSum

	hasName  = hasIOWait // of ThreadBegan
	hasWoken = hasFile   // of ThreadIn: when, by which thread
)

var errSchedule = errors.New("the scheduler's events are damaged")

// threadID is a thread with its process.
type threadID struct{ tid, pid int }

// MarshalJSON writes a compact form.
func (s Schedule) MarshalJSON() ([]byte, error) {
	w := scheduleWriter{threads: map[threadID]int{}, words: map[string]int{}, out: []byte{scheduleVersion}}
	w.signed(int64(s.Until))
	w.number(s.Lost)
	w.word(s.Arch)
	w.number(uint64(len(s.Events)))
	for i := range s.Events {
		if err := w.event(&s.Events[i]); err != nil {
			return nil, err
		}
	}
	return json.Marshal(base64.RawStdEncoding.EncodeToString(w.out))
}

// UnmarshalJSON reads the compact form. Its input may be a recording of another machine: damaged input is an error.
func (s *Schedule) UnmarshalJSON(text []byte) error {
	if len(text) > maxScheduleText {
		return fmt.Errorf("%w: %d characters, at most %d", errSchedule, len(text), maxScheduleText)
	}
	var encoded string
	if err := json.Unmarshal(text, &encoded); err != nil {
		return err
	}
	in, err := base64.RawStdEncoding.DecodeString(encoded)
	if err != nil {
		return fmt.Errorf("%w: %w", errSchedule, err)
	}
	if len(in) == 0 {
		return errSchedule
	}
	version, guessed := in[0]&^guessedFlag, in[0]&guessedFlag != 0
	if version == 0 || version > scheduleVersion {
		return fmt.Errorf("%w, or of a newer version", errSchedule)
	}
	r := scheduleReader{version: version, in: in[1:]}
	read := Schedule{Until: time.Duration(r.signed()), Lost: r.number(), Arch: r.word()}
	n := r.number()
	if n > maxScheduleEvents || n > uint64(len(r.in)) { // an event has several bytes
		return fmt.Errorf("%w: %d events", errSchedule, n)
	}
	if n > 0 {
		read.Events = make([]ThreadEvent, n)
	}
	for i := range read.Events {
		r.event(&read.Events[i])
	}
	if r.bad || len(r.in) > 0 {
		return errSchedule
	}
	if guessed { // they are no evidence
		read.Events = nil
	}
	*s = read
	return nil
}

type scheduleWriter struct {
	out     []byte
	at      time.Duration
	threads map[threadID]int // from 1, in the order of their first mention
	words   map[string]int
}

func (w *scheduleWriter) number(n uint64) { w.out = binary.AppendUvarint(w.out, n) }
func (w *scheduleWriter) signed(n int64)  { w.out = binary.AppendVarint(w.out, n) }

// thread writes a number for a thread, and at its first mention who it is.
func (w *scheduleWriter) thread(tid, pid int) {
	id := threadID{tid, pid}
	if n := w.threads[id]; n > 0 {
		w.number(uint64(n))
		return
	}
	w.threads[id] = len(w.threads) + 1
	w.number(0)
	w.signed(int64(tid))
	w.signed(int64(pid))
}

// word does the same for a text. One that is too long is cut, so that what is written can be read.
func (w *scheduleWriter) word(s string) {
	s = s[:min(len(s), maxScheduleWord)]
	if n := w.words[s]; n > 0 {
		w.number(uint64(n))
		return
	}
	w.words[s] = len(w.words) + 1
	w.number(0)
	w.number(uint64(len(s)))
	w.out = append(w.out, s...)
}

func (w *scheduleWriter) event(e *ThreadEvent) error {
	if e.Kind < ThreadBegan || e.Kind > ThreadFound {
		return fmt.Errorf("an event of the unknown kind %d", e.Kind)
	}
	follows := e.follows()
	w.out = append(w.out, byte(e.Kind)|follows)
	w.signed(int64(e.At - w.at))
	w.at = e.At
	w.thread(e.TID, e.PID)
	switch e.Kind {
	case ThreadBegan:
		w.word(e.Job)
		w.signed(int64(e.Creator))
		if follows&hasName != 0 {
			w.word(e.Name)
		}
	case ThreadNamed:
		w.word(e.Name)
	case ThreadIn:
		if follows&hasWoken != 0 {
			w.signed(int64(e.At - e.Woken))
			w.waker(e)
		}
	case ThreadOut, ThreadFound:
		w.pause(e, follows)
	case ThreadSum:
		w.pause(e, follows)
		for _, d := range []time.Duration{e.At - e.From, e.Running, e.Ready, e.Blocked, e.Asleep} {
			w.signed(int64(d))
		}
		if follows&hasWaker != 0 {
			w.waker(e)
		}
	}
	return nil
}

// follows returns the bits of what is not zero.
func (e *ThreadEvent) follows() byte {
	var bits byte
	set := func(bit byte, on bool) {
		if on {
			bits |= bit
		}
	}
	waker := e.Waker != 0 || e.WakerPID != 0 || e.WakerKind != NoWaker
	switch e.Kind {
	case ThreadBegan:
		set(hasName, e.Name != "")
	case ThreadIn:
		set(hasWoken, e.Woken != 0 || waker)
	case ThreadSum, ThreadOut, ThreadFound:
		set(hasIOWait, e.IOWait)
		set(hasFile, e.File != NoFile || e.Detail != 0 || e.Peer != "")
		set(hasTimes, e.Fetching != 0 || e.Stolen != 0)
		set(hasBytes, e.Fetched != 0 || e.Chars != 0)
		set(hasWaker, waker && e.Kind == ThreadSum)
	}
	return bits
}

func (w *scheduleWriter) waker(e *ThreadEvent) {
	w.out = append(w.out, byte(e.WakerKind))
	w.thread(e.Waker, e.WakerPID)
}

func (w *scheduleWriter) pause(e *ThreadEvent, follows byte) {
	w.out = append(w.out, byte(e.State))
	w.signed(int64(e.Syscall))
	if follows&hasFile != 0 {
		w.out = append(w.out, byte(e.File))
		w.number(e.Detail)
		w.word(e.Peer)
	}
	if follows&hasTimes != 0 {
		w.signed(int64(e.Fetching))
		w.signed(int64(e.Stolen))
	}
	if follows&hasBytes != 0 {
		w.number(e.Fetched)
		w.number(e.Chars)
	}
}

// scheduleReader gives zeros after the first fault, and notes it.
type scheduleReader struct {
	version byte
	in      []byte
	bad     bool
	at      time.Duration
	threads []threadID
	words   []string
}

func (r *scheduleReader) fail() {
	r.bad, r.in = true, nil
}

func (r *scheduleReader) byte() byte {
	if len(r.in) == 0 {
		r.fail()
		return 0
	}
	b := r.in[0]
	r.in = r.in[1:]
	return b
}

func (r *scheduleReader) number() uint64 {
	n, size := binary.Uvarint(r.in)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.in = r.in[size:]
	return n
}

func (r *scheduleReader) signed() int64 {
	n, size := binary.Varint(r.in)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.in = r.in[size:]
	return n
}

// id reads the number of a thread or process.
func (r *scheduleReader) id() int {
	n := r.signed()
	if n < 0 || n > math.MaxInt32 {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *scheduleReader) thread() (tid, pid int) {
	n := r.number()
	if n == 0 && !r.bad {
		r.threads = append(r.threads, threadID{r.id(), r.id()})
		n = uint64(len(r.threads))
	}
	if n > uint64(len(r.threads)) || n == 0 {
		r.fail()
		return 0, 0
	}
	return r.threads[n-1].tid, r.threads[n-1].pid
}

func (r *scheduleReader) word() string {
	n := r.number()
	if n == 0 && !r.bad {
		size := r.number()
		if size > maxScheduleWord || size > uint64(len(r.in)) {
			r.fail()
			return ""
		}
		r.words = append(r.words, string(r.in[:size]))
		r.in = r.in[size:]
		n = uint64(len(r.words))
	}
	if n > uint64(len(r.words)) || n == 0 {
		r.fail()
		return ""
	}
	return r.words[n-1]
}

func (r *scheduleReader) event(e *ThreadEvent) {
	first := r.byte()
	e.Kind = ThreadEventKind(first & (1<<kindBits - 1))
	r.at += time.Duration(r.signed())
	e.At = r.at
	e.TID, e.PID = r.thread()
	switch e.Kind {
	case ThreadBegan:
		e.Job = r.word()
		e.Creator = r.id()
		if first&hasName != 0 {
			e.Name = r.word()
		}
	case ThreadNamed:
		e.Name = r.word()
	case ThreadIn:
		if first&hasWoken != 0 {
			e.Woken = e.At - time.Duration(r.signed())
			r.waker(e)
		}
	case ThreadOut, ThreadFound:
		r.pause(e, first)
	case ThreadSum:
		r.pause(e, first)
		e.From = e.At - time.Duration(r.signed())
		for _, d := range []*time.Duration{&e.Running, &e.Ready, &e.Blocked, &e.Asleep} {
			*d = time.Duration(r.signed())
		}
		if first&hasWaker != 0 {
			r.waker(e)
		}
	default:
		r.fail()
	}
}

func (r *scheduleReader) waker(e *ThreadEvent) {
	if e.WakerKind = WakerKind(r.byte()); e.WakerKind > SoftIRQ {
		r.fail()
	}
	e.Waker, e.WakerPID = r.thread()
}

func (r *scheduleReader) pause(e *ThreadEvent, follows byte) {
	e.IOWait = follows&hasIOWait != 0
	if e.State = ThreadState(r.byte()); e.State > StateStopped {
		r.fail()
	}
	e.Syscall = r.call()
	if follows&hasFile != 0 {
		if e.File = FileKind(r.byte()); e.File > OtherFile {
			r.fail()
		}
		e.Detail = r.number()
		e.Peer = r.word()
	}
	if follows&hasTimes != 0 {
		r.times(e)
	}
	if follows&hasBytes != 0 {
		e.Fetched = r.number()
		e.Chars = r.number()
	}
}

// times reads what a thread was on a CPU for.
func (r *scheduleReader) times(e *ThreadEvent) {
	if r.version < 3 { // user and system time
		r.signed()
		r.signed()
	} else {
		e.Fetching = time.Duration(r.signed())
	}
	if r.version > 1 {
		e.Stolen = time.Duration(r.signed())
	}
}

// call reads the number of a system call.
func (r *scheduleReader) call() int {
	n := r.signed()
	if n < NoSyscall || n > math.MaxInt32 {
		r.fail()
		return 0
	}
	return int(n)
}

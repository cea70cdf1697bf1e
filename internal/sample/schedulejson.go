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
// most of them as differences. It keeps the fields of each kind of event. A thread or word is the number of its first
// mention in the string, from 1; 0 stands for a new one, which follows in full.

const (
	scheduleVersion = 3

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
	w := scheduleCodec{text: []byte{scheduleVersion}}
	events := uint64(len(s.Events))
	w.header(&s, &events)
	for _, e := range s.Events {
		if e.Kind < ThreadBegan || e.Kind > ThreadFound {
			return nil, fmt.Errorf("an event of the unknown kind %d", e.Kind)
		}
		w.event(&e)
	}
	return json.Marshal(base64.RawStdEncoding.EncodeToString(w.text))
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
	if len(in) == 0 || in[0] != scheduleVersion {
		return fmt.Errorf("%w, or of another version", errSchedule)
	}
	r := scheduleCodec{reads: true, text: in[1:]}
	var read Schedule
	var events uint64
	r.header(&read, &events)
	if events > maxScheduleEvents || events > uint64(len(r.text)) { // an event has several bytes
		return fmt.Errorf("%w: %d events", errSchedule, events)
	}
	if events > 0 {
		read.Events = make([]ThreadEvent, events)
	}
	for i := range read.Events {
		r.event(&read.Events[i])
	}
	if r.bad || len(r.text) > 0 {
		return errSchedule
	}
	*s = read
	return nil
}

// scheduleCodec writes what its methods are given, or reads it into that. After the first fault it reads zeros.
type scheduleCodec struct {
	reads   bool
	text    []byte // written, or not read yet
	bad     bool
	at      time.Duration // of the event before
	threads mentions[threadID]
	words   mentions[string]
}

// mentions are values that have a number from their first mention on: 1, 2, 3.
type mentions[T comparable] struct {
	numbers map[T]uint64 // of a writer
	list    []T          // of a reader
}

// mention writes or reads the number of a value; 0 for one that is new, and follows in full.
func mention[T comparable](c *scheduleCodec, known *mentions[T], value *T, inFull func(*T)) {
	n := known.numbers[*value]
	c.number(&n)
	switch {
	case n == 0 && !c.bad:
		inFull(value)
		if c.reads {
			known.list = append(known.list, *value)
			return
		}
		if known.numbers == nil {
			known.numbers = map[T]uint64{}
		}
		known.numbers[*value] = uint64(len(known.numbers) + 1)
	case !c.reads:
	case n == 0 || n > uint64(len(known.list)):
		c.fail()
	default:
		*value = known.list[n-1]
	}
}

func (c *scheduleCodec) fail() { c.bad, c.text = true, nil }

func (c *scheduleCodec) number(n *uint64) {
	if !c.reads {
		c.text = binary.AppendUvarint(c.text, *n)
		return
	}
	value, size := binary.Uvarint(c.text)
	if size <= 0 {
		c.fail()
		value, size = 0, 0
	}
	*n, c.text = value, c.text[size:]
}

func (c *scheduleCodec) signed(n *int64) {
	if !c.reads {
		c.text = binary.AppendVarint(c.text, *n)
		return
	}
	value, size := binary.Varint(c.text)
	if size <= 0 {
		c.fail()
		value, size = 0, 0
	}
	*n, c.text = value, c.text[size:]
}

func (c *scheduleCodec) duration(d *time.Duration) { c.signed((*int64)(d)) }

// since writes or reads a time as the difference to one before it, and before to one after it.
func (c *scheduleCodec) since(at *time.Duration, earlier time.Duration) {
	d := *at - earlier
	c.duration(&d)
	*at = earlier + d
}

func (c *scheduleCodec) before(at *time.Duration, later time.Duration) {
	d := later - *at
	c.duration(&d)
	*at = later - d
}

// integer is a number that is read only up to 31 bits, and from a least one on.
func (c *scheduleCodec) integer(n *int, least int64) {
	wide := int64(*n)
	if c.signed(&wide); c.reads && (wide < least || wide > math.MaxInt32) {
		c.fail()
		wide = 0
	}
	*n = int(wide)
}

// small is one byte, up to the highest that is read.
func small[T ~uint8](c *scheduleCodec, b *T, highest T) {
	switch {
	case !c.reads:
		c.text = append(c.text, byte(*b))
	case len(c.text) == 0:
		c.fail()
		*b = 0
	default:
		*b, c.text = T(c.text[0]), c.text[1:]
		if *b > highest {
			c.fail()
		}
	}
}

// thread is a number for a thread, and at its first mention who it is.
func (c *scheduleCodec) thread(tid, pid *int) {
	id := threadID{*tid, *pid}
	mention(c, &c.threads, &id, func(id *threadID) {
		c.integer(&id.tid, 0)
		c.integer(&id.pid, 0)
	})
	*tid, *pid = id.tid, id.pid
}

// word is the same for a text. One that is too long is cut, so that what is written can be read.
func (c *scheduleCodec) word(text *string) {
	*text = (*text)[:min(len(*text), maxScheduleWord)]
	mention(c, &c.words, text, func(text *string) {
		size := uint64(len(*text))
		c.number(&size)
		switch {
		case !c.reads:
			c.text = append(c.text, *text...)
		case size > maxScheduleWord || size > uint64(len(c.text)):
			c.fail()
		default:
			*text, c.text = string(c.text[:size]), c.text[size:]
		}
	})
}

// header has how many events follow.
func (c *scheduleCodec) header(s *Schedule, events *uint64) {
	c.duration(&s.Until)
	c.number(&s.Lost)
	c.word(&s.Arch)
	c.number(events)
}

func (c *scheduleCodec) event(e *ThreadEvent) {
	first := byte(e.Kind) | e.follows()
	small(c, &first, math.MaxUint8)
	e.Kind = ThreadEventKind(first & (1<<kindBits - 1))
	c.since(&e.At, c.at)
	c.at = e.At
	c.thread(&e.TID, &e.PID)
	switch e.Kind {
	case ThreadBegan:
		c.word(&e.Job)
		c.integer(&e.Creator, 0)
		if first&hasName != 0 {
			c.word(&e.Name)
		}
	case ThreadNamed:
		c.word(&e.Name)
	case ThreadIn:
		if first&hasWoken != 0 {
			c.before(&e.Woken, e.At)
			c.waker(e)
		}
	case ThreadOut, ThreadFound:
		c.pause(e, first)
	case ThreadSum:
		c.pause(e, first)
		c.before(&e.From, e.At)
		for _, d := range []*time.Duration{&e.Running, &e.Ready, &e.Blocked, &e.Asleep} {
			c.duration(d)
		}
		if first&hasWaker != 0 {
			c.waker(e)
		}
	default:
		c.fail()
	}
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

func (c *scheduleCodec) waker(e *ThreadEvent) {
	small(c, &e.WakerKind, SoftIRQ)
	c.thread(&e.Waker, &e.WakerPID)
}

func (c *scheduleCodec) pause(e *ThreadEvent, follows byte) {
	e.IOWait = follows&hasIOWait != 0
	small(c, &e.State, StateStopped)
	c.integer(&e.Syscall, NoSyscall)
	if follows&hasFile != 0 {
		small(c, &e.File, OtherFile)
		c.number(&e.Detail)
		c.word(&e.Peer)
	}
	if follows&hasTimes != 0 {
		c.duration(&e.Fetching)
		c.duration(&e.Stolen)
	}
	if follows&hasBytes != 0 {
		c.number(&e.Fetched)
		c.number(&e.Chars)
	}
}

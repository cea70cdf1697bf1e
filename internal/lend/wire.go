package lend

import (
	"encoding/binary"
	"errors"
	"io"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Version is the version of the frames. Both sides must have the same.
const Version = 4

// Bounds of a frame.
const (
	maxFrame    = 1 << 20 // bytes; events without room are lost, and counted
	maxText     = 256     // bytes of a text
	lengthBytes = 4
	maxHeader   = 3 * binary.MaxVarintLen64
	maxEvents   = 1 << 15
	maxTail     = 1 << 18 // bytes after the events
)

// errFrame is the error of a frame that breaks the format.
var errFrame = errors.New("a frame of the scheduler's events is damaged: run the agent's version of stallspan")

// encoder turns readings into frames. A frame is its length, as four bytes, and varints: Until, Lost, the number of
// events, and the events. Each has its kind, the time since the event before it, the thread, the process, a set of the
// fields that are not zero, and these. What follows them is the tail, of connections. Until is on CLOCK_MONOTONIC, and
// Woken and From are relative to At.
type encoder struct {
	origin time.Duration // CLOCK_MONOTONIC of Stamp.Mono 0
	tail   []byte        // of the next frame, at most maxTail
	events []byte
	frame  []byte
}

// encode returns the frame of a reading. It is valid until the next call.
func (e *encoder) encode(s *sample.Schedule) []byte {
	e.events = e.events[:0]
	previous, n := s.Until, 0
	for i := range s.Events[:min(len(s.Events), maxEvents)] {
		before := len(e.events)
		e.events = appendEvent(e.events, &s.Events[i], previous)
		if len(e.events) > maxFrame-maxHeader-maxTail {
			e.events = e.events[:before]
			break
		}
		previous = s.Events[i].At
		n++
	}
	e.frame = append(e.frame[:0], make([]byte, lengthBytes)...)
	b := e.frame
	b = binary.AppendVarint(b, int64(s.Until+e.origin))
	b = binary.AppendUvarint(b, s.Lost+uint64(len(s.Events)-n))
	b = binary.AppendUvarint(b, uint64(n))
	b = append(b, e.events...)
	b = append(b, e.tail[:min(len(e.tail), maxTail)]...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-lengthBytes))
	e.frame = b
	return b
}

func appendEvent(b []byte, e *sample.ThreadEvent, previous time.Duration) []byte {
	b = append(b, byte(e.Kind))
	b = binary.AppendVarint(b, int64(e.At-previous))
	b = binary.AppendUvarint(b, uint64(e.TID))
	b = binary.AppendUvarint(b, uint64(e.PID))
	var values [len(fields)]uint64
	set := uint64(0)
	for i := range fields {
		if v := fields[i].get(e); v != 0 {
			values[i] = v
			set |= 1 << i
		}
	}
	for i, text := range texts {
		if *text(e) != "" {
			set |= 1 << (len(fields) + i)
		}
	}
	b = binary.AppendUvarint(b, set)
	for i := range values {
		if set&(1<<i) != 0 {
			b = binary.AppendUvarint(b, values[i])
		}
	}
	for _, text := range texts {
		if *text(e) != "" {
			b = appendText(b, *text(e))
		}
	}
	return b
}

func appendText(b []byte, text string) []byte {
	text = text[:min(len(text), maxText)]
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// field is a number of a ThreadEvent that is usually zero.
type field struct {
	get func(*sample.ThreadEvent) uint64
	set func(*sample.ThreadEvent, uint64)
}

// fields are all of them. Another order or another field is another Version.
var fields = [...]field{
	{func(e *sample.ThreadEvent) uint64 { return uint64(e.Creator) },
		func(e *sample.ThreadEvent, v uint64) { e.Creator = int(v) }},
	{func(e *sample.ThreadEvent) uint64 { return uint64(e.State) },
		func(e *sample.ThreadEvent, v uint64) { e.State = sample.ThreadState(v) }},
	{func(e *sample.ThreadEvent) uint64 { return number(e.IOWait) },
		func(e *sample.ThreadEvent, v uint64) { e.IOWait = v != 0 }},
	{func(e *sample.ThreadEvent) uint64 { return zigzag(int64(e.Syscall)) },
		func(e *sample.ThreadEvent, v uint64) { e.Syscall = int(unzigzag(v)) }},
	{func(e *sample.ThreadEvent) uint64 { return uint64(e.File) },
		func(e *sample.ThreadEvent, v uint64) { e.File = sample.FileKind(v) }},
	{func(e *sample.ThreadEvent) uint64 { return e.Detail },
		func(e *sample.ThreadEvent, v uint64) { e.Detail = v }},
	duration(func(e *sample.ThreadEvent) *time.Duration { return &e.Fetching }),
	duration(func(e *sample.ThreadEvent) *time.Duration { return &e.Stolen }),
	{func(e *sample.ThreadEvent) uint64 { return e.Fetched },
		func(e *sample.ThreadEvent, v uint64) { e.Fetched = v }},
	{func(e *sample.ThreadEvent) uint64 { return e.Chars },
		func(e *sample.ThreadEvent, v uint64) { e.Chars = v }},
	moment(func(e *sample.ThreadEvent) *time.Duration { return &e.Woken }),
	{func(e *sample.ThreadEvent) uint64 { return uint64(e.Waker) },
		func(e *sample.ThreadEvent, v uint64) { e.Waker = int(v) }},
	{func(e *sample.ThreadEvent) uint64 { return uint64(e.WakerPID) },
		func(e *sample.ThreadEvent, v uint64) { e.WakerPID = int(v) }},
	{func(e *sample.ThreadEvent) uint64 { return uint64(e.WakerKind) },
		func(e *sample.ThreadEvent, v uint64) { e.WakerKind = sample.WakerKind(v) }},
	moment(func(e *sample.ThreadEvent) *time.Duration { return &e.From }),
	duration(func(e *sample.ThreadEvent) *time.Duration { return &e.Running }),
	duration(func(e *sample.ThreadEvent) *time.Duration { return &e.Ready }),
	duration(func(e *sample.ThreadEvent) *time.Duration { return &e.Blocked }),
	duration(func(e *sample.ThreadEvent) *time.Duration { return &e.Asleep }),
}

// texts are those of a ThreadEvent.
var texts = [...]func(*sample.ThreadEvent) *string{
	func(e *sample.ThreadEvent) *string { return &e.Job },
	func(e *sample.ThreadEvent) *string { return &e.Peer },
	func(e *sample.ThreadEvent) *string { return &e.Name },
}

func duration(of func(*sample.ThreadEvent) *time.Duration) field {
	return field{
		func(e *sample.ThreadEvent) uint64 { return uint64(*of(e)) },
		func(e *sample.ThreadEvent, v uint64) { *of(e) = time.Duration(v) },
	}
}

// moment is a time that is encoded relative to At, plus one, as 0 means none.
func moment(of func(*sample.ThreadEvent) *time.Duration) field {
	return field{
		func(e *sample.ThreadEvent) uint64 {
			if *of(e) == 0 {
				return 0
			}
			return zigzag(int64(e.At-*of(e))) + 1
		},
		func(e *sample.ThreadEvent, v uint64) { *of(e) = e.At - time.Duration(unzigzag(v-1)) },
	}
}

func number(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func zigzag(v int64) uint64   { return uint64(v)<<1 ^ uint64(v>>63) }
func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// readFrame reads a frame. buf is memory for it, which is returned with the frame in it.
func readFrame(r io.Reader, buf []byte) ([]byte, error) {
	var length [lengthBytes]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return buf, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxFrame {
		return buf, errFrame
	}
	if int(n) > cap(buf) {
		buf = make([]byte, n)
	}
	_, err := io.ReadFull(r, buf[:n])
	return buf[:n], err
}

// decode returns the reading in a frame, with times relative to origin, and the tail.
func decode(frame []byte, origin time.Duration) (s *sample.Schedule, tail []byte, err error) {
	d := decoder{rest: frame}
	s = &sample.Schedule{Until: time.Duration(d.signed()) - origin, Lost: d.unsigned()}
	n := d.unsigned()
	if d.bad || n > maxEvents {
		return nil, nil, errFrame
	}
	s.Events = make([]sample.ThreadEvent, n)
	previous := s.Until
	for i := range s.Events {
		d.event(&s.Events[i], previous)
		previous = s.Events[i].At
	}
	if d.bad {
		return nil, nil, errFrame
	}
	return s, d.rest, nil
}

// decoder reads a frame. After an error it returns zeros.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) event(e *sample.ThreadEvent, previous time.Duration) {
	if len(d.rest) == 0 {
		d.bad = true
		return
	}
	e.Kind = sample.ThreadEventKind(d.rest[0])
	d.rest = d.rest[1:]
	e.At = previous + time.Duration(d.signed())
	e.TID, e.PID = int(d.unsigned()), int(d.unsigned())
	set := d.unsigned()
	for i := range fields {
		if set&(1<<i) == 0 {
			continue
		}
		v := d.unsigned()
		d.bad = d.bad || v == 0
		if !d.bad {
			fields[i].set(e, v)
		}
	}
	for i, text := range texts {
		if set&(1<<(len(fields)+i)) != 0 {
			*text(e) = d.text()
		}
	}
	d.bad = d.bad || set >= 1<<(len(fields)+len(texts))
}

func (d *decoder) unsigned() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) signed() int64 { return unzigzag(d.unsigned()) }

func (d *decoder) text() string {
	n := d.unsigned()
	if n > maxText || n > uint64(len(d.rest)) {
		d.bad, d.rest = true, nil
		return ""
	}
	text := string(d.rest[:n])
	d.rest = d.rest[n:]
	return text
}

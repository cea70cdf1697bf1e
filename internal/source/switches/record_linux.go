package switches

import (
	"bytes"
	"encoding/binary"
	"time"
)

// record is what the kernel reports of one thread.
type record struct {
	at        time.Duration // CLOCK_MONOTONIC
	kind      recordKind
	tid, pid  int
	parent    int    // of forked: the thread that created it
	name      string // of named
	preempted bool
}

type recordKind uint8

const (
	switchedIn recordKind = iota + 1
	switchedOut
	forked
	exited
	named
)

// Of include/uapi/linux/perf_event.h.
const (
	typeLost   = 2
	typeName   = 3
	typeExit   = 4
	typeFork   = 7
	typeSwitch = 14

	miscSwitchOut = 1 << 13
	miscPreempted = 1 << 14

	headerBytes = 8
	idBytes     = 16 // of PERF_SAMPLE_TID and PERF_SAMPLE_TIME, at the end of each record
	taskBytes   = 24 // of a fork or an exit, before that
	nameBytes   = 8  // of a name, before it
)

// decode decodes a record with its header. lost is the number of records that the kernel reports to have dropped. A
// record of another kind is neither.
func decode(b []byte) (r record, lost uint64, ok bool) {
	if len(b) < headerBytes+idBytes {
		return r, 0, false
	}
	misc, body, id := binary.NativeEndian.Uint16(b[4:]), b[headerBytes:len(b)-idBytes], b[len(b)-idBytes:]
	r.pid, r.tid = number(id), number(id[4:])
	r.at = time.Duration(binary.NativeEndian.Uint64(id[8:]))
	switch binary.NativeEndian.Uint32(b) {
	case typeLost: // the event, and how many
		if len(body) < 16 {
			return r, 0, false
		}
		return r, binary.NativeEndian.Uint64(body[8:]), false
	case typeSwitch:
		r.kind = switchedIn
		if misc&miscSwitchOut != 0 {
			r.kind, r.preempted = switchedOut, misc&miscPreempted != 0
		}
		return r, 0, true
	case typeName: // process, thread, its name
		if len(body) < nameBytes {
			return r, 0, false
		}
		name, _, _ := bytes.Cut(body[nameBytes:], []byte{0})
		r.kind, r.pid, r.tid, r.name = named, number(body), number(body[4:]), string(name)
		return r, 0, true
	case typeFork, typeExit: // process and its parent, thread and its parent
		if len(body) < taskBytes {
			return r, 0, false
		}
		r.kind = forked
		if binary.NativeEndian.Uint32(b) == typeExit {
			r.kind = exited
		}
		r.pid, r.tid, r.parent = number(body), number(body[8:]), number(body[12:])
		return r, 0, true
	}
	return r, 0, false
}

func number(b []byte) int { return int(int32(binary.NativeEndian.Uint32(b))) }

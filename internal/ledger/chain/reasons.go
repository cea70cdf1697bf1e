package chain

import (
	"strconv"

	"github.com/stallspan/stallspan/internal/sample"
)

// Reason is what a thread slept for that is neither storage nor another followed thread.
type Reason struct {
	Kind ReasonKind
	Name string
}

// ReasonKind is a kind of reason. The order is that of history.OtherGPU and the series after it.
type ReasonKind uint8

// The kinds of reasons.
const (
	ForGPU ReasonKind = iota
	ForNetwork
	ForPipe
	ForLock
	ForTimer
	ForChild
	ForSteal
	ForEvent
	ReasonKinds int = iota
)

type reasonID uint16

// reasons numbers reasons. The zero value is ready.
type reasons struct {
	ids map[Reason]reasonID
	all []Reason
}

// of returns the number of a reason, from 1. If there is no room for its name, it is the number of its kind.
func (r *reasons) of(why Reason) reasonID {
	if id, ok := r.ids[why]; ok {
		return id
	}
	if r.ids == nil {
		r.ids = map[Reason]reasonID{}
	}
	if len(r.all) >= maxReasons && why.Name != "" {
		return r.of(Reason{Kind: why.Kind})
	}
	r.all = append(r.all, why)
	id := reasonID(len(r.all))
	r.ids[why] = id
	return id
}

func (r *reasons) get(id reasonID) Reason {
	if id == 0 || int(id) > len(r.all) {
		return Reason{Kind: ForEvent}
	}
	return r.all[id-1]
}

// nvidiaMajor is the major number of NVIDIA's devices (Documentation/admin-guide/devices.txt). nvidia-uvm and others
// have one that is assigned dynamically.
const nvidiaMajor = 195

// reasonOf names what a thread sleeps for, if no followed thread wakes it.
func reasonOf(p *pause, e *sample.ThreadEvent) Reason {
	switch p.call {
	case lockCall:
		return Reason{ForLock, "futex"}
	case flockCall:
		return Reason{ForLock, "lock of a file"}
	case sleepCall:
		return Reason{ForTimer, "timer"}
	case childCall:
		return Reason{ForChild, "child process"}
	case connectCall:
		return Reason{ForNetwork, "connecting" + to(e.Peer)}
	case acceptCall:
		return Reason{ForNetwork, "waiting for a connection"}
	case sendCall:
		return Reason{ForNetwork, "sending" + to(e.Peer)}
	case receiveCall:
		return Reason{ForNetwork, "receiving" + from(e.Peer)}
	case pollCall:
		return Reason{ForEvent, "poll of several files"}
	}
	switch e.File {
	case sample.Socket:
		return Reason{ForNetwork, "receiving" + from(e.Peer)}
	case sample.Pipe:
		return Reason{ForPipe, "pipe"}
	case sample.CharDevice:
		if e.Detail>>8 == nvidiaMajor || p.call == ioctlCall {
			return Reason{ForGPU, "GPU driver"}
		}
		return Reason{ForEvent, "character device"}
	}
	switch {
	case p.call == noCall:
		return Reason{ForEvent, "page fault"}
	case e.State == sample.StateStopped:
		return Reason{ForEvent, "stopped by a signal"}
	case e.File == sample.OtherFile:
		return Reason{ForEvent, "event"}
	}
	return Reason{ForEvent, "system call " + strconv.Itoa(e.Syscall)}
}

func from(peer string) string {
	if peer == "" {
		return " from a socket"
	}
	return " from " + peer
}

func to(peer string) string {
	if peer == "" {
		return " to a socket"
	}
	return " to " + peer
}

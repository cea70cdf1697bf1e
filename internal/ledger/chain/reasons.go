package chain

import (
	"strconv"
	"strings"

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

const readingPipe = "reading a pipe"

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
		return Reason{ForTimer, "sleep in the program"}
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
		if e.File == sample.NoFile || e.File == sample.OtherFile {
			return Reason{ForEvent, "poll of several files"}
		}
	}
	switch e.File {
	case sample.Socket:
		if p.call == writeCall {
			return Reason{ForNetwork, "sending" + to(e.Peer)}
		}
		return Reason{ForNetwork, "receiving" + from(e.Peer)}
	case sample.Pipe:
		if p.call == writeCall {
			return Reason{ForPipe, "writing to a pipe"}
		}
		return Reason{ForPipe, readingPipe}
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

func from(peer string) string { return " from " + socket(peer) }
func to(peer string) string   { return " to " + socket(peer) }

func socket(peer string) string {
	switch {
	case peer == "":
		return "a socket"
	case strings.ContainsAny(peer, ".:"): // an address
		return clean(peer)
	}
	return "a " + clean(peer) + " socket"
}

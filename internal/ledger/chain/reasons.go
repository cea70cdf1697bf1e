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
	From string // of a wait for data over TCP: the peer's address, "10.0.0.7:443"; else ""
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
	ForStop
	ForEvent
	ReasonKinds int = iota
)

const (
	readingPipe  = "reading a pipe"
	severalFiles = "poll of several files"
)

// nvidiaMajor is the major number of NVIDIA's devices (Documentation/admin-guide/devices.txt). nvidia-uvm and others
// have one that is assigned dynamically.
const nvidiaMajor = 195

// reasonOf names what a thread sleeps for, if no followed thread wakes it.
func reasonOf(p *pause, e *sample.ThreadEvent) Reason {
	if e.State == sample.StateStopped {
		return Reason{Kind: ForStop, Name: "stopped by a signal or the freezer"}
	}
	switch p.call {
	case sample.LockCall:
		return Reason{Kind: ForLock, Name: "futex"}
	case sample.FlockCall:
		return Reason{Kind: ForLock, Name: "lock of a file"}
	case sample.SleepCall:
		return Reason{Kind: ForTimer, Name: "sleep in the program"}
	case sample.ChildCall:
		return Reason{Kind: ForChild, Name: "child process"}
	case sample.ConnectCall:
		return Reason{Kind: ForNetwork, Name: "connecting" + to(e.Peer)}
	case sample.AcceptCall:
		return Reason{Kind: ForNetwork, Name: "waiting for a connection"}
	case sample.SendCall:
		return Reason{Kind: ForNetwork, Name: "sending" + to(e.Peer)}
	case sample.ReceiveCall:
		return receiving(e.Peer)
	case sample.PollCall, sample.SelectCall, sample.EpollCall:
		if e.File == sample.NoFile || e.File == sample.OtherFile {
			return Reason{Kind: ForEvent, Name: severalFiles}
		}
	}
	switch e.File {
	case sample.Socket:
		if p.call == sample.WriteCall {
			return Reason{Kind: ForNetwork, Name: "sending" + to(e.Peer)}
		}
		return receiving(e.Peer)
	case sample.Pipe:
		if p.call == sample.WriteCall {
			return Reason{Kind: ForPipe, Name: "writing to a pipe"}
		}
		return Reason{Kind: ForPipe, Name: readingPipe}
	case sample.CharDevice:
		if e.Detail>>8 == nvidiaMajor || p.call == sample.IoctlCall {
			return Reason{Kind: ForGPU, Name: "GPU driver"}
		}
		return Reason{Kind: ForEvent, Name: "character device"}
	}
	switch {
	case p.call == sample.NoCall:
		return Reason{Kind: ForEvent, Name: "page fault"}
	case e.File == sample.OtherFile:
		return Reason{Kind: ForEvent, Name: "event"}
	}
	return Reason{Kind: ForEvent, Name: "system call " + strconv.Itoa(e.Syscall)}
}

// receiving is the reason of a wait for what a peer sends.
func receiving(peer string) Reason {
	why := Reason{Kind: ForNetwork, Name: "receiving from " + socket(peer)}
	if address, ok := strings.CutSuffix(why.Name[len("receiving from "):], " over TCP"); ok {
		why.From = address
	}
	return why
}

func to(peer string) string { return " to " + socket(peer) }

func socket(peer string) string {
	switch {
	case peer == "":
		return "a socket"
	case strings.ContainsAny(peer, ".:"): // an address
		return clean(peer)
	}
	return "a " + clean(peer) + " socket"
}

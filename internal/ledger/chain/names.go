package chain

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode"

	"github.com/stallspan/stallspan/internal/sample"
)

// maxOthers bounds the names of threads that are not followed.
const maxOthers = 1024

// maxName is the longest text of another program that a reason has, in bytes.
const maxName = 64

// clean makes a text that another program chose fit for a line of a report: it has neither control characters nor
// other invisible ones.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, text)
	return strings.ToValidUTF8(text[:min(len(text), maxName)], "")
}

// name notes how a thread is called.
func (t *Timeline) name(e *sample.ThreadEvent) {
	name := clean(e.Name)
	if th := t.threads[e.TID]; th != nil && th.died == 0 {
		th.name = name
		return
	}
	if t.others == nil || len(t.others) >= maxOthers {
		t.others = map[int]string{}
	}
	t.others[e.TID] = name
}

// wokenBy adds to a reason who ended the pause: a thread that is not followed.
func (t *Timeline) wokenBy(id reasonID, e *sample.ThreadEvent) reasonID {
	why := t.reasons.get(id)
	name := t.others[e.Waker]
	if name == "" || e.WakerPID == e.PID {
		return id
	}
	who := "PID " + strconv.Itoa(e.WakerPID) + " " + name
	switch {
	case why.Kind == ForLock:
		why.Name += ", held by " + who
	case why.Kind == ForPipe && why.Name == readingPipe:
		why.Name += " from " + who
	case why.Kind == ForPipe:
		why.Name += " to " + who
	case why.Kind == ForNetwork && (strings.HasSuffix(why.Name, "socket") || local(why.From)):
		why.Name += " of " + who
	case why.Kind == ForChild:
		why.Name += " " + who
	case why.Kind == ForEvent:
		why.Name += ", woken by " + who
	default:
		return id
	}
	return t.reason(why)
}

// local reports whether the other end of a connection is a process of this machine.
func local(address string) bool {
	peer, err := netip.ParseAddrPort(address)
	return err == nil && peer.Addr().IsLoopback()
}

// ReasonKind returns the kind of a piece's reason.
func (t *Timeline) ReasonKind(p *Piece) ReasonKind { return t.reasons.get(p.reason).Kind }

// Reason returns why a piece of kind Other was, in a walk of that thread.
func (t *Timeline) Reason(tid int, p *Piece) Reason {
	why := t.reasons.get(p.reason)
	leader := t.threads[tid]
	if leader == nil || p.of == nil || p.of == leader || why.Kind == ForSteal {
		return why
	}
	what, name := "thread", p.of.name
	if p.of.pid != leader.pid {
		what = "process"
		if first := t.threads[p.of.pid]; first != nil {
			name = first.name
		}
	}
	if name == "" || name == leader.name {
		why.Name += ", in another " + what
	} else {
		why.Name += ", in " + what + " " + name
	}
	return why
}

package explain

import (
	"fmt"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// silence says what brought nothing for a long time, since when, and how much came before; "" without one.
func silence(r *window.Report) string {
	s := r.Silence
	if s == nil {
		return ""
	}
	text := "Nothing came from " + silent(r)
	if s.Goes {
		text = "Nothing has come from " + silent(r)
	}
	text += " for " + Duration(s.Length().Seconds()) + ", since " + r.Wall(s.Since).Format(time.TimeOnly)
	if s.Came > 0 {
		text += "; " + Size(s.Came) + " came before"
	}
	if s.Peer != nil {
		text += "; " + count(uint64(s.Peer.Connections), "connection") + " still open"
	}
	return text + ". "
}

// silent names what was silent.
func silent(r *window.Report) string {
	s := r.Silence
	switch {
	case s.Peer != nil:
		if s.Peer.Process != "" {
			return peerName(s.Peer) + ","
		}
		return peerName(s.Peer)
	case s.Mount != nil:
		return fmt.Sprintf("the file system %s (%s)", named(s.Mount), s.Mount.Type)
	case s.Disk != "":
		return "disk " + s.Disk
	}
	return "its storage"
}

// findSilent is the remedy for what is silent. That it were faster would change nothing.
func (x *situation) findSilent() string {
	s := x.Silence
	switch {
	case s.Peer != nil && s.Peer.Process != "":
		return "Find out why " + s.Peer.Process + " sends nothing: see its log, and whether it is stopped or waits itself. " +
			"Give the program a timeout for its reads, after which it asks again."
	case s.Peer != nil:
		return "Find out why " + peerName(s.Peer) + " sends nothing: the server, a proxy or a firewall may have dropped " +
			"the connections. Give the program a timeout for its reads, after which it asks again."
	case s.Mount != nil:
		return "Find out why " + named(s.Mount) + " does not answer: see whether its server or daemon runs and can be " +
			"reached, and its log. The program waits until it answers or is unmounted (umount -f, umount -l)."
	}
	return "Find out why " + silent(x.Report) + " does not answer: see dmesg for errors and resets, and stallspan health."
}

package explain

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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
	switch {
	case s.Peer != nil:
		text += "; " + count(uint64(s.Peer.Connections), "connection") + " still open"
	case len(s.Ended) > 0:
		text += "; " + howEnded(r)
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
	case len(s.Ended) > 0:
		return "its own processes"
	}
	return "its storage"
}

// findSilent is the remedy for what is silent. That it were faster would change nothing.
func (x *situation) findSilent() string {
	s := x.Silence
	switch {
	case len(s.Ended) > 0:
		return x.findEnded()
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

// howEnded says how processes of the job ended, and when the newest did.
func howEnded(r *window.Report) string {
	list := r.Silence.Ended
	last := list[len(list)-1]
	text, verb := fmt.Sprintf("%d of them", len(list)), " ended"
	if syscall.WaitStatus(last.Status).Stopped() {
		verb = " stopped"
	}
	switch wait := syscall.WaitStatus(last.Status); {
	case wait.Signaled():
		verb += " by " + unix.SignalName(wait.Signal())
	case wait.Stopped():
		verb += " by SIGSTOP"
	case last.Status != 0:
		verb += fmt.Sprintf(" with exit code %d", wait.ExitStatus())
	}
	if last.At == 0 {
		return text + verb + " before"
	}
	return text + verb + " at " + r.Wall(last.At).Format(time.TimeOnly)
}

// findEnded is the remedy for processes that ended or stopped before those that wait for them.
func (x *situation) findEnded() string {
	last := x.Silence.Ended[len(x.Silence.Ended)-1]
	list := fmt.Sprintf("process %d", last.PID)
	switch wait := syscall.WaitStatus(last.Status); {
	case wait.Stopped():
		return "Find out who stopped " + list + ". It goes on with SIGCONT: kill -CONT " + fmt.Sprint(last.PID) + "."
	case wait.Signaled() && wait.Signal() == syscall.SIGKILL:
		return "Find out what killed " + list + ": the kernel does so when memory runs out (see dmesg). The program " +
			"waits for what will never come: end it, and use fewer processes, or give them more memory."
	}
	return "Find out why " + list + " ended: see what it printed last. The program waits for what will never come: " +
		"end it, and give its queues a timeout."
}

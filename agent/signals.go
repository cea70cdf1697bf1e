package agent

import (
	"os"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// notIgnored leaves out the signals that the parent process ignores, as nohup does. Notify would end that, for us and
// for the program that we start.
func notIgnored(signals ...os.Signal) []os.Signal {
	return slices.DeleteFunc(signals, signal.Ignored)
}

// relay passes signals on to a wrapped program.
type relay struct {
	signals chan os.Signal
	done    chan struct{} // closed when the last signal was passed on; nil before start
}

// newRelay begins to collect signals, with others than those that every program gets. It comes before the program's
// start: a signal in between must not end us and leave the program behind.
func newRelay(others ...os.Signal) *relay {
	r := &relay{signals: make(chan os.Signal, 16)}
	passed := append(notIgnored(unix.SIGINT, unix.SIGHUP), unix.SIGTERM, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2)
	signal.Notify(r.signals, append(passed, others...)...)
	return r
}

// start hands each signal to pass, until stop.
func (r *relay) start(pass func(os.Signal)) {
	r.done = make(chan struct{})
	go func() {
		defer close(r.done)
		for s := range r.signals {
			pass(s)
		}
	}()
}

func (r *relay) stop() {
	signal.Stop(r.signals)
	close(r.signals)
	if r.done != nil {
		<-r.done
	}
}

// passSignal passes a signal on. The terminal has already sent its own (^C) to the whole foreground process group,
// which includes the program; passing it on would be a second ^C.
func passSignal(to *os.Process, s os.Signal) {
	fromTerminal := s == unix.SIGINT || s == unix.SIGQUIT || s == unix.SIGHUP
	if !fromTerminal || !inForeground() {
		_ = to.Signal(s) // os.ErrProcessDone: it has ended
	}
}

// inForeground reports whether we belong to the foreground process group of a terminal.
func inForeground() bool {
	for _, fd := range []int{0, 1, 2} {
		if group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil && group == unix.Getpgrp() {
			return true
		}
	}
	return false
}

// shellCode is the exit code that a shell would give.
func shellCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignalBase + int(status.Signal())
	}
	return state.ExitCode()
}

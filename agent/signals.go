package agent

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ending are the signals with which users and supervisors end programs.
var ending = []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT}

// notIgnored returns signals without those that the parent process ignores, as nohup does. Notify would stop ignoring
// them, in this process and in the program that it starts.
func notIgnored(signals ...os.Signal) []os.Signal {
	return slices.DeleteFunc(signals, signal.Ignored)
}

// relay passes signals on to a wrapped program.
type relay struct {
	signals chan os.Signal
	done    chan struct{} // closed after the last signal is passed on; nil before start
	stopped bool
	before  context.Context // of the command: Main caught signals with it before there was a relay
}

// newRelay begins to collect the signals that every program gets, and more. Call it before the program starts: a
// signal in between must not end this process and leave the program running. The context is that of the command.
func newRelay(ctx context.Context, more ...os.Signal) *relay {
	r := &relay{signals: make(chan os.Signal, 16), before: ctx}
	passed := append(notIgnored(unix.SIGINT, unix.SIGHUP), unix.SIGTERM, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2)
	signal.Notify(r.signals, append(passed, more...)...)
	return r
}

// ended returns an error if a signal has come that ends programs. Call it before start, when the program is about to
// begin: it must not begin after a ^C.
func (r *relay) ended() error {
	for range len(r.signals) {
		s := <-r.signals
		if number, ok := s.(unix.Signal); ok && slices.Contains(ending, s) {
			return endedBy(number)
		}
		r.signals <- s
	}
	switch cause := context.Cause(r.before); {
	case cause == nil:
		return nil
	case strings.HasPrefix(cause.Error(), unix.SIGINT.String()): // as signal.NotifyContext has it
		return endedBy(unix.SIGINT)
	default:
		return endedBy(unix.SIGTERM)
	}
}

func endedBy(s unix.Signal) error {
	return exitError{exitSignalBase + int(s),
		fmt.Errorf("%s came before the program began: it was not started", unix.SignalName(s))}
}

// start calls pass with each signal, until stop.
func (r *relay) start(pass func(os.Signal)) {
	r.done = make(chan struct{})
	go func() {
		defer close(r.done)
		for s := range r.signals {
			pass(s)
		}
	}()
}

// stop returns when no signal is passed on any more. It may be called again.
func (r *relay) stop() {
	if r.stopped {
		return
	}
	r.stopped = true
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

// inForeground reports whether this process belongs to the foreground process group of a terminal.
func inForeground() bool {
	for _, fd := range []int{0, 1, 2} {
		if group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil && group == unix.Getpgrp() {
			return true
		}
	}
	return false
}

// shellCode returns the exit code that a shell would report.
func shellCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignalBase + int(status.Signal())
	}
	return state.ExitCode()
}

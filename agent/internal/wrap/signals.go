package wrap

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/internal/sample"
)

// ending are the signals with which users and supervisors end programs.
var ending = []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT}

// Relay passes signals on to a wrapped program.
type Relay struct {
	signals chan os.Signal
	done    chan struct{} // closed after the last signal is passed on; nil before start
	stopped bool
	by      atomic.Pointer[Stopped]
	before  context.Context // of the command: Main caught signals with it before there was a relay
}

// Stopped is the newest signal by which a user or supervisor ended the program.
type Stopped struct {
	Signal unix.Signal
	At     time.Duration // monotonic
}

// Stopped returns that signal; the zero value without one.
func (r *Relay) Stopped() Stopped {
	if a := r.by.Load(); a != nil {
		return *a
	}
	return Stopped{}
}

// NewRelay begins to collect the signals that every program gets, and more. Call it before the program starts: a
// signal in between must not end this process and leave the program running. The context is that of the command.
func NewRelay(ctx context.Context, more ...os.Signal) *Relay {
	r := &Relay{signals: make(chan os.Signal, 16), before: ctx}
	passed := append(cli.NotIgnored(unix.SIGINT, unix.SIGHUP), unix.SIGTERM, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2)
	signal.Notify(r.signals, append(passed, more...)...)
	return r
}

// Ended returns an error if a signal has come that ends programs. Call it before start, when the program is about to
// begin: it must not begin after a ^C.
func (r *Relay) Ended() error {
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
	return cli.ExitError{Code: cli.ExitSignalBase + int(s),
		Err: fmt.Errorf("%s came before the program began: it was not started", unix.SignalName(s))}
}

// Start calls pass with each signal, until stop.
func (r *Relay) Start(pass func(os.Signal)) {
	r.done = make(chan struct{})
	go func() {
		defer close(r.done)
		for s := range r.signals {
			if number, ok := s.(unix.Signal); ok && slices.Contains(ending, s) {
				r.by.Store(&Stopped{number, sample.Now().Mono})
			}
			pass(s)
		}
	}()
}

// Stop returns when no signal is passed on any more. It may be called again.
func (r *Relay) Stop() {
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

// PassSignal passes a signal on. The terminal has already sent its own (^C) to the whole foreground process group,
// which includes the program; passing it on would be a second ^C.
func PassSignal(to *os.Process, s os.Signal) {
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

// ShellCode returns the exit code that a shell would report.
func ShellCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return cli.ExitSignalBase + int(status.Signal())
	}
	return state.ExitCode()
}

// handles reports whether a process has a handler for a signal, or ignores it: it would not be killed by it. What is
// not known counts as handled.
func handles(pid int, signal unix.Signal) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return true
	}
	var set uint64
	for line := range strings.Lines(string(text)) {
		name, mask, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "SigCgt" || name == "SigIgn" {
			var bits uint64
			if _, err := fmt.Sscanf(strings.TrimSpace(mask), "%x", &bits); err != nil {
				return true
			}
			set |= bits
		}
	}
	return set&(1<<(signal-1)) != 0
}

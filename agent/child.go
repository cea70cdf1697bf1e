package agent

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/monitor"
)

// child is the wrapped program.
type child struct {
	cmd       *exec.Cmd
	streams   *streams
	ownCgroup bool // it runs in the cgroup that was made for it
	signals   chan os.Signal
	done      chan struct{} // closed when signals are no longer passed on
}

// startChild starts the program with our own standard input and process group, in group where that works.
func startChild(argv, environment []string, group *monitor.Cgroup, line func([]byte)) (*child, error) {
	streams, err := openStreams(os.Stdout, os.Stderr)
	if err != nil {
		return nil, failure{exitRun, fmt.Errorf("no pipe or terminal for the program's output: %w", err)}
	}
	if !streams.stdout.isTerminal && os.Getenv("PYTHONUNBUFFERED") == "" {
		// Into a pipe Python holds its lines back until thousands of bytes are full, and the epochs' times with them.
		environment = append(environment, "PYTHONUNBUFFERED=1")
	}
	c := &child{streams: streams, signals: make(chan os.Signal, 16), done: make(chan struct{})}
	// Notify first: a signal between the start and the notification must not end us and leave the program behind.
	signal.Notify(c.signals, append(passed(), unix.SIGWINCH)...)
	if group != nil {
		err = c.start(argv, environment, inCgroup(group))
		c.ownCgroup = err == nil
	}
	if !c.ownCgroup {
		err = c.start(argv, environment, nil) // the kernel or a container's rules may refuse the cgroup
	}
	if err != nil {
		signal.Stop(c.signals)
		streams.closeAll()
		return nil, cannotStart(argv[0], err)
	}
	streams.start(line)
	go c.passSignals()
	return c, nil
}

func (c *child) start(argv, environment []string, attr *syscall.SysProcAttr) error {
	c.cmd = exec.Command(argv[0], argv[1:]...)
	c.cmd.Env = environment
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = os.Stdin, c.streams.stdout.write, c.streams.stderr.write
	c.cmd.SysProcAttr = attr
	return c.cmd.Start()
}

func cannotStart(name string, err error) error {
	_, missing := exec.LookPath(name)
	switch {
	case errors.Is(err, os.ErrNotExist) && missing == nil:
		return failure{exitCannotRun, fmt.Errorf("%s: the interpreter that its first line names was not found: correct that line", name)}
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return failure{exitNotFound, fmt.Errorf("%s: not found: check its name and PATH", name)}
	case errors.Is(err, os.ErrPermission):
		return failure{exitCannotRun, fmt.Errorf("%s: not allowed to run it: check that it is executable", name)}
	default:
		return failure{exitCannotRun, fmt.Errorf("%s: cannot be started: %w", name, err)}
	}
}

// passed are the signals that a program we run is to get, too.
func passed() []os.Signal {
	return append(heeded(unix.SIGINT, unix.SIGHUP), unix.SIGTERM, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2)
}

// passSignal hands a signal on. What the terminal sends (^C) has already gone to the whole foreground group, the program
// included; passing it on again would be a second ^C.
func passSignal(to *os.Process, s os.Signal) {
	fromTerminal := s == unix.SIGINT || s == unix.SIGQUIT || s == unix.SIGHUP
	if !fromTerminal || !inForeground() {
		_ = to.Signal(s) // os.ErrProcessDone: it is gone already
	}
}

// shellCode is the exit code that a shell would give.
func shellCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignalBase + int(status.Signal())
	}
	return state.ExitCode()
}

// passSignals hands on what we are sent.
func (c *child) passSignals() {
	defer close(c.done)
	for s := range c.signals {
		if s == unix.SIGWINCH {
			c.resized()
		} else {
			passSignal(c.cmd.Process, s)
		}
	}
}

// resized is told that a terminal has another size. The program may have been told before its own terminal had that
// size, so the group is told once more; what comes back to us changes nothing and ends there.
func (c *child) resized() {
	if changed := c.streams.resize(); changed && inForeground() {
		_ = unix.Kill(0, unix.SIGWINCH)
	} else if !inForeground() {
		_ = c.cmd.Process.Signal(unix.SIGWINCH)
	}
}

// inForeground says whether we belong to the foreground process group of a terminal.
func inForeground() bool {
	for _, fd := range []int{0, 1, 2} {
		if group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil && group == unix.Getpgrp() {
			return true
		}
	}
	return false
}

// wait returns when the program has exited, with the code that a shell would give. exited runs at that moment, before
// the rest of the output is passed on.
func (c *child) wait(exited func()) (code int, status *os.ProcessState) {
	_ = c.cmd.Wait() // its error only repeats the state
	exited()
	if held := c.streams.finish(); held {
		say("a process that the program left running still has its output open: what it prints from now on is lost")
	}
	signal.Stop(c.signals)
	close(c.signals)
	<-c.done
	return shellCode(c.cmd.ProcessState), c.cmd.ProcessState
}

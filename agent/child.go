package agent

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/monitor/follow"
)

// child is the wrapped program.
type child struct {
	cmd       *exec.Cmd
	streams   *streams
	ownCgroup bool // it runs in the cgroup that was made for it
	signals   *relay
}

// childHooks are what a run does while its program runs.
type childHooks struct {
	line   func([]byte) // with each line of output
	passed func([]byte) // with all output that went to a terminal, before its lines
	status func()       // prints the state so far, on SIGUSR1
}

// startChild starts the program with our own standard input and process group, in group where that works. It passes on
// the signals of the relay.
func startChild(argv, environment []string, group *follow.Cgroup, signals *relay, hooks childHooks) (*child, error) {
	streams, err := openStreams(os.Stdout, os.Stderr)
	if err != nil {
		return nil, exitError{exitRun, fmt.Errorf("no pipe or terminal for the program's output: %w", err)}
	}
	if !streams.stdout.isTerminal && os.Getenv("PYTHONUNBUFFERED") == "" {
		// Python buffers thousands of bytes of output to a pipe, which would delay the lines that mark epochs.
		environment = append(environment, "PYTHONUNBUFFERED=1")
	}
	c := &child{streams: streams, signals: signals}
	if err := signals.ended(); err != nil {
		streams.closeAll()
		return nil, err
	}
	if group != nil {
		err = c.start(argv, environment, inCgroup(group))
		c.ownCgroup = err == nil
	}
	if !c.ownCgroup {
		err = c.start(argv, environment, nil) // the kernel or a container's rules may refuse the cgroup
	}
	if err != nil {
		streams.closeAll()
		return nil, cannotStart(argv[0], err)
	}
	streams.start(hooks)
	c.signals.start(func(s os.Signal) {
		switch s {
		case unix.SIGWINCH:
			c.resize()
		case unix.SIGUSR1:
			hooks.status()
			if handles(c.cmd.Process.Pid, unix.SIGUSR1) { // the signal's default is to kill the program
				passSignal(c.cmd.Process, s)
			}
		default:
			passSignal(c.cmd.Process, s)
		}
	})
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
	info, statErr := os.Stat(name)
	_, missing := exec.LookPath(name)
	switch {
	case errors.Is(err, os.ErrNotExist) && missing == nil:
		return exitError{exitCannotRun, fmt.Errorf("%s: the interpreter in its first line was not found: correct that line",
			name)}
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return exitError{exitNotFound, fmt.Errorf("%s: not found: check its name and PATH", name)}
	case errors.Is(err, os.ErrPermission) && statErr == nil && info.IsDir():
		return exitError{exitCannotRun, fmt.Errorf("%s: is a directory: give a program", name)}
	case errors.Is(err, os.ErrPermission):
		return exitError{exitCannotRun, fmt.Errorf("%s: permission denied: check that it is executable", name)}
	default:
		return exitError{exitCannotRun, fmt.Errorf("%s: cannot be started: %w", name, err)}
	}
}

// resize passes the size of our terminal on. The program may have got the signal before its own terminal had the new
// size, so the group gets it again. The copy that comes back to us finds nothing to change, which ends the loop.
func (c *child) resize() {
	if changed := c.streams.resize(); changed && inForeground() {
		_ = unix.Kill(0, unix.SIGWINCH)
	} else if !inForeground() {
		_ = c.cmd.Process.Signal(unix.SIGWINCH)
	}
}

// wait returns when the program has exited, with the code that a shell would give. exited runs at that moment, while
// the kernel still has all counters of the program, and before the rest of the output is passed on.
func (c *child) wait(exited func()) (code int, status *os.ProcessState) {
	awaitExit(c.cmd.Process.Pid)
	exited()
	_ = c.cmd.Wait() // its error only repeats the state
	if held := c.streams.finish(); held {
		say("a process that the program left running still has its output open, and goes on without stallspan")
	}
	c.signals.stop()
	return shellCode(c.cmd.ProcessState), c.cmd.ProcessState
}

// newCgroup makes a cgroup for one run. It returns nil where that is not permitted: the run then shares the pressure of
// the cgroup that it is in.
func newCgroup() *follow.Cgroup {
	group, err := follow.NewCgroup(ownRunPrefix())
	if err != nil {
		return nil
	}
	return group
}

// exitGrace is how long to wait for the program's processes to exit.
const exitGrace = 500 * time.Millisecond

// removeCgroup removes the cgroup, if there is one. A process that was left running in it keeps it.
func removeCgroup(group *follow.Cgroup) {
	if group != nil {
		_ = group.Remove(exitGrace)
	}
}

// Package wrap starts a program as if nothing were in between: its streams, its signals and its exit code.
package wrap

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/internal/monitor/follow"
)

// Child is the wrapped program.
type Child struct {
	Cmd       *exec.Cmd
	streams   *streams
	OwnCgroup bool // it runs in the cgroup that was made for it
	signals   *Relay
}

// Hooks are what a run does while its program runs.
type Hooks struct {
	Line   func([]byte) // with each line of output
	Passed func([]byte) // with all output that went to a terminal, before its lines
	Status func()       // prints the state so far, on SIGUSR1
}

// Start starts the program with our own standard input and process group, in group where that works. It passes on
// the signals of the relay.
func Start(argv, environment []string, group *follow.Cgroup, signals *Relay, hooks Hooks) (*Child, error) {
	streams, err := openStreams(os.Stdout, os.Stderr)
	if err != nil {
		return nil, cli.ExitError{Code: cli.ExitRun, Err: fmt.Errorf("no pipe or terminal for the program's output: %w", err)}
	}
	if !streams.stdout.isTerminal && os.Getenv("PYTHONUNBUFFERED") == "" {
		// Python buffers thousands of bytes of output to a pipe, which would delay the lines that mark epochs.
		environment = append(environment, "PYTHONUNBUFFERED=1")
	}
	c := &Child{streams: streams, signals: signals}
	if err := signals.Ended(); err != nil {
		streams.closeAll()
		return nil, err
	}
	if group != nil {
		err = c.start(argv, environment, &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Dir.Fd())})
		c.OwnCgroup = err == nil
	}
	if !c.OwnCgroup {
		err = c.start(argv, environment, nil) // the kernel or a container's rules may refuse the cgroup
	}
	if err != nil {
		streams.closeAll()
		return nil, CannotStart(argv[0], err)
	}
	streams.start(hooks)
	c.signals.Start(func(s os.Signal) {
		switch s {
		case unix.SIGWINCH:
			c.resize()
		case unix.SIGUSR1:
			hooks.Status()
			if handles(c.Cmd.Process.Pid, unix.SIGUSR1) { // the signal's default is to kill the program
				PassSignal(c.Cmd.Process, s)
			}
		default:
			PassSignal(c.Cmd.Process, s)
		}
	})
	return c, nil
}

func (c *Child) start(argv, environment []string, attr *syscall.SysProcAttr) error {
	c.Cmd = exec.Command(argv[0], argv[1:]...)
	c.Cmd.Env = environment
	c.Cmd.Stdin, c.Cmd.Stdout, c.Cmd.Stderr = os.Stdin, c.streams.stdout.write, c.streams.stderr.write
	c.Cmd.SysProcAttr = attr
	return c.Cmd.Start()
}

// CannotStart says why a program could not be started, with the exit code of a shell.
func CannotStart(name string, err error) error {
	info, statErr := os.Stat(name)
	_, missing := exec.LookPath(name)
	code, why := cli.ExitCannotRun, "cannot be started: "+err.Error()
	switch {
	case errors.Is(err, os.ErrNotExist) && missing == nil:
		why = "the interpreter in its first line was not found: correct that line"
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		code, why = cli.ExitNotFound, "not found: check its name and PATH"
	case errors.Is(err, os.ErrPermission) && statErr == nil && info.IsDir():
		why = "is a directory: give a program"
	case errors.Is(err, os.ErrPermission):
		why = "permission denied: check that it is executable"
	}
	return cli.ExitError{Code: code, Err: errors.New(name + ": " + why)}
}

// resize passes the size of our terminal on. The program may have got the signal before its own terminal had the new
// size, so the group gets it again. The copy that comes back to us finds nothing to change, which ends the loop.
func (c *Child) resize() {
	if changed := c.streams.resize(); changed && inForeground() {
		_ = unix.Kill(0, unix.SIGWINCH)
	} else if !inForeground() {
		_ = c.Cmd.Process.Signal(unix.SIGWINCH)
	}
}

// Wait returns when the program has exited, with the code that a shell would give. exited runs at that moment, while
// the kernel still has all counters of the program, and before the rest of the output is passed on.
func (c *Child) Wait(exited func()) (code int, status *os.ProcessState) {
	pid := c.Cmd.Process.Pid // its files in /proc keep the final counters until its parent waits for it
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	exited()
	_ = c.Cmd.Wait() // its error only repeats the state
	if held := c.streams.finish(); held {
		cli.Say("a process that the program left running still has its output open, and goes on without stallspan")
	}
	c.signals.Stop()
	return ShellCode(c.Cmd.ProcessState), c.Cmd.ProcessState
}

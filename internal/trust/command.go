package trust

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Command is a program in a process group of its own, which is killed as a whole. Call Launch and then Await, instead
// of Start and Wait.
type Command struct {
	*exec.Cmd
	timeout time.Duration // 0 for none

	mu    sync.Mutex
	ended bool // the number of its group may belong to others
}

// Rights are what a program keeps of ours, and may gain.
type Rights struct {
	Ambient bool // ambient capabilities, which a service has (capabilities(7))
	Setuid  bool // those that a program's file gives, such as sudo's (no_new_privs, prctl(2))
}

// NewCommand returns a program that is killed when ctx ends.
func NewCommand(ctx context.Context, path string, arguments ...string) *Command {
	c := &Command{Cmd: exec.CommandContext(ctx, path, arguments...)}
	if end, ok := ctx.Deadline(); ok {
		c.timeout = max(0, time.Until(end))
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = c.kill
	return c
}

// kill kills the group, unless the program has ended and been waited for.
func (c *Command) kill() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return os.ErrProcessDone
	}
	err := syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// finished keeps a late end of the context from killing a group that has the same number.
func (c *Command) finished() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

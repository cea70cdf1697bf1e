package action

import (
	"errors"
	"os/exec"

	"golang.org/x/sys/unix"
)

// wait waits for a program and kills what is left of its process group. The group is killed before cmd.Wait reaps the
// program: until then its process group ID cannot be reused.
func wait(cmd *exec.Cmd) error {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	_ = cmd.Cancel() // fails if the group is empty
	return cmd.Wait()
}

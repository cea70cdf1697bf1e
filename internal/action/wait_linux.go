package action

import (
	"errors"
	"os/exec"

	"golang.org/x/sys/unix"
)

// wait waits for a program's end, and kills what is left of its process group. The group's number is the program's own: that
// is nobody else's before the program is buried, which cmd.Wait does.
func wait(cmd *exec.Cmd) error {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	_ = cmd.Cancel() // nobody may be left
	return cmd.Wait()
}

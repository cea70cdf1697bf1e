//go:build unix

package action

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// identity is as whom a program is started.
type identity struct{ uid, gid uint32 }

// nobody is the user that programs are started as where we are root and none was named.
const nobody = "nobody"

// whom finds a user. Only root may become another one.
func whom(name string) (*identity, error) {
	root := os.Geteuid() == 0
	if !root && name == "" {
		return nil, nil
	}
	if name == "" {
		name = nobody
	}
	found, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("exec cannot start programs as %.40q, name another user: %w", name, err)
	}
	uid, errUID := strconv.ParseUint(found.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(found.Gid, 10, 32)
	if err := errors.Join(errUID, errGID); err != nil {
		return nil, fmt.Errorf("exec cannot start programs as %.40q: %w", name, err)
	}
	switch {
	case !root && int(uid) != os.Geteuid():
		return nil, fmt.Errorf("exec starts programs as another user only where the agent is root: leave user out, or run the agent as %.40q", name)
	case !root:
		return nil, nil
	case uid == 0 && name != "root":
		return nil, fmt.Errorf("%.40q is root by another name: say user: root where that is meant", name)
	}
	return &identity{uint32(uid), uint32(gid)}, nil
}

// apart puts a program into a process group of its own, which is killed as a whole, without any of our groups.
func (p *program) apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.as != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: p.as.uid, Gid: p.as.gid}
	}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}

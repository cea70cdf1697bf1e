package agent

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// leave gives the output of a process that was left running to cat, which reads it until its end. Otherwise the process
// would die of SIGPIPE at its next output, when we have ended. A file or a terminal gets the output, as it would
// without us. Output to a pipe is dropped: its reader waits for our end, and must not wait for that process.
func (p *pipe) leave() {
	to := p.to
	if info, err := to.Stat(); err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0 {
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			return
		}
		defer func() { _ = null.Close() }()
		to = null
	}
	conn, err := p.read.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) { _ = unix.SetNonblock(int(fd), false) }) // cat does not expect EAGAIN
	cat := exec.Command("cat")
	cat.Stdin, cat.Stdout = p.read, to
	cat.Dir, cat.Env = "/", []string{} // it holds no folder
	cat.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if cat.Start() == nil {
		_ = cat.Process.Release() // it outlives us
	}
}

// Package heir keeps the output of a wrapped program when the process that passes it on is killed. The program writes
// to pipes. Without a reader its next print would end it with SIGPIPE. So an heir, a second process of this program,
// holds the read ends, too. It sleeps until the first process ends, and then passes on what comes.
package heir

import (
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// name is the first argument of an heir, by which init knows it.
const name = "stallspan-heir"

// Output is an output of the program.
type Output struct {
	From *os.File // a pipe, or a terminal's master
	To   *os.File // where it goes
}

// Heir is the second process. A nil *Heir does nothing.
type Heir struct {
	cmd  *exec.Cmd
	life *os.File // a pipe, which ends with us
	left atomic.Bool
}

// An order is one byte: the number of an output, and what to do with it.
const (
	drop     = iota // its end has been passed on, or its reader is gone
	pass            // pass on what comes
	discard         // read what comes, and forget the original output
	commands = 4
)

// Start starts an heir of outputs. Each needs one call of Drop or Leave, and then the heir one of Close.
func Start(outputs ...Output) (*Heir, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	cmd := exec.Command(path)
	cmd.Args = []string{name, strconv.Itoa(len(outputs))}
	cmd.Dir, cmd.Env = "/", []string{"GOMAXPROCS=1"} // it holds no folder, and has little to do
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.ExtraFiles = []*os.File{theirs}
	for _, o := range outputs {
		copied, err := duplicate(o.From)
		if err != nil {
			_ = ours.Close()
			return nil, err
		}
		defer func() { _ = copied.Close() }()
		cmd.ExtraFiles = append(cmd.ExtraFiles, copied, o.To)
	}
	if err := cmd.Start(); err != nil {
		_ = ours.Close()
		return nil, err
	}
	return &Heir{cmd: cmd, life: ours}, nil
}

// duplicate returns a file to be inherited. The original stays non-blocking, which Fd would change.
func duplicate(file *os.File) (*os.File, error) {
	conn, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	copied := -1
	failed := conn.Control(func(fd uintptr) { copied, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(copied), file.Name()), nil
}

// Drop has the heir close an output: its end has been passed on, or its reader is gone. The program must then get the
// error that it would get without us.
func (h *Heir) Drop(output int) { h.order(output, drop) }

// Leave has the heir take over an output that another process has open when we end. It passes on what comes, or, with
// forget, only reads it: then the reader of the original output, which waits for its end, does not wait for that
// process.
func (h *Heir) Leave(output int, forget bool) {
	if h == nil {
		return
	}
	h.left.Store(true)
	if forget {
		h.order(output, discard)
	} else {
		h.order(output, pass)
	}
}

func (h *Heir) order(output, what int) {
	if h != nil {
		_, _ = h.life.Write([]byte{byte(output*commands + what)}) // fails if it was killed
	}
}

// Close ends the heir, unless something was left to it.
func (h *Heir) Close() {
	if h == nil {
		return
	}
	if h.left.Load() {
		_ = h.life.Close()
		_ = h.cmd.Process.Release() // it outlives us
		return
	}
	_ = h.cmd.Process.Kill()
	_ = h.life.Close()
	_ = h.cmd.Wait() // was killed
}

package agent

import (
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// screen is a terminal with stallspan in its foreground.
type screen struct {
	liveOutput
	keys  *os.File // the keyboard
	drawn chan struct{}
}

// onScreen starts v on a terminal of its own.
func onScreen(t *testing.T, v *invocation) *screen {
	t.Helper()
	v.Stdin, v.Stdout, v.Stderr = nil, nil, nil
	master, err := pty.StartWithAttrs(v.Cmd, &pty.Winsize{Rows: 40, Cols: 100},
		&syscall.SysProcAttr{Setsid: true, Setctty: true})
	if err != nil {
		t.Skipf("needs a terminal: %v", err)
	}
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = master.Close()
	if err := unix.SetNonblock(fd, true); err != nil { // or Close below would wait for the reader
		t.Fatal(err)
	}
	s := &screen{keys: os.NewFile(uintptr(fd), "terminal"), drawn: make(chan struct{})}
	go func() {
		defer close(s.drawn)
		_, _ = io.Copy(s, s.keys) // EIO when its last user has left
	}()
	t.Cleanup(func() {
		_ = s.keys.Close() // ends the processes of a test that failed
		<-s.drawn
	})
	return s
}

func (s *screen) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := io.WriteString(s.keys, keys); err != nil {
		t.Fatal(err)
	}
}

// end waits for stallspan's exit, and for the rest of its output.
func (s *screen) end(v *invocation) int {
	v.t.Helper()
	code := v.wait()
	<-s.drawn
	return code
}

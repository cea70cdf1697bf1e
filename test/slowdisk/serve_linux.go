package slowdisk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// The role of a process that Open has started, in its environment: the folder that it serves, or removes.
const (
	guardVariable = "STALLSPAN_STORAGE_GUARD"
	undoVariable  = "STALLSPAN_STORAGE_UNDO"
)

// order is one line from Open or a Disk to the server, which sends one answer.
type order struct {
	Mount    bool   `json:",omitempty"` // show Backing at Point
	Backing  string `json:",omitempty"`
	Point    string `json:",omitempty"`
	Uncached bool   `json:",omitempty"` // for a loop device, which has a cache above it

	Model model
	Slow  bool
}

// answer is empty on success.
type answer struct{ Error string }

// threads exceeds the number of requests in flight (a loop device sends 128), so that no request or answer waits for Go
// to notice that a thread is blocked.
const threads = 192

// orphaned is how long a server without a parent waits for the last user of its files. Reads fail after that.
const orphaned = 10 * time.Second

func serve() bool {
	if base := os.Getenv(undoVariable); base != "" {
		if err := undo(base, patience); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return true
	}
	base := os.Getenv(guardVariable)
	if base == "" {
		return false
	}
	s := server{base: base, pacer: &pacer{}}
	s.prepare()
	s.obey(os.Stdin, os.Stdout)
	s.leave()
	return true
}

// server is the process that serves the files of one Disk.
type server struct {
	base  string
	pacer *pacer
	fuse  *fuse.Server
}

// prepare lets the server outlive its parent, and gives it the priority to answer in time on a busy machine.
func (s *server) prepare() {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE) // the end of the input ends it
	runtime.GOMAXPROCS(threads)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(256 * mib)
	// Real-time priority for every thread, which new threads inherit. Without the right the server runs at normal
	// priority.
	entries, _ := os.ReadDir("/proc/self/task")
	for _, entry := range entries {
		if thread, err := strconv.Atoi(entry.Name()); err == nil {
			_ = unix.SchedSetAttr(thread, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}, 0)
		}
	}
}

// obey executes orders until the input ends: the parent has finished or died.
func (s *server) obey(orders io.Reader, answers io.Writer) {
	in, out := json.NewDecoder(orders), json.NewEncoder(answers)
	for {
		var o order
		if err := in.Decode(&o); err != nil {
			return
		}
		var a answer
		if err := s.carryOut(o); err != nil {
			a.Error = err.Error()
		}
		if out.Encode(a) != nil {
			return
		}
	}
}

func (s *server) carryOut(o order) error {
	if !o.Mount {
		s.pacer.set(o.Model, o.Slow)
		return nil
	}
	if s.fuse != nil {
		return errors.New("the server shows a folder already")
	}
	mounted, err := show(o, s.pacer)
	s.fuse = mounted
	return err
}

// leave removes all that is left in another process, because this one must continue to answer.
func (s *server) leave() {
	s.pacer.set(model{}, false)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if _, err := os.Stat(s.base); err == nil {
			undoing := exec.Command("/proc/self/exe")
			undoing.Env = append(os.Environ(), undoVariable+"="+s.base)
			undoing.Stderr = os.Stderr
			_ = undoing.Run()
		}
		if s.fuse != nil {
			s.fuse.Wait()
		}
	}()
	select {
	case <-gone:
	case <-time.After(orphaned): // the end of this process closes its connection to the kernel and ends every wait for it
	}
}

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

// What a process is told by its environment that Open has started: the folder that it guards, or is to undo.
const (
	guardVariable = "STALLSPAN_STORAGE_GUARD"
	undoVariable  = "STALLSPAN_STORAGE_UNDO"
)

// order is one line that Open and a Disk write to their server; it is answered with one answer.
type order struct {
	Mount    bool   `json:",omitempty"` // show Backing at Point
	Backing  string `json:",omitempty"`
	Point    string `json:",omitempty"`
	Uncached bool   `json:",omitempty"` // for a loop device, which has a cache above it

	Model model
	Slow  bool
}

// answer is empty where an order was carried out.
type answer struct{ Error string }

// threads is more than there can be requests under way (a loop device sends 128 at once): then none that is to be
// answered, or to be taken, waits for Go to notice that another one's thread is asleep.
const threads = 192

// orphaned is how long a server whose parent is gone waits for the last user of its files; their reads fail after that.
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

// server is the process that guards one Disk, and answers the reads of those that need it.
type server struct {
	base  string
	pacer *pacer
	fuse  *fuse.Server
}

// prepare sees to it that the server outlives its parent, and answers in time whatever the machine is busy with.
func (s *server) prepare() {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE) // the end of the input ends it
	runtime.GOMAXPROCS(threads)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(256 * mib)
	// Real time, for every thread, and so for the threads that these start. Where that is not allowed, it goes without.
	entries, _ := os.ReadDir("/proc/self/task")
	for _, entry := range entries {
		if thread, err := strconv.Atoi(entry.Name()); err == nil {
			_ = unix.SchedSetAttr(thread, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}, 0)
		}
	}
}

// obey carries out orders until there are no more: the parent is done, or gone.
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

// leave undoes what is left, in a process of its own, since this one must go on to answer meanwhile.
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
	case <-time.After(orphaned): // with this process its connection to the kernel ends, and every wait for it
	}
}

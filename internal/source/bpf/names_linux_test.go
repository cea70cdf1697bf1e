//go:build amd64 || arm64

package bpf

import (
	"os"
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

// hostile is a name that moves the cursor of a terminal.
const hostile = "feed\x1b[2J\n\xff"

// renameProgram has a thread that takes another name.
func renameProgram(f facts) {
	tid, wait := thread(func() {
		name := append([]byte(hostile), 0)
		must(unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0))
	})
	f["renamed"] = tid
	wait()
}

func TestNames(t *testing.T) {
	s := opened(t, defaults)
	f, events := trace(t, s, "rename")
	checkChain(t, events)
	const program = "exe" // of /proc/self/exe
	began, named := "", ""
	for _, e := range of(events, f["renamed"]) {
		switch e.Kind {
		case sample.ThreadBegan:
			began = e.Name
		case sample.ThreadNamed:
			named = e.Name
		}
	}
	if began != program || named != hostile {
		t.Errorf("got a thread that began as %q and became %q, want %q and %q", began, named, program, hostile)
	}
}

// TestNameOfWaker: the program waits for its input, from this process, which is not followed.
func TestNameOfWaker(t *testing.T) {
	s := opened(t, defaults)
	p := fixture.Start(t, "sleep")
	if err := s.Follow("job", []int{p.PID()}); err != nil {
		t.Fatal(err)
	}
	for !sleepsIn(p.PID(), p.PID(), os.Stdin.Fd()) {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond) // who ends shorter waits is not named
	p.Finish()
	events := readAll(t, s)
	checkChain(t, events)
	at := slices.IndexFunc(events, func(e sample.ThreadEvent) bool {
		return e.Kind == sample.ThreadNamed && e.PID == os.Getpid()
	})
	if at < 0 || events[at].Name == "" {
		show(t, events)
		t.Fatal("got no name of the process that wrote the input, want one")
	}
	if !slices.ContainsFunc(events[at:], func(e sample.ThreadEvent) bool {
		return e.Kind == sample.ThreadIn && e.Waker == events[at].TID
	}) {
		t.Errorf("got no wake-up by thread %d after its name, want one", events[at].TID)
	}
}

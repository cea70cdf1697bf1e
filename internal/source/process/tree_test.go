package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

// tree writes a /proc of processes.
type tree struct {
	testing.TB
	root string
}

// put writes the files of a process as the kernel prints them. own and reaped are what the process did itself and
// what it has inherited.
func (t tree) put(pid, parent int, start uint64, state byte, own, reaped counts) {
	t.Helper()
	flags := 0x00400000
	if pid == 2 || parent == 2 { // a kernel thread
		flags |= kernelThread
	}
	t.write(
		pid,
		"stat",
		fmt.Sprintf("%d (a b) (c) %c %d 1 1 0 -1 %d %d %d 0 0 %d 0 %d 0 20 0 1 0 %d 0 0 18446744073709551615\n",
			pid, state, parent, flags, own[faults], reaped[faults], own[cpuTicks], reaped[cpuTicks], start),
	)
	all := own.plus(reaped)
	t.write(
		pid,
		"io",
		fmt.Sprintf("rchar: %d\nwchar: 1\nsyscr: 1\nsyscw: 1\nread_bytes: %d\nwrite_bytes: %d\ncancelled_write_bytes: 0\n",
			all[readChars], all[readBytes], all[writeBytes]),
	)
}

func (t tree) children(pid int, pids ...int) {
	t.Helper()
	list := ""
	for _, child := range pids {
		list += strconv.Itoa(child) + " "
	}
	t.write(pid, fmt.Sprintf("task/%d/children", pid), list)
}

func (t tree) write(pid int, name, text string) {
	t.Helper()
	fixture.Write(t, t.root, fmt.Sprintf("proc/%d/%s", pid, name), []byte(text))
}

// end takes a process out of /proc. A kept file of it must fail as the kernel's does, and not go on with the text
// of a file that was only unlinked: so it is emptied first.
func (t tree) end(pid int) {
	t.Helper()
	t.write(pid, "stat", "")
	t.write(pid, "io", "")
	if err := os.RemoveAll(filepath.Join(t.root, "proc", strconv.Itoa(pid))); err != nil {
		t.Fatal(err)
	}
}

// lookNow makes the next reading look for new members and open files.
func (s *Source) lookNow() {
	for _, j := range s.jobs {
		j.scanned -= 2 * scanInterval
	}
}

// read is one reading that must succeed.
func read(t testing.TB, s *Source) *sample.Sample {
	t.Helper()
	out := sample.Sample{Edge: true}
	if err := s.Read(&out); err != nil {
		t.Fatal(err)
	}
	return &out
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

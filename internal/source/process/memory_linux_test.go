package process

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/pagecache"
	"github.com/stallspan/stallspan/test/fixture"
)

// writeFile writes a file of a size in bytes to a disk.
func writeFile(t *testing.T, size int) *os.File {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	for range size >> 20 {
		if _, err := file.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
	return file
}

// forget drops a file from the page cache. Where that keeps it, the test is skipped.
func forget(t *testing.T, file *os.File, size int64) {
	t.Helper()
	if err := pagecache.Forget(file); err != nil {
		t.Fatal(err)
	}
	if stayed, _, err := pagecache.Resident(file); err != nil || stayed > size/10 {
		t.Skip("the folder for temporary files is on no disk")
	}
}

// A cgroup whose limit is smaller than the file that its job reads twice reads most of it again. Both ends of a window
// show that, also the one after the end of the job's last process.
func TestRefaultsAtEdges(t *testing.T) {
	const size = 256 << 20 // the limit is many times what a disk reads ahead, up to 8 MiB
	group := fixture.MemoryCgroup(t, size/2)
	file := writeFile(t, size)
	forget(t, file, size)
	shell := startShell(t, &syscall.SysProcAttr{})
	shell.do("echo $$ >" + group + "/cgroup.procs")
	source := New("")
	defer source.Close()
	if err := source.Add("sh", shell.Process.Pid, Options{}); err != nil {
		t.Fatal(err)
	}
	read := func() sample.MemoryLimit {
		t.Helper()
		out := sample.Sample{Edge: true}
		if err := source.Read(&out); err != nil {
			t.Fatal(err)
		}
		return out.Jobs[0].Memory
	}
	if m := read(); m.Limit != size/2 || m.Refaulted != 0 {
		t.Fatalf("at first: got %+v, want a limit of %d and nothing read again", m, size/2)
	}
	shell.do("cat " + file.Name() + " >/dev/null")
	time.Sleep(memoryAtEdges)
	first := read().Refaulted
	time.Sleep(memoryAtEdges)
	if _, err := fmt.Fprintf(shell.in, "exec cat %s >/dev/null\n", file.Name()); err != nil {
		t.Fatal(err)
	}
	// Before its parent waits for it, a reading finds its counters.
	if err := unix.Waitid(unix.P_PID, shell.Process.Pid, &unix.Siginfo{}, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if again := read().Refaulted - first; first > size/4 || again < size/2 {
		t.Errorf("got %d bytes read again at first and %d later, want most of %d later", first, again, size)
	}
}

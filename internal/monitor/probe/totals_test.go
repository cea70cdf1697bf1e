package probe

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func put(t *testing.T, root string, pid int, files map[string]string) {
	t.Helper()
	folder := filepath.Join(root, "proc", strconv.Itoa(pid))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func io(read int) string {
	return "rchar: 999\nwchar: 5\nsyscr: 1\nsyscw: 1\nread_bytes: " + strconv.Itoa(read) + "\nwrite_bytes: 7\n"
}

func TestMostRead(t *testing.T) {
	root := t.TempDir()
	id := strings.Repeat("0123456789abcdef", 4)
	put(t, root, 10,
		map[string]string{"io": io(100), "comm": "rsync\n", "cgroup": "1:blkio:/x\n0::/system.slice/backup.service\n"})
	put(t, root, 11, map[string]string{"io": io(500), "comm": "train\n", "cgroup": "0::/docker-" + id + ".scope\n"})
	put(t, root, 12, map[string]string{"io": io(7)})
	put(t, root, 13, map[string]string{"comm": "not for us\n"})
	put(t, root, 14, map[string]string{"io": "nonsense"})
	before := scanProcesses(root, nil)
	put(t, root, 10, map[string]string{"io": io(5100)})
	put(t, root, 11, map[string]string{"io": io(600)})
	put(t, root, 12, map[string]string{"io": io(3)}) // another process
	put(t, root, 15, map[string]string{"io": io(50)})
	got, want := topReaders(before, scanProcesses(root, nil), 3), []reading{
		{10, 5000},
		{11, 100},
		{15, 50},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := topReaders(nil, before, 3); got != nil {
		t.Errorf("without a first scan: got %v, want none", got)
	}
	if a, b, c := cgroupOf(
		root,
		10,
	), cgroupOf(
		root,
		11,
	), cgroupOf(root, 99); a != "backup.service" || b != "0123456789ab" ||
		c != "" {
		t.Errorf("got groups %q, %q, %q", a, b, c)
	}
}

// stat returns /proc/PID/stat of a process with a parent and a start time.
func stat(parent, began int) string {
	return "9 (a) b) S " + strconv.Itoa(parent) + strings.Repeat(" 0", 17) + " " + strconv.Itoa(began) + " 0 0\n"
}

// Bytes that children read before the first scan do not count; later bytes do.
func TestInherited(t *testing.T) {
	root := t.TempDir()
	put := func(pid, parent, began, read int) {
		put(t, root, pid, map[string]string{"io": io(read), "stat": stat(parent, began)})
	}
	put(1, 0, 1, 0)
	put(10, 1, 5, 100)   // waits for 11 and 12
	put(11, 10, 6, 1000) // ends after 70 more
	put(12, 10, 6, 3)    // ends after waiting for 13
	put(13, 12, 7, 2000) // ends
	put(20, 1, 5, 50)    // does not inherit from 21: it did not wait
	put(21, 20, 6, 500)
	put(30, 1, 5, 400) // another process with more bytes gets its PID
	before := scanProcesses(root, nil)
	for _, pid := range []int{11, 12, 13, 21} {
		if err := os.RemoveAll(filepath.Join(root, "proc", strconv.Itoa(pid))); err != nil {
			t.Fatal(err)
		}
	}
	put(10, 1, 5, 100+1070+2003+8)
	put(20, 1, 5, 60)
	put(30, 1, 9, 410)
	got, want := topReaders(before, scanProcesses(root, nil), 3), []reading{{30, 410}, {10, 78}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The worker of a loop device reads the file for the process that reads the device.
func TestKernelThreadsAreNoReaders(t *testing.T) {
	root := t.TempDir()
	put(t, root, 2, map[string]string{"io": io(0), "stat": "2 (kthreadd) S 0 0 0 0 -1 2129984" +
		strings.Repeat(" 0", 12) + " 1 0 0\n"})
	put(t, root, 40, map[string]string{"io": io(9000), "stat": "40 (kworker/u4:2+loop0) I 2 0 0 0 -1 69238880" +
		strings.Repeat(" 0", 12) + " 5 0 0\n"})
	put(t, root, 41, map[string]string{"io": io(500), "stat": stat(1, 6)})
	got, want := topReaders(readTotals{}, scanProcesses(root, nil), 3), []reading{{41, 500}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// What a process wrote takes room in the page cache as what it read does.
func TestMovedCountsWhatWasWritten(t *testing.T) {
	root := t.TempDir()
	put(t, root, 41, map[string]string{"io": io(500), "stat": stat(1, 6)})
	put(t, root, 42, map[string]string{"io": "rchar: 0\nread_bytes: 100\nwrite_bytes: 900\n", "stat": stat(1, 7)})
	after := scanProcesses(root, nil)
	got, want := topReaders(readTotals{}, after.moved(), 3), []reading{{42, 1000}, {41, 507}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	got, want = topReaders(readTotals{}, after, 3), []reading{{41, 500}, {42, 100}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("what was read: got %v, want %v", got, want)
	}
	if readTotals(nil).moved() != nil {
		t.Error("totals that are not known become known")
	}
}

func TestCycleOfParents(t *testing.T) {
	before := readTotals{1: {Bytes: 5, Parent: 2, Began: 1}, 2: {Bytes: 5, Parent: 1, Began: 1}}
	if got := topReaders(before, readTotals{}, 3); len(got) != 0 {
		t.Errorf("got %v, want none", got)
	}
}

// The bytes of a child before the first scan do not count if this process waits for it before the second.
func TestRealChild(t *testing.T) {
	const size = 8 << 20
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sh", "-c", `dd if="$0" of=/dev/null bs=1M iflag=direct 2>/dev/null; echo done; read line`, path)
	in, err1 := child.StdinPipe()
	out, err2 := child.StdoutPipe()
	if err := errors.Join(err1, err2, child.Start()); err != nil {
		t.Skipf("no shell: %v", err)
	}
	_, _ = out.Read(make([]byte, 5)) // its dd has ended
	before := scanProcesses("", nil)
	_ = in.Close()
	_ = child.Wait()
	after := scanProcesses("", nil)
	us, its := os.Getpid(), before[child.Process.Pid]
	if its.Bytes < size || its.Parent != us {
		t.Skipf("nothing was read from a disk here: %+v", its)
	}
	if grown := after[us].Bytes - before[us].Bytes; grown < size {
		t.Fatalf("this kernel hands nothing over: %d bytes", grown)
	}
	for _, r := range topReaders(before, after, 1000) {
		if r.PID == us && r.Bytes >= size/2 {
			t.Errorf("got %d bytes of the child, want none", r.Bytes)
		}
	}
}

func TestTooMany(t *testing.T) {
	root := t.TempDir()
	for i := range maxProcesses + 1 {
		put(t, root, i+1, map[string]string{"io": io(1)})
	}
	if got := scanProcesses(root, nil); got != nil {
		t.Errorf("got %d processes, want none", len(got))
	}
	if got := scanProcesses(t.TempDir(), nil); got != nil {
		t.Errorf("without /proc: got %v, want none", got)
	}
}

// Processes without permission are left out.
func TestThisMachine(t *testing.T) {
	if _, err := os.Stat("/proc/self/io"); err != nil {
		t.Skip("this machine has no /proc/PID/io")
	}
	if _, ok := scanProcesses("", nil)[os.Getpid()]; !ok {
		t.Error("got no total of this process, want one")
	}
}

func BenchmarkScan(b *testing.B) {
	n := 0
	for b.Loop() {
		n = len(scanProcesses("", nil))
	}
	b.ReportMetric(float64(n), "processes")
}

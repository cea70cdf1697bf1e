package probe

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/disk"
	"github.com/stallspan/stallspan/internal/source/pagecache"
	"github.com/stallspan/stallspan/internal/window"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const mib = 1 << 20

// ofThisMachine returns a Probe of this machine and its disks.
func ofThisMachine(t *testing.T) *Probe {
	t.Helper()
	disks, err := disk.New("")
	if err != nil {
		t.Skipf("needs /proc/diskstats: %v", err)
	}
	p := New("", disks, nil, nil)
	t.Cleanup(func() {
		p.Stop()
		_ = disks.Close()
	})
	return p
}

// coldFile returns a file on a disk without a page in memory. It skips the test if the kernel does not show that.
func coldFile(t *testing.T, size int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	if held, err := pagecache.Look("", path); err != nil || !held.Known || held.Cached > 0 {
		t.Skipf("needs a temporary folder on a disk, and a kernel that shows its page cache: %+v, %v", held, err)
	}
	return path
}

func TestPathExists(t *testing.T) {
	p := ofThisMachine(t)
	folder := t.TempDir()
	for name, want := range map[string]bool{
		folder: true, os.Args[0]: filepath.IsAbs(os.Args[0]), folder + "/none": false, ".": false, "": false,
	} {
		if got := p.PathExists(name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
	// A task ends after its answer.
	for end := time.Now().Add(5 * time.Second); p.running.Taken() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d tasks are still running", p.running.Taken())
		}
	}
}

// A file in memory has no disk.
func TestFileInMemory(t *testing.T) {
	folder, err := os.MkdirTemp("/dev/shm", "stallspan")
	if err != nil {
		t.Skipf("no file system in memory: %v", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "model")
	if err := os.WriteFile(path, make([]byte, mib), 0o600); err != nil {
		t.Fatal(err)
	}
	p := ofThisMachine(t)
	seen := p.inspect(path, 0, true)
	if p.disks == nil || window.InMemory != disk.Memory {
		t.Fatalf("got %q, want %q, and a source of disks", window.InMemory, disk.Memory)
	}
	if under, err := p.disks.Under(path); err != nil || under.Mount.Type != "tmpfs" {
		t.Skipf("/dev/shm is no tmpfs: %+v, %v", under, err)
	}
	if seen.Device != window.InMemory || len(seen.Under) > 0 {
		t.Errorf("got %+v, want a file in memory", seen)
	}
}

// A path is seen as the process that the window names does.
func TestPathOfAContainer(t *testing.T) {
	unshare, err := exec.LookPath("unshare")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and unshare, to make mounts that this program does not have")
	}
	path := coldFile(t, mib)
	cmd := exec.Command(unshare, "--mount", "--propagation", "private", "sh", "-c",
		"mount -t tmpfs none /mnt && printf 12345 > /mnt/model && ln -s /mnt/model /mnt/link && echo ready && exec sleep 600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Skipf("mounts cannot be made here: %q, %v", line, err)
	}
	p := ofThisMachine(t)
	seen := p.inspect("/mnt/link", cmd.Process.Pid, true)
	if seen.Size != 5 || seen.Cached != 5 || !seen.HasCached || len(seen.Under) > 0 {
		t.Errorf("on the container's tmpfs: got %+v, want 5 cached bytes", seen)
	}
	if seen := p.inspect("/mnt/link", os.Getpid(), true); seen.Size != 0 {
		t.Errorf("in our own mounts: got %+v, want no file", seen)
	}
	inside, outside := p.inspect(path, cmd.Process.Pid, true), p.inspect(path, 0, true)
	if inside.Size != mib || !slices.Equal(inside.Under, outside.Under) {
		t.Errorf("on a disk: got %+v, want %+v", inside, outside)
	}
}

// hung returns a folder of a file system that never answers.
func hung(t *testing.T) string {
	t.Helper()
	device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("needs /dev/fuse: %v", err)
	}
	folder := t.TempDir()
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", device.Fd())
	if err := unix.Mount("hung", folder, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		_ = device.Close()
		t.Skipf("needs root, to mount a FUSE file system: %v", err)
	}
	t.Cleanup(func() {
		_ = device.Close() // ends what waits for it
		_ = unix.Unmount(folder, unix.MNT_DETACH)
	})
	return folder
}

// A client whose paths hang delays no window, and takes no more than its share of the looks.
func TestHungPaths(t *testing.T) {
	folder := hung(t)
	p := ofThisMachine(t)
	for i := range 3 * maxRunning {
		start := time.Now()
		p.Path(&window.Window{Kind: window.ModelLoad, Path: folder + "/model", Client: "attacker"})
		if took := time.Since(start); took > 50*pathTime {
			t.Errorf("window %d: took %v, want %v", i, took, pathTime)
		}
	}
	if n := p.running.Taken(); n != p.running.Each() {
		t.Errorf("%d looks hang, want %d", n, p.running.Each())
	}
	path := filepath.Join(t.TempDir(), "model")
	if err := os.WriteFile(path, make([]byte, mib), 0o600); err != nil {
		t.Fatal(err)
	}
	var seen window.Seen
	for range 10 { // a busy machine may need more than the time for one
		if seen = p.Path(&window.Window{Kind: window.ModelLoad, Path: path, Client: "victim"}); seen.Size > 0 {
			break
		}
	}
	if seen.Size != mib {
		t.Errorf("another client's file: got %+v, want %d bytes", seen, mib)
	}
}

// The number of tasks is bounded.
func TestTasksAreBounded(t *testing.T) {
	p := ofThisMachine(t)
	for range maxRunning {
		if err := p.running.Take(""); err != nil {
			t.Fatal(err)
		}
	}
	seen := p.Path(&window.Window{Kind: window.ModelLoad, Path: "/"})
	if seen.Size != 0 || p.running.Taken() != maxRunning {
		t.Errorf("got %+v, %d tasks, want nothing, %d", seen, p.running.Taken(), maxRunning)
	}
	for range maxRunning {
		p.running.Release("")
	}
	for i := range 10 * maxScans {
		p.WatchReaders(&window.Window{ID: strconv.Itoa(i), Kind: window.ModelLoad})
		p.scans.last = nil // as after a second
	}
	if n := len(p.scans.open); n > maxScans {
		t.Errorf("%d looks at all processes", n)
	}
	p.Stop()
	if p.Path(&window.Window{Kind: window.ModelLoad, Path: "/etc/passwd"}); p.running.Taken() != 0 {
		t.Errorf("%d looks after the end", p.running.Taken())
	}
}

// A file of a lower layer of a real overlay is not the same as one of the writable layer, and of no overlay.
func TestLayers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting an overlay needs root")
	}
	p := ofThisMachine(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil { // an overlay on an overlay is not possible
		t.Skipf("cannot mount tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, folder := range []string{"low", "lower", "up", "work", "rw", "ro"} {
		if err := os.Mkdir(at(folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"low/image", "low/changed", "up/changed", "up/own", "plain"} {
		if err := os.WriteFile(at(file), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for mounted, options := range map[string]string{
		"rw": "lowerdir=" + at("low") + ",upperdir=" + at("up") + ",workdir=" + at("work"),
		"ro": "lowerdir=" + at("lower") + ":" + at("low"),
	} {
		if err := unix.Mount("overlay", at(mounted), "overlay", 0, options); err != nil {
			t.Skipf("cannot mount an overlay: %v", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(at(mounted), unix.MNT_DETACH) })
	}
	for path, want := range map[string]bool{
		"rw/image": true, "rw/changed": false, "rw/own": false, "ro/image": true, "plain": false,
	} {
		if got := p.inspect(at(path), 0, true).Layer; got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}

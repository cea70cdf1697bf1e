package monitor

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/disk"
	"github.com/stallspan/stallspan/internal/source/pagecache"
	"github.com/stallspan/stallspan/internal/window"
)

const mib = 1 << 20

// coldFile is a file on a disk of which nothing is in memory. The test is skipped where the kernel does not tell that.
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
		t.Skipf("%+v, %v: the folder for temporary files is in memory, or this kernel does not tell of its page cache", held, err)
	}
	return path
}

func TestThere(t *testing.T) {
	m := watching(t, Config{})
	folder := t.TempDir()
	for name, want := range map[string]bool{folder: true, os.Args[0]: filepath.IsAbs(os.Args[0]), folder + "/none": false, ".": false, "": false} {
		if got := m.There(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
	for end := time.Now().Add(5 * time.Second); m.looks.Load() != 0; time.Sleep(time.Millisecond) { // it ends after its answer
		if time.Now().After(end) {
			t.Fatalf("%d looks are still under way", m.looks.Load())
		}
	}
}

// A file in memory is seen as one, and a recording tells of it.
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
	m := watching(t, Config{})
	seen := m.lookAt(path, 0, true)
	if m.disks == nil || window.InMemory != disk.Memory {
		t.Fatalf("%q is not %q, or no disks are looked at", window.InMemory, disk.Memory)
	}
	if under, err := m.disks.Under(path); err != nil || under.Mount.Type != "tmpfs" {
		t.Skipf("/dev/shm is no tmpfs: %+v, %v", under, err)
	}
	if seen.Device != window.InMemory || len(seen.Under) > 0 {
		t.Errorf("%+v", seen)
	}
	if again := seenBefore(seenNow(&seen)); !reflect.DeepEqual(again, seen) {
		t.Errorf("%+v, and of a recording %+v", seen, again)
	}
}

// A load of a cold file, and of the same file when it is warm, say so, and say it again when they are replayed. A machine that
// is short of memory takes pages back at any moment, and a busy one is late to look at who reads, so each has a few tries.
func TestLoads(t *testing.T) {
	const size = 16 * mib
	path := coldFile(t, size)
	p := newTape(t)
	m := p.ofThisProcess()
	under, err := m.disks.Under(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		hit        float64
		prepare    func() error
	}{
		{"cold", "none of its 16 MiB", 0, func() error { return forget(path) }},
		{"warm", "all of its 16 MiB", 1, func() error { _, err := os.ReadFile(path); return err }},
	} {
		var problems []string
		for try := 0; try == 0 || len(problems) > 0 && try < 4; try++ {
			problems = nil
			if err := c.prepare(); err != nil {
				t.Fatal(err)
			}
			r := loaded(t, m, path)
			cold := c.hit == 0
			if r.Load.Size != size || !r.Load.HasHit || r.Load.Hit != c.hit || r.Load.Estimated {
				problems = append(problems, fmt.Sprintf("%+v", r.Load))
			}
			if !slices.Equal(r.Seen.Under, under.Disks) {
				problems = append(problems, fmt.Sprintf("on %v, want %v", r.Seen.Under, under.Disks))
			}
			if !strings.Contains(r.Finding, c.want) {
				problems = append(problems, r.Finding)
			}
			own := slices.ContainsFunc(r.Load.Readers, func(x window.Reader) bool { return x.PID == os.Getpid() && x.Own && x.Name != "" })
			if len(under.Disks) > 0 && own != cold {
				problems = append(problems, fmt.Sprintf("read by %+v", r.Load.Readers))
			}
			if len(under.Disks) > 0 && cold && (!slices.Equal(r.From, under.Disks) || !r.Disks[0].Under || r.Disks[0].ReadCeiling == 0) {
				problems = append(problems, fmt.Sprintf("from %v, %+v", r.From, r.Disks))
			}
		}
		if len(problems) > 0 {
			t.Errorf("%s: %q", c.name, problems)
		}
	}
	m.Leave("job")
	m.Stop()
	if len(m.scans.open) != 0 || m.looks.Load() != 0 {
		t.Errorf("%d loads are still looked at, and %d paths", len(m.scans.open), m.looks.Load())
	}
	p.replaysTheSame()
}

// loaded is the report of a load in which this process reads a file.
func loaded(t *testing.T, m *Monitor, path string) *window.Report {
	t.Helper()
	id, err := m.Begin(window.Window{Kind: window.ModelLoad, Model: "m", Path: path, PID: os.Getpid(), Job: "job"}, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	<-m.scans.open[id].done // what a load reads before all processes were looked at is not told
	if _, err := os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	for range 12 { // longer than a second, in which processes are looked at once
		time.Sleep(100 * time.Millisecond)
		m.Tick()
	}
	r, err := m.End(id, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func forget(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(pagecache.Forget(file), file.Close())
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
	m, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Stop()
	if seen := m.lookAt("/mnt/link", cmd.Process.Pid, true); seen.Size != 5 || seen.Cached != 5 || !seen.HasCached || len(seen.Under) > 0 {
		t.Errorf("on the container's tmpfs: %+v", seen)
	}
	if seen := m.lookAt("/mnt/link", os.Getpid(), true); seen.Size != 0 {
		t.Errorf("as we see it: %+v", seen)
	}
	inside, outside := m.lookAt(path, cmd.Process.Pid, true), m.lookAt(path, 0, true)
	if inside.Size != mib || !slices.Equal(inside.Under, outside.Under) {
		t.Errorf("on a disk: %+v, from here %+v", inside, outside)
	}
}

// Paths that take for ever do not hold up those who begin windows, nor pile up.
func TestLooksAreBounded(t *testing.T) {
	m, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Stop()
	m.looks.Store(mostLooks)
	if seen := m.look(&window.Window{Kind: window.ModelLoad, Path: "/"}); seen.Size != 0 || m.looks.Load() != mostLooks {
		t.Errorf("%+v, %d looks", seen, m.looks.Load())
	}
	m.looks.Store(0)
	for range 10 * mostScans {
		m.watchReaders(&window.Window{ID: NewID(), Kind: window.ModelLoad})
		m.scans.last = nil // as after a second
	}
	if n := len(m.scans.open); n > mostScans {
		t.Errorf("%d looks at all processes", n)
	}
	m.errands.stop()
	if m.look(&window.Window{Kind: window.ModelLoad, Path: "/etc/passwd"}); m.looks.Load() != 0 {
		t.Errorf("%d looks after the end", m.looks.Load())
	}
}

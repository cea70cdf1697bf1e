package monitor

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/source/cgroup"
	"github.com/stallspan/stallspan/internal/window"
)

// loopOn returns a loop device on a file or device, without the page cache in between.
func loopOn(t *testing.T, file string) (device string) {
	t.Helper()
	out, err := exec.Command("losetup", "-f", "--show", "--direct-io=on", file).CombinedOutput()
	if err != nil {
		t.Skipf("needs root and loop devices: %v: %s", err, out)
	}
	device = strings.TrimSpace(string(out))
	t.Cleanup(func() { _ = exec.Command("losetup", "-d", device).Run() })
	return device
}

// throttle limits the reads per second of the processes in the root cgroup of blkio from a device.
func throttle(t *testing.T, device, reads string) {
	t.Helper()
	const file = "/sys/fs/cgroup/blkio/blkio.throttle.read_iops_device"
	if groups, err := os.ReadFile("/proc/self/cgroup"); err != nil || !strings.Contains(string(groups), ":blkio:/\n") {
		t.Skip("needs the root cgroup of blkio, cgroup v1")
	}
	number, err := os.ReadFile("/sys/block/" + filepath.Base(device) + "/dev")
	if err != nil {
		t.Fatal(err)
	}
	set := func(limit string) error {
		return os.WriteFile(file, []byte(strings.TrimSpace(string(number))+" "+limit), 0)
	}
	if err := set(reads); err != nil {
		t.Skipf("needs blkio.throttle: %v", err)
	}
	t.Cleanup(func() {
		if err := set("0"); err != nil {
			t.Errorf("the limit of %s stays: %v", device, err)
		}
	})
}

// readFor reads single blocks from a device for a time, past the page cache.
func readFor(t *testing.T, m *Monitor, device string, long time.Duration) {
	t.Helper()
	fd, err := unix.Open(device, unix.O_RDONLY|unix.O_DIRECT, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(page) }()
	tick := time.Now()
	for i, end := 0, tick.Add(long); time.Now().Before(end); i++ {
		if _, err := unix.Pread(fd, page, int64(i%4096)*4096); err != nil {
			t.Fatal(err)
		}
		if time.Since(tick) >= 100*time.Millisecond {
			tick = time.Now()
			m.Tick()
		}
	}
}

// ownCgroup moves this process into a cgroup of its own for the rest of the test, so that the pressure of other
// programs, such as other tests, is not its own.
func ownCgroup(t *testing.T) (group string) {
	t.Helper()
	point := ""
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(root + "/io.pressure"); err == nil {
			point = root
		}
	}
	before, err := cgroup.ScopeOf("", os.Getpid())
	if point == "" || err != nil {
		t.Skipf("needs cgroup v2 with PSI: %v", err)
	}
	group = "/stallspan-stack-test-" + strconv.Itoa(os.Getpid())
	enter := func(group string) error {
		return os.WriteFile(filepath.Join(point, group, "cgroup.procs"), []byte("0"), 0)
	}
	if err := os.Mkdir(point+group, 0o700); err != nil {
		t.Skipf("needs root to create a cgroup: %v", err)
	}
	t.Cleanup(func() {
		if err := errors.Join(enter(before), os.Remove(point+group)); err != nil {
			t.Errorf("the cgroup %s stays: %v", group, err)
		}
	})
	if err := enter(group); err != nil {
		t.Fatal(err)
	}
	return group
}

// A limit on the lower of two loop devices is named, although the operations of that device and of the disk take next
// to nothing; and the same when it is replayed.
func TestLimitInAStack(t *testing.T) {
	image := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, make([]byte, 32*mib), 0o600); err != nil {
		t.Fatal(err)
	}
	lower := loopOn(t, image)
	upper := loopOn(t, lower)
	throttle(t, lower, "200")
	p := newTape(t)
	m := p.inCgroup(ownCgroup(t), true)
	readFor(t, m, upper, 300*time.Millisecond)
	id, err := m.Windows.Begin(window.Window{Kind: window.Epoch, PID: os.Getpid(), Job: "job"}, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	readFor(t, m, upper, 2*time.Second)
	r, err := m.Windows.End(id, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	text := explain.Finding(r)
	slow := r.SlowDevice
	if slow == nil || slow.Limit == nil || slow.Limit.Device != filepath.Base(lower) || slow.Limit.Reads != 200 {
		t.Fatalf("got %+v, want the limit of %s: %s", slow, lower, text)
	}
	want := "reads from " + slow.Name + " are limited to 200 operations/s by blkio.throttle of cgroup /"
	if remedy := explain.Remedy(r); !strings.Contains(text, want) || strings.Contains(remedy, "workers") {
		t.Errorf("got %q and %q, want %q and no advice of more workers", text, remedy, want)
	}
	m.Jobs.Unfollow("job")
	m.Stop()
	p.replaysTheSame()
}

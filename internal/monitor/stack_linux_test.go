package monitor

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
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

// startReader starts a program that reads single blocks from a device, past the page cache, until the test ends. It
// runs in a cgroup of its own: what this process and other tests spend and wait for is not its own.
func startReader(t *testing.T, device string) (pid int, group string) {
	t.Helper()
	point := ""
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(root + "/io.pressure"); err == nil {
			point = root
		}
	}
	if point == "" {
		t.Skip("needs cgroup v2 with PSI")
	}
	group = "/stallspan-stack-test-" + strconv.Itoa(os.Getpid())
	if err := os.Mkdir(point+group, 0o700); err != nil {
		t.Skipf("needs root to create a cgroup: %v", err)
	}
	t.Cleanup(func() {
		if err := os.Remove(point + group); err != nil {
			t.Errorf("the cgroup %s stays: %v", group, err)
		}
	})
	dir, err := os.Open(point + group)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dir.Close() }()
	reader := exec.Command("dd", "if="+device, "of=/dev/null", "bs=4096", "iflag=direct", "status=none")
	reader.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	if err := reader.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = reader.Process.Kill()
		_ = reader.Wait()
	})
	return reader.Process.Pid, group
}

// tickFor samples ten times a second for a time.
func tickFor(m *Monitor, long time.Duration) {
	for end := time.Now().Add(long); time.Now().Before(end); m.Tick() {
		time.Sleep(100 * time.Millisecond)
	}
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
	reader, group := startReader(t, upper)
	m := p.follows(reader, group)
	tickFor(m, 300*time.Millisecond)
	id, err := m.Windows.Begin(window.Window{Kind: window.Epoch, PID: reader, Job: "job"}, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	tickFor(m, 2*time.Second)
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

package pressure

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/internal/fixture"
	"github.com/stallspan/stallspan/internal/sample"
)

func TestScopeOf(t *testing.T) {
	hybrid := fixture.Root(t, "pressure_hybrid")
	fixture.Write(t, hybrid, "proc/5/cgroup", []byte("0::/job\n"))
	if scope, err := ScopeOf(hybrid, 5); err != nil || scope != "/job" {
		t.Errorf("%q, %v", scope, err)
	}
	if _, err := ScopeOf(hybrid, 77); err == nil || !strings.Contains(err.Error(), "mount one") {
		t.Errorf("a process in cgroup v1 alone: %v", err)
	}
	if _, err := ScopeOf(hybrid, 99); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such process: %v", err)
	}
}

func TestMountpoint(t *testing.T) {
	for name, want := range map[string]string{
		"pressure_v2":     "/sys/fs/cgroup", // and not the mount that shows one service only
		"pressure_hybrid": "/sys/fs/cgroup/unified",
	} {
		root := fixture.Root(t, name)
		if got, err := Mountpoint(root); err != nil || got != filepath.Join(root, want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// In a container with the host at /hostfs, our own list of mounts shows the host's tree below /hostfs.
func TestMountpointInAContainer(t *testing.T) {
	root := t.TempDir()
	fixture.Write(t, root, "sys/fs/cgroup/cgroup.procs", nil)
	fixture.Write(t, root, "proc/self/mountinfo", []byte(
		"30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n"+
			"90 24 0:26 / "+root+"/deeper/cgroup rw - cgroup2 cgroup rw\n"))
	if got, err := Mountpoint(root); err != nil || got != root+"/deeper/cgroup" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestNoMountpoint(t *testing.T) {
	root := t.TempDir()
	fixture.Write(t, root, "proc/self/mountinfo", []byte("27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"))
	if _, err := Mountpoint(root); err == nil || !strings.Contains(err.Error(), "mount -t cgroup2") {
		t.Errorf("error %v", err)
	}
}

// A real cgroup: its pressure is read while it lives, and told gone when it is removed.
func TestRealCgroup(t *testing.T) {
	point, err := Mountpoint("")
	if err != nil {
		t.Skipf("needs cgroup v2: %v", err)
	}
	scope := "/stallspan-pressure-test-" + strconv.Itoa(os.Getpid())
	dir := filepath.Join(point, scope)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("needs root, to make a cgroup: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	source := New("")
	if err := source.Add(scope); err != nil {
		t.Skipf("needs PSI: %v", err)
	}

	child := exec.Command("cat") // waits for the end of its input
	input, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(child.Process.Pid)
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(pid), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := ScopeOf("", child.Process.Pid); err != nil || got != scope {
		t.Errorf("ScopeOf: %q, %v, want %q", got, err, scope)
	}
	var s sample.Sample
	if err := source.Read(&s); err != nil || len(s.Pressures) != 6 {
		t.Errorf("%v, %d pressures", err, len(s.Pressures))
	}

	_ = input.Close()
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	s.Reset()
	err = source.Read(&s)
	if err == nil || strings.Count(err.Error(), "is gone") != 1 || len(s.Pressures) != 3 {
		t.Errorf("after its end: %v, %d pressures", err, len(s.Pressures))
	}
}

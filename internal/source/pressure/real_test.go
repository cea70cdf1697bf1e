package pressure

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/cgroup"
)

// The pressure of a real cgroup is read until the cgroup is removed.
func TestRealCgroup(t *testing.T) {
	point, err := cgroup.Mountpoint("")
	if err != nil {
		t.Skipf("needs cgroup v2: %v", err)
	}
	scope := "/stallspan-pressure-test-" + strconv.Itoa(os.Getpid())
	dir := filepath.Join(point, scope)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("needs root to create a cgroup: %v", err)
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
	if got, err := cgroup.ScopeOf("", child.Process.Pid); err != nil || got != scope {
		t.Errorf("ScopeOf: got %q, %v; want %q", got, err, scope)
	}
	var s sample.Sample
	if err := source.Read(&s); err != nil || len(s.Pressures) != 6 {
		t.Errorf("got %d pressures, %v; want both scopes", len(s.Pressures), err)
	}

	_ = input.Close()
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	s.Reset()
	if err := source.Read(&s); err != nil || len(s.Pressures) != 3 {
		t.Errorf("after its removal: got %d pressures, error %v; want those of the host", len(s.Pressures), err)
	}
}

package process

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

// The limits of a job are those of a process that runs, are read again after a while, and stay when none runs.
func TestLimits(t *testing.T) {
	tree := tree{t, t.TempDir()}
	fixture.Write(t, tree.root, "proc/self/mountinfo", []byte("30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"))
	fixture.Write(t, tree.root, "sys/dev/block/x", nil)
	if err := os.Symlink("../../devices/sda", filepath.Join(tree.root, "sys/dev/block/8:0")); err != nil {
		t.Fatal(err)
	}
	limit := func(text string) { fixture.Write(t, tree.root, "sys/fs/cgroup/a/io.max", []byte(text)) }
	limit("8:0 rbps=1000 wbps=max riops=max wiops=max\n")
	tree.put(100, 1, 5, 'S', counts{}, counts{})
	tree.put(101, 100, 6, 'S', counts{}, counts{})
	tree.children(100, 101)
	tree.children(101)
	tree.write(100, "cgroup", "0::/other\n")
	tree.write(101, "cgroup", "0::/a\n")
	s := New(tree.root)
	t.Cleanup(s.Close)
	if err := s.Add("job", 100, Options{}); err != nil {
		t.Fatal(err)
	}
	got := func(want uint64) {
		t.Helper()
		var found uint64
		for _, l := range read(t, s).Jobs[0].Limits {
			found += l.ReadBytes
		}
		if found != want {
			t.Errorf("got a limit of %d bytes/s, want %d", found, want)
		}
	}
	again := func() { s.jobs[0].limitsAt -= limitsInterval }
	got(0)
	tree.write(100, "cgroup", "0::/a\n")
	got(0)
	s.jobs[0].limitsAt -= limitsSoon // of a young job
	got(1000)
	s.jobs[0].begun -= limitsYoung
	limit("8:0 rbps=2000 wbps=max riops=max wiops=max\n")
	got(1000)
	s.jobs[0].limitsAt -= limitsSoon
	edge := &sample.Sample{Edge: true}
	if err := s.Read(edge); err != nil || edge.Jobs[0].Limits[0].ReadBytes != 2000 {
		t.Errorf("at an edge: got %+v, %v; want 2000 bytes/s", edge.Jobs[0].Limits, err)
	}
	tree.end(101)
	tree.end(100)
	again()
	got(2000)
}

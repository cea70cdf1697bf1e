package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stallspan/stallspan/internal/source/cgroup"
)

// A child in a cgroup of its own: what escapes from the tree is still a member, and the CPU time is the cgroup's.
func TestRealCgroup(t *testing.T) {
	point, err := cgroup.Mountpoint("")
	if err != nil {
		t.Skipf("needs cgroup v2: %v", err)
	}
	scope := "/stallspan-process-test-" + strconv.Itoa(os.Getpid())
	dir := filepath.Join(point, scope)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("needs root, to make a cgroup: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(filepath.Join(dir, "below")); _ = os.Remove(dir) })
	folder, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	shell := startShell(t, &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(folder.Fd())})
	source := New("")
	defer source.Close()
	if err := source.Add("sh", shell.Process.Pid, Options{Cgroup: scope, OwnScope: true}); err != nil {
		t.Fatal(err)
	}
	moved, hasMoved := fifo(t, "moved")
	wait, goOn := fifo(t, "wait")
	shell.do(
		fmt.Sprintf("mkdir %s/below; (sh -c 'echo $$ >%s/below/cgroup.procs; read x <%s; read x <%s' >/dev/null &)", dir, dir,
			moved, wait),
	)
	hasMoved()
	job := lookedAt(t, source)
	between(t, "processes", uint64(job.Processes), 2, 2)
	if !job.OwnScope || job.Scope != scope {
		t.Errorf("job %+v", job)
	}
	shell.do("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")
	goOn()
	shell.exit()
	for job.Processes > 0 {
		job = read(t, source).Jobs[0]
	}
	text, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
	if err != nil {
		t.Fatal(err)
	}
	usage, ok := parseUsage(text)
	if job = read(t, source).Jobs[0]; !ok || job.CPUTime <= 0 || job.CPUTime > usage.all || job.SystemTime > usage.system {
		t.Errorf("CPU time %v, the cgroup has %+v", job.CPUTime, usage)
	}
}

package follow_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/cgroup"
	"github.com/stallspan/stallspan/test/fixture"
)

// newGroup makes a cgroup, and removes it with the test.
func newGroup(t *testing.T, path string) {
	t.Helper()
	point, err := cgroup.Mountpoint("")
	if err != nil {
		t.Skipf("needs cgroup v2: %v", err)
	}
	dir := filepath.Join(point, path)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("needs root, to make a cgroup: %v", err)
	}
	t.Cleanup(func() { removeGroup(t, path) })
}

// removeGroup removes a cgroup once its processes are gone.
func removeGroup(t *testing.T, path string) {
	t.Helper()
	point, _ := cgroup.Mountpoint("")
	var err error
	for range 500 {
		if err = os.Remove(filepath.Join(point, path)); err == nil || errors.Is(err, os.ErrNotExist) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error(err)
}

// enter puts a process into a cgroup.
func enter(t *testing.T, path string, pid int) {
	t.Helper()
	point, _ := cgroup.Mountpoint("")
	if err := os.WriteFile(filepath.Join(point, path, "cgroup.procs"), fmt.Append(nil, pid), 0o644); err != nil {
		t.Skipf("needs root, to move a process: %v", err)
	}
}

// groupJob is the job that a cgroup is.
func groupJob(t *testing.T, path string) string {
	t.Helper()
	point, _ := cgroup.Mountpoint("")
	info, err := os.Stat(filepath.Join(point, path))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("cgroup ", info.Sys().(*syscall.Stat_t).Ino)
}

// rowOf returns what is counted of a job on a GPU; "" for its own time.
func rowOf(m *monitor.Monitor, job, gpu string) sample.GPUTime {
	rows, _ := m.JobTimes()
	i := slices.IndexFunc(rows, func(r sample.GPUTime) bool { return r.Job == job && r.GPU == gpu })
	if i < 0 {
		return sample.GPUTime{}
	}
	return rows[i]
}

// until waits for a condition for a minute.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 1200 {
		if ok() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("waited for a minute: %s", what)
}

// Each cgroup that a pattern matches is one job, with all its processes, also one that is made later. It ends with its
// processes.
func TestCgroupsThatMatch(t *testing.T) {
	t.Parallel()
	top := fmt.Sprintf("/stallspan-matched-%d", os.Getpid())
	newGroup(t, top)
	newGroup(t, top+"/job1")
	newGroup(t, top+"/job1/inner")
	newGroup(t, top+"/empty")
	first, endFirst := fixture.Sleeper(t)
	second, endSecond := fixture.Sleeper(t)
	enter(t, top+"/job1", first)
	enter(t, top+"/job1/inner", second)
	m := watching(t, monitor.Config{Cgroups: []string{top + "/*", top + "/*/*"}})
	job1 := groupJob(t, top+"/job1")
	until(t, "job1 is followed", func() bool { return rowOf(m, job1, "").Sum() > time.Second })
	if now := m.Collect(); len(now.Jobs.Jobs) != 1 || now.Jobs.Jobs[0].Processes != 2 {
		t.Errorf("got the jobs %+v, want one with 2 processes", now.Jobs.Jobs)
	}
	_, names := m.JobTimes()
	if len(names) != 1 || names[0].ID != job1 || names[0].Name != "job1" || names[0].PID != first {
		t.Errorf("got the names %+v, want job1 with its first process", names)
	}
	for _, name := range names {
		for _, a := range name.Attributes {
			if a.Key == "process.executable.name" {
				t.Errorf("got %+v, want nothing that is of one process alone", a)
			}
		}
	}

	newGroup(t, top+"/job2")
	job2 := groupJob(t, top+"/job2")
	other, _ := fixture.Sleeper(t)
	enter(t, top+"/job2", other)
	until(t, "a cgroup that was made later is followed", func() bool { return rowOf(m, job2, "").Sum() > 0 })

	endFirst()
	endSecond()
	time.Sleep(200 * time.Millisecond) // one round of readings, and one of the ledger
	removeGroup(t, top+"/job1/inner")
	removeGroup(t, top+"/job1")
	ended := rowOf(m, job1, "")
	until(t, "job1 is unfollowed", func() bool {
		return !rowOf(m, job1, "").Held && len(m.Collect().Jobs.Jobs) == 1
	})
	if got := rowOf(m, job1, ""); got.Sum()-ended.Sum() > 500*time.Millisecond {
		t.Errorf("after its end: got %v more, want none", got.Sum()-ended.Sum())
	}

	// Another cgroup with that name is another job.
	newGroup(t, top+"/job1")
	third, _ := fixture.Sleeper(t)
	enter(t, top+"/job1", third)
	again := groupJob(t, top+"/job1")
	until(t, "a cgroup that was made again is followed", func() bool { return rowOf(m, again, "").Sum() > 0 })
	_, names = m.JobTimes()
	same := map[string]int{}
	for _, n := range names {
		same[fmt.Sprint(n.Name, n.PID, n.Attributes)]++
	}
	if len(same) != 3 { // /metrics has no other labels
		t.Errorf("got %d different labels of %+v, want 3", len(same), names)
	}
	if again == job1 {
		t.Errorf("got %q twice, want another job", again)
	}
	for source, failure := range m.Failures() {
		if source == "jobs" || source == "pressure" || source == "process" {
			t.Errorf("%s: got %d failures, want none: %v", source, failure.Count, failure.Last)
		}
	}
}

// The time of a GPU counts once if a process holds it in a cgroup that is followed: for the cgroup. Windows of its
// processes change nothing. A process elsewhere is a job of its own.
func TestGPUInACgroupCountsOnce(t *testing.T) {
	t.Parallel()
	top := fmt.Sprintf("/stallspan-held-%d", os.Getpid())
	newGroup(t, top)
	newGroup(t, top+"/job")
	inside, _ := fixture.Sleeper(t)
	outside, _ := fixture.Sleeper(t)
	enter(t, top+"/job", inside)
	m := watching(t, monitor.Config{
		Accelerator: accelerators{inside, outside}, Jobs: true, Cgroups: []string{top + "/**"},
	})
	job, alone := groupJob(t, top+"/job"), m.Jobs.JobOf(outside)
	until(t, "both are followed", func() bool {
		return rowOf(m, job, "GPU-0").Allocated > time.Second && rowOf(m, alone, "GPU-1").Allocated > time.Second
	})
	if err := m.Jobs.FollowFor("", m.Jobs.JobOf(inside), inside); err != nil { // a window begins
		t.Fatal(err)
	}
	before := rowOf(m, job, "GPU-0")
	until(t, "two more seconds", func() bool {
		return rowOf(m, job, "GPU-0").Until.Mono-before.Until.Mono > 2*time.Second
	})
	rows, names := m.JobTimes()
	for _, r := range rows {
		switch {
		case r.GPU == "GPU-0" && r.Job == job:
			if grown, want := r.Sum()-before.Sum(), r.Until.Mono-before.Until.Mono; grown != want || r.Shared {
				t.Errorf("got %v more of %v (shared: %v), want all of it", grown, want, r.Shared)
			}
		case r.Job == m.Jobs.JobOf(inside) || r.Job == job:
			t.Errorf("got %+v, want only the row of the cgroup on GPU-0", r)
		}
	}
	got := map[string]int{}
	for _, n := range names {
		if n.ID == job || n.PID == inside || n.PID == outside { // not other programs of this machine that use CUDA
			got[n.ID] = n.PID
		}
	}
	if want := map[string]int{job: inside, alone: outside}; !maps.Equal(got, want) {
		t.Errorf("got the jobs and processes %v, want %v", got, want)
	}
}

// A process that moves into a cgroup that matches is no job of its own any more.
func TestHolderMovesIntoACgroup(t *testing.T) {
	t.Parallel()
	top := fmt.Sprintf("/stallspan-moved-%d", os.Getpid())
	newGroup(t, top)
	newGroup(t, top+"/job")
	pid, _ := fixture.Sleeper(t)
	m := watching(t, monitor.Config{Accelerator: accelerators{pid}, Jobs: true, Cgroups: []string{top + "/job"}})
	own, job := m.Jobs.JobOf(pid), groupJob(t, top+"/job")
	until(t, "it is followed", func() bool { return rowOf(m, own, "GPU-0").Allocated > time.Second })
	enter(t, top+"/job", pid)
	until(t, "its cgroup is followed", func() bool { return rowOf(m, job, "GPU-0").Allocated > time.Second })
	rows, _ := m.JobTimes()
	var sum time.Duration
	from, to := rows[0].Began.Mono, time.Duration(0)
	for _, r := range rows {
		if r.GPU == "GPU-0" {
			sum, from, to = sum+r.Sum(), min(from, r.Began.Mono), max(to, r.Until.Mono)
		}
	}
	if sum != to-from {
		t.Errorf("got %v in %v, want all time once", sum, to-from)
	}
	followed := map[string]bool{}
	for _, j := range m.Collect().Jobs.Jobs {
		followed[j.ID] = true
	}
	if !followed[job] || followed[own] {
		t.Errorf("got the jobs %v, want %s and not %s", followed, job, own)
	}
}

// More cgroups than there are places for are one problem. Those that are followed stay.
func TestCgroupsAreBounded(t *testing.T) {
	t.Parallel()
	top := fmt.Sprintf("/stallspan-many-%d", os.Getpid())
	newGroup(t, top)
	for i := range 35 {
		group := fmt.Sprintf("%s/g%02d", top, i)
		newGroup(t, group)
		pid, _ := fixture.Sleeper(t)
		enter(t, group, pid)
	}
	m := watching(t, monitor.Config{Cgroups: []string{top + "/*"}})
	until(t, "32 are followed", func() bool { return len(m.Collect().Jobs.Jobs) == 32 })
	until(t, "a problem is reported", func() bool {
		failure := m.Failures()["jobs"]
		return failure.Last != nil && strings.HasPrefix(failure.Last.Error(), "sampling.cgroups: more than 32 cgroups match")
	})
	time.Sleep(2 * time.Second)
	if n := len(m.Collect().Jobs.Jobs); n != 32 {
		t.Errorf("got %d jobs, want 32", n)
	}
}

func TestBadPatternOfCgroups(t *testing.T) {
	_, err := monitor.New(monitor.Config{Cgroups: []string{"/a", "/b/["}})
	if err == nil || !strings.HasPrefix(err.Error(), `cgroups[1]: "/b/[" is no pattern of cgroups`) {
		t.Errorf("got %v, want an error of the second pattern", err)
	}
}

package process

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

const ms = time.Millisecond

func TestTree(t *testing.T) {
	tree := tree{t, fixture.Root(t, "process_training")}
	source := New(tree.root)
	t.Cleanup(source.Close)
	if err := source.Add("train", 100, Options{Cgroup: "/slice"}); err != nil {
		t.Fatal(err)
	}
	got := read(t, source)
	want := []sample.Process{ // what each has done since it was born; the zombie is no more
		{PID: 100, Job: "train", CPUTime: 3000 * ms, ReadBytes: 4096, WriteBytes: 512, HasIO: true,
			Started: 4000 * time.Second},
		{PID: 101, Job: "train", CPUTime: 500 * ms, ReadBytes: 65536, HasIO: true, Started: 4500 * time.Second},
		{PID: 103, Job: "train", CPUTime: 70 * ms, HasIO: true, Started: 4700 * time.Second},
	}
	if !reflect.DeepEqual(got.Processes, want) {
		t.Errorf("processes %+v", got.Processes)
	}
	// Nothing yet since it was added.
	job := sample.Job{ID: "train", Scope: "/slice", HasIO: true, Processes: 3, LeaderPIDs: []int{100}}
	if len(got.Jobs[0].Mounts) != 3 {
		t.Errorf("a new job's mounts %+v", got.Jobs[0].Mounts)
	}
	got.Jobs[0].Mounts = nil
	if !reflect.DeepEqual(got.Jobs, []sample.Job{job}) {
		t.Errorf("job %+v", got.Jobs)
	}

	tree.put(101, 100, 450000, 'R', counts{60, 1000, 70000, 80000, 10}, counts{})
	tree.put(104, 103, 500001, 'R', counts{3, 10, 100, 200, 1}, counts{}) // born since
	tree.put(105, 103, 499999, 'R', counts{3, 10, 100, 200, 1}, counts{}) // was there, and is found only now
	tree.children(103, 104, 105)
	source.lookNow()
	job.CPUTime, job.ReadBytes, job.ReadChars, job.WriteBytes, job.Processes = 130*ms, 4464+100, 10000+200, 10+1, 5
	job.Faults = 100 + 10
	got = read(t, source)
	got.Jobs[0].Mounts = nil
	if !reflect.DeepEqual(got.Jobs[0], job) {
		t.Errorf("job %+v\nwant %+v", got.Jobs[0], job)
	}
}

func TestFallbackWithoutChildrenFiles(t *testing.T) {
	root := fixture.Root(t, "process_training")
	for _, pid := range []string{"100", "101", "102", "103"} {
		if err := os.RemoveAll(filepath.Join(root, "proc", pid, "task")); err != nil {
			t.Fatal(err)
		}
	}
	source := New(root)
	t.Cleanup(source.Close)
	if err := source.Add("train", 100, Options{}); err != nil {
		t.Fatal(err)
	}
	if got := read(t, source); got.Jobs[0].Processes != 3 || len(got.Processes) != 3 {
		t.Errorf("got %+v", got)
	}
}

func TestOwnScope(t *testing.T) {
	root := fixture.Root(t, "process_training")
	source := New(root)
	t.Cleanup(source.Close)
	if err := source.Add("train", 100, Options{Cgroup: "/job", OwnScope: true}); err != nil {
		t.Fatal(err)
	}
	fixture.Write(t, root, "sys/fs/cgroup/job/cpu.stat", []byte("usage_usec 7123456\n"))
	got := read(t, source)
	if job := got.Jobs[0]; job.CPUTime != 123456*time.Microsecond || job.Processes != 3 || !job.OwnScope ||
		job.Scope != "/job" {
		t.Errorf("job %+v", job)
	}
	if err := os.RemoveAll(filepath.Join(root, "sys/fs/cgroup/job")); err != nil {
		t.Fatal(err)
	}
	source.Close()
	source.lookNow()
	if job := read(t, source).Jobs[0]; job.CPUTime != 123456*time.Microsecond { // it stays when the cgroup is gone
		t.Errorf("job %+v", job)
	}
}

// A cgroup that is read from another pid namespace lists its processes as 0: they are found through /proc.
func TestHiddenProcesses(t *testing.T) {
	root := fixture.Root(t, "process_training")
	for _, folder := range []string{"job", "job/workers", "job/workers/deeper"} {
		fixture.Write(t, root, "sys/fs/cgroup/"+folder+"/cgroup.procs", []byte("0\n0\n"))
	}
	source := New(root)
	t.Cleanup(source.Close)
	if err := source.Add("train", 100, Options{Cgroup: "/job", OwnScope: true}); err != nil {
		t.Fatal(err)
	}
	fixture.Write(t, root, "sys/fs/cgroup/job/cpu.stat", []byte("usage_usec 7123456\n"))
	job := read(t, source).Jobs[0]
	if job.Processes != 3 || job.CPUTime != 123456*time.Microsecond {
		t.Errorf("job %+v", job)
	}
}

// What a wrapper starts right after it was added is seen with the next reading, and what a process starts later, at the
// next look.
func TestChildrenAreFoundSoon(t *testing.T) {
	tree := tree{t, fixture.Root(t, "process_training")}
	source := New(tree.root)
	t.Cleanup(source.Close)
	if err := source.Add("train", 100, Options{}); err != nil {
		t.Fatal(err)
	}
	tree.put(104, 103, 500001, 'R', counts{3, 10, 100, 200, 1}, counts{})
	tree.children(103, 104)
	if got := read(t, source).Jobs[0]; got.Processes != 4 {
		t.Errorf("at once: %+v", got)
	}
	j := source.jobs[0]
	j.begun -= startPeriod
	read(t, source)
	tree.put(103, 101, 470000, 'S', counts{8, 0, 0, 0, 0}, counts{}) // it does something, and no more until the look
	tree.put(105, 103, 500002, 'R', counts{}, counts{})
	tree.children(103, 104, 105)
	if got := read(t, source).Jobs[0]; got.Processes != 4 {
		t.Errorf("before a look: %+v", got)
	}
	j.scanned -= scanInterval + 150*time.Millisecond // the next look comes late, on a machine that is busy
	if got := read(t, source).Jobs[0]; got.Processes != 5 {
		t.Errorf("after it: %+v", got)
	}
}

func TestAddErrors(t *testing.T) {
	root := fixture.Root(t, "process_training")
	fixture.Write(t, root, "proc/7/stat", []byte("7 (garbage"))
	source := New(root)
	t.Cleanup(source.Close)
	for _, test := range []struct {
		pid  int
		opts Options
		want string
	}{
		{999, Options{}, "check that process 999 runs"},
		{-1, Options{}, "check that process -1 runs"},
		{7, Options{}, "does not have the format of Linux"},
		{100, Options{Cgroup: "/none", OwnScope: true}, "check that cgroup /none exists"},
		{100, Options{Cgroup: "", OwnScope: true}, "leading /"},
	} {
		err := source.Add("x", test.pid, test.opts)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v, want one line with %q", test, err, test.want)
		}
	}
	if got := read(t, source); len(got.Jobs) != 0 {
		t.Errorf("jobs %+v", got.Jobs)
	}
	for i := range MaxJobs {
		if err := source.Add(fmt.Sprint(i), 100, Options{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"5", "another"} {
		if err := source.Add(id, 100, Options{}); err == nil {
			t.Errorf("job %s was added twice, or beyond the limit", id)
		}
	}
	source.Remove("5")
	source.Remove("never added")
	if err := source.Add("5", 100, Options{}); err != nil {
		t.Error(err)
	}
}

// More processes than a job may have.
func TestBounds(t *testing.T) {
	tree := tree{t, fixture.Root(t, "process_training")}
	const many = maxMembers + 10
	var list strings.Builder
	for pid := 1000; pid < 1000+many; pid++ {
		tree.put(pid, 1, 500000, 'S', counts{}, counts{})
		fmt.Fprintln(&list, pid)
	}
	fixture.Write(t, tree.root, "sys/fs/cgroup/job/cgroup.procs", []byte(list.String()))
	if err := os.RemoveAll(filepath.Join(tree.root, "sys/fs/cgroup/job/workers")); err != nil {
		t.Fatal(err)
	}
	source := New(tree.root)
	t.Cleanup(source.Close)
	source.found = findings{1e9, 1} // as if there had been time to find all
	if err := source.Add("big", 1000, Options{Cgroup: "/job", OwnScope: true}); err != nil {
		t.Fatal(err)
	}
	var got sample.Sample
	if err := source.Read(&got); err == nil || !strings.Contains(err.Error(), "10 are not counted") {
		t.Errorf("error %v", err)
	}
	if got.Jobs[0].Processes != maxMembers || !got.Jobs[0].HasIO {
		t.Errorf("job %+v", got.Jobs[0])
	}
	// Another process gets the ID of the last one.
	tree.put(1000+maxMembers-1, 1, 600000, 'S', counts{100, 100, 100, 100, 100}, counts{})
	got.Reset()
	got.Edge, source.jobs[0].readAt = true, 0 // as if it had not been read for long
	source.jobs[0].scanned = sample.Now().Mono
	_ = source.Read(&got)
	if got.Jobs[0].Processes != maxMembers-1 || got.Jobs[0].ReadBytes != 0 {
		t.Errorf("job %+v", got.Jobs[0])
	}
}

func TestOddFiles(t *testing.T) {
	tree := tree{t, fixture.Root(t, "process_training")}
	tree.children(103, 104, 105, 106, 0)
	tree.children(100, 101, 103) // a circle
	tree.children(101, 100)
	tree.put(104, 103, 500001, 'R', counts{}, counts{})
	tree.write(104, "io", "rchar: x\n")
	tree.put(105, 103, 500001, 'R', counts{}, counts{})
	if err := os.Remove(filepath.Join(tree.root, "proc/105/io")); err != nil {
		t.Fatal(err)
	}
	tree.write(106, "stat", "106 (x) R\n")
	source := New(tree.root)
	t.Cleanup(source.Close)
	if err := source.Add("train", 100, Options{}); err != nil {
		t.Fatal(err)
	}
	var got sample.Sample
	err := source.Read(&got)
	for _, want := range []string{"104/io does not have", "needs CONFIG_TASK_IO_ACCOUNTING", "106/stat does not have"} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want one line with %q", err, want)
		}
	}
	if got.Jobs[0].HasIO || got.Jobs[0].Processes != 5 {
		t.Errorf("job %+v", got.Jobs[0])
	}
}

func TestAddAndRemoveWhileReading(t *testing.T) {
	source := New(fixture.Root(t, "process_training"))
	t.Cleanup(source.Close)
	var users sync.WaitGroup
	for _, id := range []string{"a", "b"} {
		users.Go(func() {
			for range 20 {
				if err := source.Add(id, 100, Options{}); err != nil {
					t.Error(err)
				}
				source.Remove(id)
			}
		})
	}
	for range 50 {
		read(t, source)
	}
	users.Wait()
	if len(source.procs) != 0 {
		t.Errorf("got %d processes after the end, want none", len(source.procs))
	}
}

// A reading allocates no more than the paths of the files.
func TestLittleIsAllocated(t *testing.T) {
	source := New(fixture.Root(t, "process_training"))
	t.Cleanup(source.Close)
	if err := source.Add("train", 100, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := source.Add("own", 100, Options{Cgroup: "/job", OwnScope: true}); err != nil {
		t.Fatal(err)
	}
	var s sample.Sample
	tick := func() {
		s.Reset()
		for _, j := range source.jobs {
			j.scanned = sample.Now().Mono // no look in between
			j.begun = j.scanned - startPeriod
		}
		if err := source.Read(&s); err != nil {
			t.Fatal(err)
		}
	}
	tick()
	if n := testing.AllocsPerRun(100, tick); n > float64(8*len(source.procs)) {
		t.Errorf("%v allocations a reading of %d processes", n, len(source.procs))
	}
}

package identity

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/stallspan/stallspan/internal/identity/locate"
	"github.com/stallspan/stallspan/test/fixture"
)

// machine is a tree of /proc with users.
func machine(t testing.TB) string {
	root := t.TempDir()
	fixture.Write(t, root, "etc/passwd", []byte("root:x:0:0::/root:/bin/sh\n# none\nada:x:1000:1000::/home/ada:/bin/sh\n"+
		"twin:x:1000:1000::/:/bin/sh\n"))
	return root
}

// program adds a process.
func program(t testing.TB, root string, pid, start int, cgroup, exe string, uid int) {
	t.Helper()
	folder := fmt.Sprintf("proc/%d/", pid)
	fixture.Write(t, root, folder+"stat", fmt.Appendf(nil,
		"%d (name) S 1 1 1 0 -1 4194560 900 0 2 0 31 12 0 0 20 0 1 0 %d 227590144 3100\n", pid, start))
	fixture.Write(t, root, folder+"status", fmt.Appendf(nil,
		"Name:\tname\nTgid:\t%d\nUid:\t%d\t%[2]d\t0\t0\nNSpid:\t%[1]d\n", pid, uid))
	fixture.Write(t, root, folder+"comm", []byte("name\n"))
	fixture.Write(t, root, folder+"cgroup", []byte("0::"+cgroup+"\n"))
	if exe != "" {
		link := filepath.Join(root, folder, "exe")
		_ = os.Remove(link)
		if err := os.Symlink(exe, link); err != nil {
			t.Fatal(err)
		}
	}
}

// waitAll waits until claims have been read.
func waitAll(f *Finder) { f.asking.Wait(time.Minute) }

func has(i Identity, key, value string, claimed bool) bool {
	return slices.Contains(i.Attributes, Attribute{key, value, claimed})
}

func TestOf(t *testing.T) {
	root := machine(t)
	f := New(root, Options{})
	for i, test := range []struct {
		cgroup, exe string
		uid         int
		want        Identity
	}{
		{"/kubepods/pod" + podA + "/" + idA, "/usr/bin/python3.13", 1000, Identity{[]Attribute{
			{"container.id", idA, false}, {"k8s.pod.uid", podA, false}, {"process.executable.name", "python3.13", false},
			{"process.owner", "ada", false}}, "pod " + podA, "ada", Pod, locate.Unknown}},
		{"/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0", "/opt/my train (deleted)", 0, Identity{[]Attribute{
			{"process.executable.name", "my train", false}, {"process.owner", "root", false},
			{"slurm.job.id", "4711", false}, {"slurm.step.id", "0", false}}, "job 4711", "root", Slurm, ""}},
		{"/system.slice/docker-" + idA + ".scope", "", 1001, Identity{[]Attribute{
			{"container.id", idA, false}, {"process.executable.name", "name", true}, {"process.owner", "1001", false}},
			"container " + idA[:12], "1001", Container, locate.Unknown}},
		{"/system.slice/serve.service/libpod-payload-" + idA, "/x", 0, Identity{[]Attribute{
			{"container.id", idA, false}, {"process.executable.name", "x", false}, {"process.owner", "root", false},
			{"systemd.unit.name", "serve.service", false}}, "serve.service", "root", Container, locate.Unknown}},
		{"/user.slice/user-1000.slice/user@1000.service/app.slice/lab.service", "/x", 1000, Identity{[]Attribute{
			{"process.executable.name", "x", false}, {"process.owner", "ada", false},
			{"stallspan.systemd.user.unit", "lab.service", true}, {"systemd.unit.name", "user@1000.service", false}},
			"lab.service", "ada", Unit, "uid 1000"}},
		{"/user.slice/user-1000.slice/session-3.scope", "/x", 1000, Identity{[]Attribute{
			{"process.executable.name", "x", false}, {"process.owner", "ada", false},
			{"systemd.unit.name", "session-3.scope", false}}, "x", "ada", Process, "uid 1000"}},
		{"/", "/a\x1b[2J\u202eb", 1000, Identity{[]Attribute{
			{"process.executable.name", "a[2Jb", false}, {"process.owner", "ada", false}}, "a[2Jb", "ada", Process, "uid 1000"}},
	} {
		program(t, root, 100+i, 5, test.cgroup, test.exe, test.uid)
		if diff := cmp.Diff(test.want, f.Of(100+i)); diff != "" {
			t.Errorf("%s: -want +got\n%s", test.cgroup, diff)
		}
	}
	for _, pid := range []int{-1, 0, 7} {
		if got := f.Of(pid); got.Kind != "" || got.Attributes != nil {
			t.Errorf("process %d: got %+v, want nothing", pid, got)
		}
	}
}

// A container that a user has named is a claim, and nothing is his because of it.
func TestOfAClaimedContainer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give cgroups to users")
	}
	root := machine(t)
	fixture.Write(t, root, "proc/self/mountinfo", []byte("30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"))
	fixture.Write(t, root, "proc/self/cgroup", []byte("0::/\n"))
	fixture.Write(t, root, "sys/fs/cgroup/a/docker-"+idA+".scope/cgroup.procs", nil)
	fixture.Write(t, root, "sys/fs/cgroup/docker-"+idA+".scope/cgroup.procs", nil)
	if err := os.Chown(root+"/sys/fs/cgroup/a", 1000, 1000); err != nil {
		t.Fatal(err)
	}
	f := New(root, Options{PodResources: Off})
	defer f.Close()
	for pid, of := range map[int]struct {
		cgroup, client string
		claimed        bool
	}{
		7: {"/docker-" + idA + ".scope", "uid 1000 in container " + idA[:12], false},
		8: {"/a/docker-" + idA + ".scope", "uid 1000", true},
	} {
		program(t, root, pid, 5, of.cgroup, "/x", 1000)
		if got := f.Of(pid); !has(got, "container.id", idA, of.claimed) || got.Client != of.client {
			t.Errorf("%s: got %+v, want the container, claimed %v, of %q", of.cgroup, got, of.claimed, of.client)
		}
	}
}

// A number that another process got gets an answer of its own, and so is a process that has entered its cgroup.
func TestOfAgain(t *testing.T) {
	root := machine(t)
	f := New(root, Options{})
	program(t, root, 7, 5, "/", "/a", 0)
	if got := f.Of(7).Name; got != "a" {
		t.Fatalf("got %q, want a", got)
	}
	waitAll(f)
	f.Of(7)
	f.known[7].again = time.Now().Add(time.Hour)
	program(t, root, 7, 5, "/system.slice/b.service", "/b", 0)
	if got := f.Of(7).Name; got != "a" {
		t.Errorf("at once: got %q, want the cached a", got)
	}
	f.known[7].again = time.Now()
	if got := f.Of(7).Name; got != "b.service" {
		t.Errorf("later: got %q, want b.service", got)
	}
	program(t, root, 7, 6, "/", "/c", 0)
	if got := f.Of(7).Name; got != "c" {
		t.Errorf("another process: got %q, want c", got)
	}
	if err := os.RemoveAll(root + "/proc/7"); err != nil {
		t.Fatal(err)
	}
	if got := f.Of(7); got.Kind != "" || len(f.known) != 0 {
		t.Errorf("after its end: got %+v and %d cached, want nothing", got, len(f.known))
	}
}

// Many callers ask at once, while processes begin and end.
func TestOfIsConcurrent(t *testing.T) {
	root := machine(t)
	f := New(root, Options{})
	defer f.Close()
	const processes = 8
	for pid := 1; pid <= processes; pid++ {
		program(t, root, pid, 5, fmt.Sprintf("/kubepods/pod%s/%s", podA, idA), "/x", pid)
		fixture.Write(t, root, fmt.Sprintf("proc/%d/environ", pid), environ(fmt.Sprint("RANK=", pid)))
	}
	var callers sync.WaitGroup
	for caller := range 4 {
		callers.Go(func() {
			for i := range 200 {
				pid := 1 + (i+caller)%(processes+1)
				got := f.Of(pid, fmt.Sprint("GPU-", i%3))
				if want := map[bool]string{true: Pod, false: ""}[pid <= processes]; got.Kind != want {
					t.Errorf("process %d: got %+v, want the kind %q", pid, got, want)
				}
			}
		})
	}
	callers.Wait()
	for pid := 1; pid <= processes; pid++ {
		for end := time.Now().Add(time.Minute); !has(f.Of(pid), "nv.dl.rank", fmt.Sprint(pid), true); {
			if waitAll(f); time.Now().After(end) {
				t.Fatalf("process %d: got %+v, want its rank", pid, f.Of(pid))
			}
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	f := New(t.TempDir(), Options{})
	for i := range 3 * maxCached {
		f.keep(i, entry{again: time.Now().Add(time.Hour)}, time.Now())
	}
	if n := len(f.known); n > maxCached {
		t.Errorf("got %d cached, want at most %d", n, maxCached)
	}
}

// This process itself, as the kernel shows it.
func TestOwnProcess(t *testing.T) {
	f := New("/", Options{})
	got := f.Of(os.Getpid())
	exe, err := os.Executable()
	if err != nil {
		t.Skip("needs /proc")
	}
	found := false
	for _, a := range got.Attributes {
		found = found || a == Attribute{"process.executable.name", clean(filepath.Base(exe), maxValue), false}
	}
	if !found || got.User == "" || got.Kind == "" {
		t.Errorf("got %+v, want the program %s", got, filepath.Base(exe))
	}
}

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"a\x00b\n\x1b[1m": "ab[1m", "\xffa": "a", "a\t": "a", strings.Repeat("é", 300): strings.Repeat("é", 128),
		strings.Repeat("\xff", 4<<20): "", "a\u202eb": "ab",
	} {
		if got := clean(text, maxValue); got != want || !utf8.ValidString(got) {
			t.Errorf("%.20q: got %.20q, want %.20q", text, got, want)
		}
	}
}

// An answer that is not cached.
func BenchmarkOfAgain(b *testing.B) {
	f := New("/", Options{PodResources: Off})
	defer f.Close()
	for b.Loop() {
		f.forget(os.Getpid())
		f.Of(os.Getpid())
	}
}

func BenchmarkOf(b *testing.B) {
	f := New("/", Options{})
	for b.Loop() {
		f.Of(os.Getpid())
	}
}

// A cgroup is who all its processes are: without what is one process's alone.
func TestOfGroup(t *testing.T) {
	root := machine(t)
	f := New(root, Options{})
	defer f.Close()
	for path, want := range map[string]Identity{
		"/kubepods/pod" + podA + "/" + idA: {[]Attribute{{"container.id", idA, false}, {"k8s.pod.uid", podA, false},
			{"process.owner", "ada", false}, {"service.name", "s", true}}, "pod " + podA, "ada", Pod, locate.Unknown},
		"/jobs/train 1": {[]Attribute{{"process.owner", "ada", false}, {"service.name", "s", true}}, "train 1", "ada", Process, "uid 1000"},
	} {
		program(t, root, 7, 5, path, "/x", 1000)
		fixture.Write(t, root, "proc/7/environ", environ("RANK=1", "LOCAL_RANK=1", "OTEL_SERVICE_NAME=s"))
		f.forget(7)
		f.Of(7)
		waitAll(f)
		all := f.Of(7)
		if diff := cmp.Diff(want, all.OfGroup(path)); diff != "" {
			t.Errorf("%s: -want +got\n%s", path, diff)
		}
		if !has(f.Of(7), "nv.dl.rank", "1", true) {
			t.Errorf("%s: got %+v, want that the process keeps its rank", path, f.Of(7))
		}
	}
}

package pressure

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/cgroup"
	"github.com/stallspan/stallspan/test/fixture"
)

const µs = time.Microsecond

var v2Host = []sample.Pressure{
	{Resource: sample.IO, Some: 1557834 * µs, Full: 1454156 * µs},
	{Resource: sample.Memory, Some: 12 * µs, Full: 7 * µs},
	{Resource: sample.CPU, Some: 7436124 * µs},
}

func TestHostAndScopes(t *testing.T) {
	source := New(fixture.Root(t, "pressure_v2"))
	var got sample.Sample
	if err := source.Read(&got); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Pressures, v2Host) {
		t.Errorf("got %+v, want the three resources of the host", got.Pressures)
	}

	const train = "/system.slice/train.service"
	for range 2 {
		if err := source.Add(train); err != nil {
			t.Fatal(err)
		}
	}
	want := []sample.Pressure{
		v2Host[0], {Scope: train, Resource: sample.IO, Some: 900 * time.Millisecond, Full: 800 * time.Millisecond},
		v2Host[1], {Scope: train, Resource: sample.Memory, Some: 3 * µs, Full: 2 * µs},
		v2Host[2], {Scope: train, Resource: sample.CPU, Some: time.Millisecond},
	}
	for users := 2; users >= 0; users-- {
		got.Reset()
		got.Edge = true
		if err := source.Read(&got); err != nil {
			t.Fatal(err)
		}
		if users == 0 {
			want = v2Host
		}
		if !slices.Equal(got.Pressures, want) {
			t.Errorf("with %d users: got %+v, want the scope once", users, got.Pressures)
		}
		source.Remove(train)
	}
}

func TestHybrid(t *testing.T) {
	source := New(fixture.Root(t, "pressure_hybrid"))
	if err := source.Add("/job"); err != nil {
		t.Fatal(err)
	}
	var got sample.Sample
	err := source.Read(&got) // the kernel has I/O pressure only
	if !errors.Is(err, errNoPSI) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got error %v, want none or another", err)
	}
	want := []sample.Pressure{
		{Resource: sample.IO, Some: 10 * µs, Full: 9 * µs},
		{Scope: "/job", Resource: sample.IO, Some: 8 * µs, Full: 7 * µs},
	}
	if !slices.Equal(got.Pressures, want) {
		t.Errorf("got %+v, want I/O alone", got.Pressures)
	}
}

func TestNoPSI(t *testing.T) {
	var got sample.Sample
	source := New(t.TempDir())
	err := source.Read(&got)
	if err == nil || err.Error() != errNoPSI.Error() {
		t.Errorf("got error %v, want %v once", err, errNoPSI)
	}
	if len(got.Pressures) != 0 || got.At.Wall.IsZero() {
		t.Errorf("got %+v, want nothing", got)
	}
}

func TestAddErrors(t *testing.T) {
	root := fixture.Root(t, "pressure_v2")
	source := New(root)
	for scope, want := range map[string]string{
		"":                          "leading /",
		"relative":                  "leading /",
		"/../../etc":                "without ..",
		"/system.slice/none":        "boot with psi=1",
		"/system.slice/off.service": "boot with psi=1",
	} {
		if err := source.Add(
			scope,
		); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("Add(%q): got error %v, want one line with %q", scope, err, want)
		}
	}
	if err := source.Add("/system.slice/half.service"); err != nil {
		t.Errorf("cgroup with one readable file: got error %v, want none", err)
	}
	for i := range maxScopes {
		scope := fmt.Sprintf("/many/%d", i)
		fixture.Write(t, root, "sys/fs/cgroup"+scope+"/io.pressure", []byte("some total=1\nfull total=0\n"))
		err := source.Add(scope)
		if full := i == maxScopes-1; (err != nil) != full {
			t.Errorf("Add number %d: got error %v", i+2, err)
		}
	}
	source.Remove("/never/added")
	if err := New(t.TempDir()).Add("/x"); err == nil || !strings.Contains(err.Error(), "cgroup v2") {
		t.Errorf("without /proc: got error %v, want one", err)
	}
}

func TestFilesReplacedAndGone(t *testing.T) {
	root := fixture.Root(t, "pressure_v2")
	source := New(root)
	const half = "/system.slice/half.service"
	if err := source.Add(half); err != nil {
		t.Fatal(err)
	}
	var got sample.Sample
	const disabled = "cgroup " + half + " has its pressure disabled"
	if err := source.Read(&got); err == nil || strings.Count(err.Error(), disabled) != 1 {
		t.Errorf("a cgroup without some files: got error %v, want %q once", err, disabled)
	}
	fixture.Write(t, root, "proc/pressure/memory", []byte("some avg10=0.00 total=lots\n"))
	if err := os.RemoveAll(filepath.Join(root, "sys/fs/cgroup", half)); err != nil {
		t.Fatal(err)
	}
	got.Reset()
	got.Edge = true
	err := source.Read(&got)
	if want := "does not have the format"; err == nil || strings.Count(err.Error(), want) != 1 {
		t.Errorf("got error %v, want %q once", err, want)
	}
	if err != nil && strings.Contains(err.Error(), half) {
		t.Errorf("got error %v, want none about a cgroup that has ended", err)
	}
	if len(got.Pressures) != 2 {
		t.Errorf("got %+v, want the rest", got.Pressures)
	}
}

// Ordinary readings repeat the host's memory and CPU for up to a second, and leave out the memory of cgroups.
func TestCompleteInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := fixture.Root(t, "pressure_v2")
		source := New(root)
		if err := source.Add("/system.slice/train.service"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for n := range 20 {
			var got sample.Sample
			if err := source.Read(&got); err != nil {
				t.Fatal(err)
			}
			want := 5
			if n%10 == 0 {
				want = 6
			}
			if len(got.Pressures) != want || got.Pressures[0] != v2Host[0] || got.Pressures[len(got.Pressures)-2] != v2Host[2] {
				t.Errorf("reading %d: got %+v", n, got.Pressures)
			}
			switch n {
			case 0:
				fixture.Write(t, root, "proc/pressure/memory", []byte("nothing\n"))
			case 9:
				fixture.Write(t, root, "proc/pressure/memory",
					[]byte("some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"))
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

func TestForbidden(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root can read everything: run as another user")
	}
	root := fixture.Root(t, "pressure_v2")
	if err := os.Chmod(filepath.Join(root, "proc/pressure/io"), 0); err != nil {
		t.Fatal(err)
	}
	var got sample.Sample
	err := New(root).Read(&got)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "run as a user") || len(got.Pressures) != 2 {
		t.Errorf("got error %v, %d pressures; want one about the user", err, len(got.Pressures))
	}
}

func TestThisMachine(t *testing.T) {
	source := New("/")
	var before, after sample.Sample
	if err := source.Read(&before); err != nil {
		t.Skipf("no pressure: %v", err)
	}
	if scope, err := cgroup.ScopeOf("", os.Getpid()); err != nil {
		t.Log(err)
	} else if err := source.Add(scope); err != nil {
		t.Log(err)
	}
	if err := source.Read(&after); err != nil {
		t.Fatal(err)
	}
	for i, p := range before.Pressures {
		at := slices.IndexFunc(after.Pressures,
			func(q sample.Pressure) bool { return q.Scope == p.Scope && q.Resource == p.Resource })
		if at < 0 || after.Pressures[at].Some < p.Some || after.Pressures[at].Full < p.Full || p.Full > p.Some {
			t.Errorf("got %+v after %+v, want no decrease", after.Pressures, before.Pressures[i])
		}
	}
	if after.At.Mono <= before.At.Mono {
		t.Error("got equal stamps, want a later one")
	}
}

func TestAddAndRemoveWhileReading(t *testing.T) {
	source := New(fixture.Root(t, "pressure_v2"))
	var users sync.WaitGroup
	for _, scope := range []string{"/system.slice/train.service", "/system.slice/half.service"} {
		users.Go(func() {
			for range 50 {
				if err := source.Add(scope); err != nil {
					t.Error(err)
				}
				source.Remove(scope)
			}
		})
	}
	var got sample.Sample
	for range 50 {
		got.Reset()
		_ = source.Read(&got)
	}
	users.Wait()
	if len(source.scopes) != 0 {
		t.Errorf("got %d scopes, want 0", len(source.scopes))
	}
}

func TestReadAllocatesPaths(t *testing.T) {
	source := New(fixture.Root(t, "pressure_v2"))
	if err := source.Add("/system.slice/train.service"); err != nil {
		t.Fatal(err)
	}
	var s sample.Sample
	tick := func() {
		s.Reset()
		if err := source.Read(&s); err != nil {
			t.Fatal(err)
		}
	}
	tick()
	const files = 3 // I/O, and the CPU of the cgroup
	if n := testing.AllocsPerRun(100, tick); n > files {
		t.Errorf("got %v allocations per reading, want one for the path of each of %d files", n, files)
	}
}

func BenchmarkReadHost(b *testing.B) {
	source := New("")
	var s sample.Sample
	if err := source.Read(&s); err != nil {
		b.Skip(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Reset()
		_ = source.Read(&s)
	}
}

// Files that another program writes once do not count as a machine on which nothing waits. Where they grow later, they
// count again.
func TestFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := fixture.Root(t, "pressure_v2")
		source := New(root)
		read := func(after time.Duration) (int, error) {
			time.Sleep(after)
			var got sample.Sample
			err := source.Read(&got)
			return len(got.Pressures), err
		}
		for i, step := range []struct {
			after time.Duration
			want  int
			named bool
		}{{0, 3, false}, {stillAfter - time.Second, 3, false}, {time.Second, 0, true}, {time.Second, 0, false}} {
			if n, err := read(step.after); n != step.want || (err != nil) != step.named ||
				err != nil && !strings.Contains(err.Error(), "proc/pressure stands still") {
				t.Errorf("reading %d: got %d pressures and error %v, want %+v", i, n, err, step)
			}
		}
		fixture.Write(t, root, "proc/pressure/io", []byte("some avg10=0.00 total=1557835\nfull avg10=0.00 total=1454156\n"))
		if n, err := read(time.Second); n != 3 || err != nil {
			t.Errorf("after it has grown: got %d pressures and error %v, want 3", n, err)
		}
	})
}

// A total that a file lacks is not 0: what it has is left out, and the file named. That of the CPU may lack one.
func TestLinesThatAreMissing(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"io", "memory", "cpu"} {
		fixture.Write(t, root, "proc/pressure/"+name, []byte("some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"))
	}
	var got sample.Sample
	err := New(root).Read(&got)
	if want := []sample.Pressure{{Scope: sample.HostScope, Resource: sample.CPU, Some: 5 * µs}}; !slices.Equal(
		got.Pressures, want) {
		t.Errorf("got %+v, want %+v", got.Pressures, want)
	}
	if err == nil || strings.Count(err.Error(), "does not have the format") != 2 {
		t.Errorf("got error %v, want both files", err)
	}
}

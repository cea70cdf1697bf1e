package cgroup

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stallspan/stallspan/test/fixture"
)

const pods = "/kubepods.slice/kubepods-burstable.slice"

// container makes what a container sees that has the host's tree below root: its own cgroup is ownPath, and top is how
// the mount of the host's tree begins, by mountinfo. The container's own mount is a link here.
func container(t testing.TB, ownPath, top string) (root, ours string) {
	t.Helper()
	root, ours = t.TempDir(), filepath.Join(t.TempDir(), "cgroup")
	for _, group := range []string{ownPath, pods + "/pod1/b", pods + "/pod2/c", "/system.slice/x.service", "/init.scope"} {
		fixture.Write(t, root, "sys/fs/cgroup"+group+"/cgroup.type", []byte("domain\n"))
	}
	fixture.Write(t, root, "sys/fs/cgroup/cgroup.procs", nil)
	fixture.Write(t, root, "sys/fs/cgroup/system.slice/file", nil)
	if err := os.Symlink(root+"/sys/fs/cgroup"+ownPath, ours); err != nil {
		t.Fatal(err)
	}
	mounts(t, root, "30 24 0:26 / "+ours+" ro - cgroup2 cgroup rw\n"+
		"90 24 0:26 "+top+" "+root+"/sys/fs/cgroup ro - cgroup2 cgroup rw\n")
	return root, ours
}

func mounts(t testing.TB, root, lines string) {
	t.Helper()
	fixture.Write(t, root, "proc/self/mountinfo", []byte("27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"+lines))
}

func TestViewInContainer(t *testing.T) {
	ownPath := pods + "/pod1/a"
	root, _ := container(t, ownPath, "/../../../..")
	v := NewView(root)
	for _, again := range []string{"", " again"} {
		if got := v.Own(); got != ownPath {
			t.Errorf("our own cgroup%s: %q, want %q", again, got, ownPath)
		}
	}
	for seen, want := range map[string]string{
		"/":                                   ownPath,
		"/x/y":                                ownPath + "/x/y",
		"/..":                                 pods + "/pod1",
		"/../b":                               pods + "/pod1/b",
		"/../../pod2/c":                       pods + "/pod2/c",
		"/../../../../system.slice/x.service": "/system.slice/x.service",
		"/../../../..":                        "/",
		"/../../../../..":                     "/../../../../..", // beyond what is mounted
		"/../../../../../x":                   "/../../../../../x",
		"/../../x/../../../../../../etc":      "/../../x/../../../../../../etc",
		"/..x":                                ownPath + "/..x",
	} {
		fixture.Write(t, root, "proc/5/cgroup", []byte("3:cpu:/y\n0::"+seen+"\n"))
		got, err := v.ScopeOf(5)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", seen, got, err, want)
		}
		if once, err := ScopeOf(root, 5); err != nil || once != got {
			t.Errorf("%s: %q, %v, and then %q", seen, got, err, once)
		}
		dir, err := Dir(root, got)
		switch {
		case strings.Contains(want, "/../") != (err != nil):
			t.Errorf("%s: folder %q, %v", seen, dir, err)
		case err == nil && dir != filepath.Join(root, "sys/fs/cgroup", want):
			t.Errorf("%s: folder %q", seen, dir)
		}
	}
}

// Without the host's tree, paths stay as the kernel shows them.
func TestViewWithoutHostTree(t *testing.T) {
	for name, change := range map[string]func(root, ours string) string{
		"no host's tree": func(_, ours string) string {
			return "30 24 0:26 / " + ours + " ro - cgroup2 cgroup rw\n"
		},
		"no mount of our own": func(root, _ string) string {
			return "90 24 0:26 /../../../.. " + root + "/sys/fs/cgroup ro - cgroup2 cgroup rw\n"
		},
		"our own namespace alone": func(root, ours string) string {
			return "30 24 0:26 / " + ours + " ro - cgroup2 cgroup rw\n" +
				"90 24 0:26 / " + root + "/sys/fs/cgroup ro - cgroup2 cgroup rw\n"
		},
		"v1 alone": func(root, ours string) string {
			return "30 24 0:26 / " + ours + " ro - cgroup cgroup rw,memory\n" +
				"90 24 0:26 /../../../.. " + root + "/sys/fs/cgroup ro - cgroup cgroup rw,memory\n"
		},
		"another level than the mount says": func(root, ours string) string {
			return "30 24 0:26 / " + ours + " ro - cgroup2 cgroup rw\n" +
				"90 24 0:26 /../../.. " + root + "/sys/fs/cgroup ro - cgroup2 cgroup rw\n"
		},
		"the host's tree mounted over ours": func(root, _ string) string {
			return "30 24 0:26 / " + root + "/sys/fs/../fs/cgroup ro - cgroup2 cgroup rw\n" + // not below root
				"90 24 0:26 /../../../.. " + root + "/sys/fs/cgroup ro - cgroup2 cgroup rw\n"
		},
		"a part of another tree": func(root, ours string) string {
			return "30 24 0:26 / " + ours + " ro - cgroup2 cgroup rw\n" +
				"90 24 0:26 /../x " + root + "/sys/fs/cgroup ro - cgroup2 cgroup rw\n"
		},
		"nothing to read": func(_, _ string) string { return "x\n" },
	} {
		root, ours := container(t, pods+"/pod1/a", "/../../../..")
		mounts(t, root, change(root, ours))
		v := NewView(root)
		for _, seen := range []string{"/", "/x", "/..", "/../../pod2/c"} {
			fixture.Write(t, root, "proc/5/cgroup", []byte("0::"+seen+"\n"))
			if got, err := v.ScopeOf(5); err != nil || got != seen {
				t.Errorf("%s: %s: got %q, %v; want it unchanged", name, seen, got, err)
			}
		}
	}
}

// The list of mounts does not have the host's tree where root leads out of our own mounts, as /proc/1/root does. How
// far up the tree begins is then not known.
func TestViewThroughOtherRoot(t *testing.T) {
	ownPath := pods + "/pod1/a"
	root, ours := container(t, ownPath, "/")
	point := filepath.Join(root, ours)
	if err := os.MkdirAll(filepath.Dir(point), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(root+"/sys/fs/cgroup", point); err != nil {
		t.Fatal(err)
	}
	mounts(t, root, "30 24 0:26 / "+ours+" ro - cgroup2 cgroup rw\n")
	if got := NewView(root).Own(); got != ownPath {
		t.Errorf("got %q, want %q", got, ownPath)
	}
}

// Of two mounts below root, that of the host starts further up.
func TestTreeFurthestUp(t *testing.T) {
	ownPath := pods + "/pod1/a"
	root, ours := container(t, ownPath, "/")
	mounts(t, root, "30 24 0:26 / "+ours+" ro - cgroup2 cgroup rw\n"+
		"90 24 0:26 / "+root+"/run/own ro - cgroup2 cgroup rw\n"+
		"91 24 0:26 /../../../.. "+root+"/sys/fs/cgroup ro - cgroup2 cgroup rw\n"+
		"92 24 0:26 /../.. "+root+"/run/pods ro - cgroup2 cgroup rw\n")
	if got, err := Mountpoint(root); err != nil || got != root+"/sys/fs/cgroup" {
		t.Errorf("got %q, %v", got, err)
	}
	if got := NewView(root).Own(); got != ownPath {
		t.Errorf("got %q, want %q", got, ownPath)
	}
}

// A result is stored; a failure is stored for a minute.
func TestViewCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ownPath := pods + "/pod1/a"
		root, ours := container(t, ownPath, "/../../../..")
		good, err := os.ReadFile(root + "/proc/self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		mounts(t, root, "")
		v := NewView(root)
		expect := func(want string) {
			t.Helper()
			if got := v.Own(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		expect("")
		fixture.Write(t, root, "proc/self/mountinfo", good)
		time.Sleep(searchAgain / 2)
		expect("")
		time.Sleep(searchAgain / 2)
		expect(ownPath)
		if err := os.Remove(ours); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * searchAgain)
		expect(ownPath)
	})
}

func TestSearchIsBounded(t *testing.T) {
	top, other := t.TempDir(), t.TempDir()
	deep := strings.Repeat("/d", 40)
	if err := os.MkdirAll(top+deep, 0o755); err != nil {
		t.Fatal(err)
	}
	ours, err := os.Stat(top + deep)
	if err != nil {
		t.Fatal(err)
	}
	for _, above := range []int{40, unknown} {
		if got := search(tree{top, above}, ours); got != deep {
			t.Errorf("%d above: %q", above, got)
		}
	}
	if err := os.Chmod(top+"/d", 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(top+"/d", 0o755) })
	if got := search(tree{top, 40}, ours); got != "" && os.Geteuid() != 0 {
		t.Errorf("found beyond a folder that may not be read: %q", got)
	}
	elsewhere, err := os.Stat(other)
	if err != nil {
		t.Fatal(err)
	}
	if got := search(tree{top, unknown}, elsewhere); got != "" {
		t.Errorf("found what is not there: %q", got)
	}
}

func TestWholeMachine(t *testing.T) {
	v := NewView("")
	if v.WholeMachine("/x") || v.WholeMachine("") {
		t.Error("got the whole machine for a cgroup below the top")
	}
	name, err := os.Readlink("/proc/self/ns/cgroup")
	if err == nil && name == firstNamespace && !v.WholeMachine("/") {
		t.Error("got a part for the top cgroup, want the whole machine")
	}
	root, _ := container(t, pods+"/pod1/a", "/../../../..")
	if !isTop(root) {
		t.Error("got no top for the host's tree, want one")
	}
	fixture.Write(t, root, "sys/fs/cgroup/cgroup.type", []byte("domain\n"))
	if isTop(root) || isTop(t.TempDir()) {
		t.Error("got a top for a part of a tree, want none")
	}
}

func FuzzJoin(f *testing.F) {
	f.Add("/kubepods/pod1/a", "/../../pod2/b")
	f.Add("/a", "/..")
	f.Add("/a/b", "/../../../etc")
	f.Add("/a", "/../")
	f.Add("/a/b", "/c/../../../../etc")
	f.Add("/", "/../x")
	f.Add("", "/")
	f.Add("/a", "//x/")
	f.Fuzz(func(t *testing.T, own, seen string) {
		if own != "" && (own[0] != '/' || path.Clean(own) != own) {
			return // not what a search gives
		}
		got := Join(own, seen)
		switch {
		case got == seen:
		case path.Clean(got) != got || got[0] != '/':
			t.Errorf("got %q, want a valid path", got)
		case got != path.Join(own, seen):
			t.Errorf("%q and %q give %q, want %q", own, seen, got, path.Join(own, seen))
		}
		if ups := leadingUps(seen); ups > strings.Count(own, "/") && got != seen && len(own) > 1 {
			t.Errorf("%q leaves the tree of %q and gives %q", seen, own, got)
		}
	})
}

func leadingUps(seen string) (n int) {
	for _, part := range strings.Split(strings.TrimPrefix(seen, "/"), "/") {
		if part != ".." {
			break
		}
		n++
	}
	return n
}

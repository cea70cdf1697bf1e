package locate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Numbers of no process are of no one, and this process is its own user's.
func TestOwnersOfNumbers(t *testing.T) {
	o := NewOwners("/")
	if os.Geteuid() != 0 {
		if got := o.Client(1); got != "uid 0" {
			t.Errorf("process 1: got %q, want uid 0", got)
		}
	}
	if got := o.Client(os.Getpid()); got != "" {
		t.Errorf("this process: got %q, want none", got)
	}
	for _, pid := range []int{0, -1, maxPID + 1, maxPID} {
		if got := o.Of(pid); got.Client != Unknown || got.PID != 0 {
			t.Errorf("process %d: got %+v, want %q", pid, got, Unknown)
		}
	}
}

// fake makes the files of process 7 below a new root, with cgroup v2 and memory of cgroup v1 mounted. Each of the paths
// is a cgroup with its user, as in "cgroup/a:1000"; others may make cgroups in one of "cgroup/a:0 w".
func fake(t *testing.T, uid, spaces, cgroups string, paths ...string) *Owners {
	t.Helper()
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"+
		"31 1 0:27 / /sys/fs/memory rw - cgroup cgroup rw,memory\n")
	write("proc/self/cgroup", "0::/\n")
	write("proc/self/status", "Name:\tx\nTgid:\t5\nUid:\t0\t0\t0\t0\nNSpid:\t5\nVmSize:\t1 kB\n")
	write("proc/7/status", "Name:\tx\nTgid:\t7\nUid:\t"+uid+"\nNSpid:\t"+spaces+"\nVmSize:\t1 kB\n")
	write("proc/7/cgroup", cgroups)
	write("sys/fs/cgroup/cgroup.procs", "")
	for _, path := range paths {
		name, owner, _ := strings.Cut(path, ":")
		folder := filepath.Join(root, "sys/fs", name)
		var of int
		owner, open := strings.CutSuffix(owner, " w")
		if _, err := fmt.Sscan(owner, &of); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if open {
			if err := os.Chmod(folder, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chown(folder, of, -1); err != nil {
			t.Skipf("needs root, to give cgroups to users: %v", err)
		}
	}
	return NewOwners(root)
}

// A container is what a cgroup of root is named after. A name that a user gave is not believed.
func TestOwnersOfContainers(t *testing.T) {
	outer, inner := strings.Repeat("0123456789abcdef", 4), strings.Repeat("fedcba9876543210", 4)
	docker := "/system.slice/docker-" + outer + ".scope"
	session := "/user.slice/user-1000.slice/user@1000.service/docker-" + outer + ".scope"
	for name, c := range map[string]struct {
		uid, spaces, cgroups string
		paths                []string
		want                 string
	}{
		"root of the machine":                      {"0 0 0 0", "7", "0::/init.scope\n", nil, ""},
		"a user":                                   {"1000 1000 1000 1000", "7", "0::/a\n", nil, "uid 1000"},
		"a program with root's rights":             {"1000 0 0 0", "7", "0::/a\n", nil, ""},
		"root in a container":                      {"0 0 0 0", "7 1", "0::" + docker + "\n", []string{"cgroup" + docker + ":0"}, "uid 0 in container " + outer[:12]},
		"a user in a container":                    {"5 5 5 5", "7 1", "0::" + docker + "\n", []string{"cgroup" + docker + ":0"}, "uid 5 in container " + outer[:12]},
		"one with the machine's processes":         {"0 0 0 0", "7", "0::" + docker + "\n", []string{"cgroup" + docker + ":0"}, "uid 0 in container " + outer[:12]},
		"one of cgroup v1":                         {"0 0 0 0", "7 1", "4:memory:/docker/" + outer + "\n0::/\n", []string{"memory/docker/" + outer + ":0"}, "uid 0 in container " + outer[:12]},
		"one in another":                           {"0 0 0 0", "7 1 1", "0::" + docker + "/" + inner + "\n", []string{"cgroup" + docker + ":0", "cgroup" + docker + "/" + inner + ":0"}, "uid 0 in container " + outer[:12]},
		"a container of a user":                    {"1000 1000 1000 1000", "7 1", "0::" + session + "\n", []string{"cgroup" + session + ":1000"}, "uid 1000"},
		"a name that a user gave":                  {"1000 1000 1000 1000", "7", "0::/a/" + outer + "\n", []string{"cgroup/a/" + outer + ":1000"}, "uid 1000"},
		"a name below a container":                 {"0 0 0 0", "7 1", "0::" + docker + "/" + inner + "\n", []string{"cgroup" + docker + ":0", "cgroup" + docker + "/" + inner + ":1000"}, "uid 0 in container " + outer[:12]},
		"root's cgroup below a user's":             {"0 0 0 0", "7 1", "0::/a/" + outer + "/" + inner + "\n", []string{"cgroup/a/" + outer + ":1000", "cgroup/a/" + outer + "/" + inner + ":0"}, Unknown},
		"a user's, moved into root's":              {"1000 1000 1000 1000", "7", "0::/a/" + outer + "\n", []string{"cgroup/a:1000", "cgroup/a/" + outer + ":0"}, "uid 1000"},
		"a name that anyone may give":              {"1000 1000 1000 1000", "7", "0::/a/" + outer + "\n", []string{"cgroup/a:0 w", "cgroup/a/" + outer + ":0"}, "uid 1000"},
		"a user's name of cgroup v1":               {"1000 1000 1000 1000", "7", "4:memory:/a/" + outer + "\n0::/\n", []string{"memory/a/" + outer + ":1000"}, "uid 1000"},
		"a user's name of cgroup v2, real v1":      {"1000 1000 1000 1000", "7 1", "4:memory:/docker/" + inner + "\n0::/a/" + outer + "\n", []string{"memory/docker/" + inner + ":0", "cgroup/a/" + outer + ":1000"}, "uid 1000 in container " + inner[:12]},
		"a cgroup that is not visible":             {"0 0 0 0", "7", "0::/../docker-" + outer + ".scope\n", nil, Unknown},
		"a user's in one that is not visible":      {"1000 1000 1000 1000", "7", "0::/.." + session + "\n", nil, "uid 1000"},
		"root in a container of an unknown kind":   {"0 0 0 0", "7 1", "0::/lxc.payload.web\n", nil, Unknown},
		"a user in a container of that kind":       {"1000 1000 1000 1000", "7 1", "0::/lxc.payload.web\n", nil, "uid 1000"},
		"a process whose cgroups cannot be read":   {"0 0 0 0", "7", "", nil, Unknown},
		"a process whose user cannot be read":      {"", "7", "0::/\n", nil, Unknown},
		"a process without namespaces by the file": {"0 0 0 0", "", "0::/\n", nil, Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			if os.Geteuid() != 0 {
				t.Skip("needs root, to give cgroups to users")
			}
			if got := fake(t, c.uid, c.spaces, c.cgroups, c.paths...).Client(7); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A process is one and the same, also if another one gets its number while its files are read.
func TestOwnersOfANumberUsedAgain(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	o := fake(t, "0 0 0 0", "7", "0::/docker/"+id+"\n", "cgroup/docker/"+id+":0")
	status := o.proc + "/7/status"
	if err := errors.Join(os.Remove(status), syscall.Mkfifo(status, 0o600)); err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	go func() { got <- o.Client(7) }()
	pipe, err := os.OpenFile(status, os.O_WRONLY, 0) // waits for the reader
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(o.proc+"/7", o.proc+"/8"), os.Mkdir(o.proc+"/7", 0o755),
		os.WriteFile(o.proc+"/7/cgroup", []byte("0::/init.scope\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	_, err = pipe.WriteString("Tgid:\t7\nUid:\t0\t0\t0\t0\nNSpid:\t7\nVmSize:\t1 kB\n")
	if err := errors.Join(err, pipe.Close()); err != nil {
		t.Fatal(err)
	}
	if got, want := <-got, "uid 0 in container "+id[:12]; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The user of this program is itself where it is, and any other user in a namespace below.
func TestOwnersOfThisUser(t *testing.T) {
	o := fake(t, "1000 1000 1000 1000", "7", "0::/a\n")
	for c, want := range map[struct {
		spaces string
		euid   int
	}]string{
		{"7", 1000}: "", {"7", 0}: "uid 1000", {"7 1", 1000}: "uid 1000", {"7 1", 0}: "uid 1000",
	} {
		o.user = c.euid
		text := "Tgid:\t7\nUid:\t1000\t1000\t1000\t1000\nNSpid:\t" + c.spaces + "\n"
		if err := os.WriteFile(o.proc+"/7/status", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := o.Client(7); got != want {
			t.Errorf("user %d, NSpid %s: got %q, want %q", c.euid, c.spaces, got, want)
		}
	}
}

// A program in a container that sees the machine's processes knows the machine's root, and is itself in its container
// alone: a user of the machine with its number is another one.
func TestOwnersSeenFromAContainer(t *testing.T) {
	own, other := strings.Repeat("0123456789abcdef", 4), strings.Repeat("fedcba9876543210", 4)
	for name, c := range map[string]struct{ uid, cgroup, want string }{
		"root of the machine":            {"0", "/a", ""},
		"a user of the machine":          {"1001", "/a", "uid 1001"},
		"one with this program's number": {"1000", "/a", "uid 1000"},
		"root here":                      {"0", "/docker/" + own, ""},
		"this program's user":            {"1000", "/docker/" + own, ""},
		"another user here":              {"1001", "/docker/" + own, "uid 1001 in container " + own[:12]},
		"root in another":                {"0", "/docker/" + other, "uid 0 in container " + other[:12]},
		"its number in another":          {"1000", "/docker/" + other, "uid 1000 in container " + other[:12]},
	} {
		t.Run(name, func(t *testing.T) {
			uids := strings.TrimSpace(strings.Repeat(c.uid+" ", 4))
			o := fake(t, uids, "7", "0::"+c.cgroup+"\n", "cgroup/docker/"+own+":0", "cgroup/docker/"+other+":0")
			o.own, o.user = own[:12], 1000
			if got := o.Client(7); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Users without a number here are not distinguished.
func TestOwnersWithoutANumber(t *testing.T) {
	o := fake(t, "65534 65534 65534 65534", "7", "0::/a\n")
	if got := o.Client(7); got != "uid 65534" {
		t.Errorf("with all users: got %q, want uid 65534", got)
	}
	o.unmapped = 65534
	if got := o.Client(7); got != Unknown {
		t.Errorf("with some users: got %q, want %q", got, Unknown)
	}
}

package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// enter, in the environment, makes TestInsideNamespace the program in a container, with the host's tree below it.
const enter = "STALLSPAN_TEST_HOST"

// A container as a runtime makes it: a cgroup namespace whose root is three levels down, with a mount of its own, and
// the host's tree and /proc below another folder. A neighbour and this process are outside of it.
func TestRealNamespace(t *testing.T) {
	point, err := Mountpoint("")
	if err != nil {
		t.Skipf("needs cgroup v2: %v", err)
	}
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip("needs unshare(1)")
	}
	name := "/stallspan-view-test-" + strconv.Itoa(os.Getpid())
	self, other := name+"/pod1/a", name+"/pod2/b"
	for _, group := range []string{name, name + "/pod1", self, self + "/inner", name + "/pod2", other} {
		if err := os.Mkdir(point+group, 0o755); err != nil {
			t.Skipf("needs root, to make a cgroup: %v", err)
		}
		t.Cleanup(func() { _ = os.Remove(point + group) })
	}
	neighbour, inner := sleeper(t, point+other), sleeper(t, point+self+"/inner")

	host, own := t.TempDir(), t.TempDir()
	for _, folder := range []string{"/proc", "/sys/fs/cgroup"} {
		if err := os.MkdirAll(host+folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := `set -e; echo $$ > "$1/cgroup.procs"; shift; exec unshare -C -m sh -c '
		set -e; mount --bind "$1" "$2/sys/fs/cgroup"; mount --bind /proc "$2/proc"; mount -t cgroup2 none "$3"
		shift 3; exec "$@"' sh "$@"`
	cmd := exec.Command("sh", "-c", script, "sh", point+self, point, host, own,
		os.Args[0], "-test.run=^TestInsideNamespace$", "-test.v")
	outside, err := ScopeOf("", os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), enter+"="+host, fmt.Sprintf("%s_WANT=%d %s %d %s %d %s", enter, inner, self+"/inner",
		neighbour, other, os.Getpid(), outside))
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "unshare failed") || strings.Contains(string(out), "permission denied") {
		t.Skipf("needs the right to make namespaces and mounts: %s", out)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: TestInsideNamespace") {
		t.Errorf("got %v, want success: %s", err, out)
	}
	t.Logf("%s", out)
}

// sleeper starts a process in a cgroup. It ends with the test.
func sleeper(t *testing.T, folder string) (pid int) {
	t.Helper()
	cmd := exec.Command("cat") // waits for the end of its input
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	if err := os.WriteFile(filepath.Join(folder, "cgroup.procs"), fmt.Append(nil, cmd.Process.Pid), 0); err != nil {
		t.Skipf("needs the right to move a process: %v", err)
	}
	return cmd.Process.Pid
}

func TestInsideNamespace(t *testing.T) {
	root := os.Getenv(enter)
	if root == "" {
		t.Skip("TestRealNamespace runs it")
	}
	words := strings.Fields(os.Getenv(enter + "_WANT"))
	v := NewView(root)
	own := v.Own()
	t.Logf("our own cgroup: %s", own)
	for i := 0; i+1 < len(words); i += 2 {
		pid, err := strconv.Atoi(words[i])
		if err != nil {
			t.Fatal(err)
		}
		seen, err := seenScope(root, pid)
		got, gotErr := v.ScopeOf(pid)
		t.Logf("process %d: seen as %s, which is %s", pid, seen, got)
		if err != nil || gotErr != nil || got != words[i+1] || seen == got {
			t.Errorf("process %d: %q, %v, %v, want %q", pid, got, err, gotErr, words[i+1])
		}
		dir, err := Dir(root, got)
		if err != nil {
			t.Error(err)
		}
		procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil || !strings.Contains("\n"+string(procs), "\n"+words[i]+"\n") {
			t.Errorf("process %d is not in %s: %q, %v", pid, dir, procs, err)
		}
		if v.WholeMachine(got) != (got == "/" && isTop(root)) {
			t.Errorf("%s is the whole machine: %v", got, v.WholeMachine(got))
		}
	}
	if self, err := v.ScopeOf(os.Getpid()); err != nil || self != own || !strings.HasSuffix(own, "/pod1/a") {
		t.Errorf("ourselves: %q, %v, below %q", self, err, own)
	}
	if seen, err := ScopeOf("", os.Getpid()); err != nil || seen != "/" {
		t.Errorf("without the host's tree: %q, %v", seen, err)
	}
}

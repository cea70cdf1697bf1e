package locate

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// This machine's own /proc, and this process in it.
func TestOwnProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("needs /proc")
	}
	if os.Getpid() == 1 {
		t.Skip("this process is the first of a container, so its number is not unique")
	}
	l := New("", "", false)
	for _, w := range []Who{{PID: os.Getpid()}, {HostName: HostName(""), PID: os.Getpid()}} {
		if p, local := l.Find(w); !local || p != (Place{PID: os.Getpid()}) {
			t.Errorf("%+v: got %+v, %v, want process %d, true", w, p, local, os.Getpid())
		}
	}
	if p, local := l.Find(Who{HostName: HostName(""), PID: maxPID}); !local || p.PID != 0 {
		t.Errorf("no such process: got %+v, %v, want no process, true", p, local)
	}
	if _, local := l.Find(Who{ContainerID: awayID, PID: os.Getpid()}); local {
		t.Error("an unknown container was found, want none")
	}
}

// sleeper starts sh in new namespaces, and waits until it runs. Its number there is 1.
func sleeper(t *testing.T, flags uintptr) (pid int) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to make a pid namespace")
	}
	cmd := exec.Command("sh", "-c", "echo $$; read x")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | flags}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("needs the right to make a pid namespace: %v", err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "1\n" {
		t.Fatalf("got the process number %q, %v, want 1", line, err)
	}
	return cmd.Process.Pid
}

// A process in a pid namespace of its own is found by its number there only with its container. Here the container is a
// real cgroup with the name of one.
func TestRealPidNamespace(t *testing.T) {
	pid := sleeper(t, 0)
	l := New("", "", false)
	if p, _ := l.Find(Who{HostName: HostName(""), PID: 1}); p.PID != 0 {
		t.Errorf("its number there, alone: got %+v, want no process", p)
	}
	if p, _ := l.Find(Who{HostName: HostName(""), PID: pid}); p.PID != 0 {
		t.Errorf("its number here: got %+v, want no process", p)
	}
	id := fmt.Sprintf("%064x", 0xabcdef000000+pid)
	folder, v2 := move(t, pid, "docker-"+id+".scope")
	l = New("", "", false) // the queries above may have scanned
	for _, inner := range []int{0, 1} {
		p, local := l.Find(Who{ContainerID: id, PID: inner})
		if !local || p.PID != pid || v2 && (!strings.HasSuffix(folder, p.Cgroup) || p.Cgroup == "" || !p.Own) {
			t.Errorf("number %d in %s: got %+v, %v, want process %d", inner, folder, p, local, pid)
		}
	}
}

// move moves a process into a new cgroup below the root: of version 2, or of any hierarchy of version 1.
func move(t *testing.T, pid int, name string) (folder string, v2 bool) {
	t.Helper()
	for _, point := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory"} {
		folder := filepath.Join(point, name)
		if _, err := os.Stat(filepath.Join(point, "cgroup.procs")); err != nil || os.Mkdir(folder, 0o755) != nil {
			continue
		}
		t.Cleanup(func() {
			_ = os.WriteFile(filepath.Join(point, "cgroup.procs"), fmt.Append(nil, pid), 0)
			_ = os.Remove(folder)
		})
		if err := os.WriteFile(filepath.Join(folder, "cgroup.procs"), fmt.Append(nil, pid), 0); err != nil {
			continue
		}
		return folder, point != "/sys/fs/cgroup/memory"
	}
	t.Skip("needs the right to make a cgroup")
	return "", false
}

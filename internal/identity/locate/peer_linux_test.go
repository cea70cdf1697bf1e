package locate

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/cgroup"
)

const (
	// answering makes TestAnswering a server on the socket that it names: it prints whose a caller is.
	answering = "STALLSPAN_TEST_ANSWERING"
	// calling makes TestCalling connect to the socket that it names, and go on until its input ends.
	calling = "STALLSPAN_TEST_CALLING"
)

func TestAnswering(t *testing.T) {
	path := os.Getenv(answering)
	if path == "" {
		t.Skip("the program of another user, for TestPeersOfAnotherNamespace")
	}
	listener := listen(t, path)
	fmt.Println("ready")
	for {
		who, _ := accepted(t, listener)
		fmt.Printf("%s, process known: %v\n", who.Client, who.PID > 0)
	}
}

func TestCalling(t *testing.T) {
	path := os.Getenv(calling)
	if path == "" {
		t.Skip("the program of another user, for TestPeers")
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("connected")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	_ = conn.Close()
}

func listen(t *testing.T, path string) *net.UnixListener {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	_ = listener.SetDeadline(time.Now().Add(time.Minute))
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	return listener
}

// accepted returns whose the next caller is.
func accepted(t *testing.T, listener *net.UnixListener) (Owner, *net.UnixConn) {
	t.Helper()
	conn, err := listener.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return NewOwners("/").Peer(conn), conn
}

// open is a folder that every user may enter, with a copy of this test's program.
func open(t *testing.T) (folder, program string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to run programs as other users")
	}
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(folder, "test")
	if err := os.WriteFile(program, text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return folder, program
}

// call runs TestCalling.
func call(t *testing.T, program, path string, attributes *syscall.SysProcAttr) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(program, "-test.run", "^TestCalling$")
	cmd.Env, cmd.Dir, cmd.SysProcAttr = append(os.Environ(), calling+"="+path), "/", attributes
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
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "connected\n" {
		t.Fatalf("got %q, %v, want a connection", line, err)
	}
	return cmd
}

// Whose a caller is, by what is true of it.
func TestPeers(t *testing.T) {
	folder, program := open(t)
	path := filepath.Join(folder, "s")
	listener := listen(t, path)
	other := &syscall.Credential{Uid: 65534, Gid: 65534}
	for name, c := range map[string]struct {
		attributes syscall.SysProcAttr
		want       string
	}{
		"root":                            {syscall.SysProcAttr{}, ""},
		"a user":                          {syscall.SysProcAttr{Credential: other}, "uid 65534"},
		"root in a namespace":             {syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}, Unknown},
		"a user in a namespace of root's": {syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Credential: other}, "uid 65534"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := call(t, program, path, &c.attributes)
			if got, _ := accepted(t, listener); got.Client != c.want || got.PID != cmd.Process.Pid {
				t.Errorf("got %+v, want %q, process %d", got, c.want, cmd.Process.Pid)
			}
		})
	}
	t.Run("one that has ended", func(t *testing.T) {
		cmd := call(t, program, path, nil)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if got, _ := accepted(t, listener); got.Client != Unknown || got.PID != 0 {
			t.Errorf("got %+v, want %q", got, Unknown)
		}
	})
	t.Run("one that ends, and leaves its connection", func(t *testing.T) {
		cmd := call(t, program, path, nil)
		conn, err := listener.AcceptUnix()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		ended := unix.Siginfo{}
		if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &ended, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
			t.Fatal(err)
		}
		if got := NewOwners("/").Peer(conn); got.Client != Unknown { // its parent has not waited for it yet
			t.Errorf("got %+v, want %q", got, Unknown)
		}
	})
}

// cgroupOf makes a cgroup for a user, and returns its open folder. The user may make others in it.
func cgroupOf(t *testing.T, path string, uid int) (folder int) {
	t.Helper()
	top, err := cgroup.Mountpoint("/")
	if err != nil {
		t.Skipf("needs cgroup v2: %v", err)
	}
	path = top + path
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Skipf("needs the right to make a cgroup: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(path) })
	if err := os.Chown(path, uid, uid); err != nil {
		t.Fatal(err)
	}
	if folder, err = unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(folder) })
	return folder
}

// A caller in a container is its user there, and one that has named a cgroup like that container is its user alone.
func TestPeersInCgroups(t *testing.T) {
	folder, program := open(t)
	path := filepath.Join(folder, "s")
	listener := listen(t, path)
	id := strings.Repeat("0123456789abcdef", 4)
	own := fmt.Sprintf("/stallspan-test-%d", os.Getpid())
	cgroupOf(t, own, 65534)
	forged := cgroupOf(t, own+"/docker-"+id+".scope", 65534)
	known := cgroupOf(t, "/docker-"+id+".scope", 0)
	other := &syscall.Credential{Uid: 65534, Gid: 65534}
	for name, c := range map[string]struct {
		attributes syscall.SysProcAttr
		want       string
	}{
		"root in it":                   {syscall.SysProcAttr{CgroupFD: known}, "uid 0 in container " + id[:12]},
		"root in it, in a namespace":   {syscall.SysProcAttr{CgroupFD: known, Cloneflags: syscall.CLONE_NEWPID}, "uid 0 in container " + id[:12]},
		"a user in it":                 {syscall.SysProcAttr{CgroupFD: known, Credential: other}, "uid 65534 in container " + id[:12]},
		"a user who claims it":         {syscall.SysProcAttr{CgroupFD: forged, Credential: other}, "uid 65534"},
		"root of a user's container":   {syscall.SysProcAttr{CgroupFD: forged, Cloneflags: syscall.CLONE_NEWPID}, Unknown},
		"root in a cgroup of a user's": {syscall.SysProcAttr{CgroupFD: forged}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.attributes.UseCgroupFD = true
			cmd := call(t, program, path, &c.attributes)
			if got, _ := accepted(t, listener); got.Client != c.want || got.PID != cmd.Process.Pid {
				t.Errorf("got %+v, want %q, process %d", got, c.want, cmd.Process.Pid)
			}
		})
	}
}

// A program in a namespace of processes of its own knows those in it, and no process outside.
func TestPeersOfAnotherNamespace(t *testing.T) {
	folder, program := open(t)
	path := filepath.Join(folder, "s")
	server := exec.Command("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", program,
		"-test.run", "^TestAnswering$")
	next := answers(t, server, path)
	call(t, program, path, nil)
	next(Unknown + ", process known: false")
	call(t, program, path, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID})
	next(Unknown + ", process known: false")
	inside := exec.Command("nsenter", "--target", childOf(t, server.Process.Pid), "--pid", "--mount", program,
		"-test.run", "^TestCalling$")
	inside.Env, inside.Dir = append(os.Environ(), calling+"="+path), "/"
	in, err := inside.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := inside.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = inside.Wait() })
	next(", process known: true")
}

// answers starts TestAnswering, and returns a function that reads one of its lines.
func answers(t *testing.T, server *exec.Cmd, path string) (next func(want string)) {
	t.Helper()
	server.Env, server.Dir = append(os.Environ(), answering+"="+path), "/"
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Skipf("needs the right to make a pid namespace, or one of users: %v", err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Skipf("needs the right to make a pid namespace, or one of users: got %q", lines.Text())
	}
	return func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, want %q", lines.Text(), want)
		}
	}
}

// A program in a namespace of users, such as a container without root, does not distinguish users who are not in it.
func TestPeersOfAnotherNamespaceOfUsers(t *testing.T) {
	folder, program := open(t)
	path := filepath.Join(folder, "s")
	server := exec.Command(program, "-test.run", "^TestAnswering$")
	some := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1000}}
	server.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: some, GidMappings: some}
	next := answers(t, server, path)
	for uid, want := range map[uint32]string{65534: Unknown, 1001: Unknown, 7: "uid 7", 0: ""} {
		call(t, program, path, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}})
		next(fmt.Sprintf("%s, process known: %v", want, true))
	}
}

// childOf returns the number of the only child of a process.
func childOf(t *testing.T, pid int) string {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		if fields := strings.Fields(string(text)); err == nil && len(fields) == 1 {
			return fields[0]
		}
	}
	t.Fatal("got no child of unshare in a minute")
	return ""
}

package api

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const otherUser = 65534 // has no rights

// asOther calls do with the rights of the other user, on a thread of its own.
func asOther(t *testing.T, do func() error) {
	t.Helper()
	done := make(chan error)
	var on func()
	on = func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
		if unix.Gettid() == unix.Getpid() {
			// The first thread never ends, and all files of /proc/self would belong to the other user.
			defer runtime.UnlockOSThread()
			ended := make(chan struct{})
			go func() { defer close(ended); on() }()
			<-ended
			return
		}
		if _, _, err := unix.RawSyscall(unix.SYS_SETRESUID, otherUser, otherUser, otherUser); err != 0 {
			done <- err
			return
		}
		done <- do()
	}
	go on()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// shared is a folder that the other user may enter, below one that only root may write.
func shared(t *testing.T, mode os.FileMode) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for a second user")
	}
	dir := folder(t)
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A user who owns the folder could rename the socket away and bind another one.
func TestListenRefusesSquattedFolders(t *testing.T) {
	sticky := shared(t, 0o777|os.ModeSticky)
	for name, mode := range map[string]os.FileMode{"closed": 0o755, "open": 0o777 | os.ModeSticky} {
		dir := filepath.Join(sticky, name)
		asOther(t, func() error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, mode)) })
		if l, err := Listen(dir + "/s"); err == nil || !strings.Contains(err.Error(), "user 65534") {
			t.Errorf("%s: got %v, %v; want a refusal", name, l, err)
		}
	}
	link := filepath.Join(sticky, "link")
	asOther(t, func() error { return os.Symlink(folder(t), link) })
	if l, err := Listen(link + "/s"); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
		t.Errorf("link: got %v, %v; want a refusal", l, err)
	}
	group := filepath.Join(shared(t, 0o755), "group")
	if err := errors.Join(os.Mkdir(group, 0o700), os.Chmod(group, 0o770)); err != nil {
		t.Fatal(err)
	}
	if l, err := Listen(group + "/s"); err == nil || !strings.Contains(err.Error(), "chmod g-w") {
		t.Errorf("group: got %v, %v; want a refusal", l, err)
	}
	if l, err := Listen(sticky + "/s"); err != nil {
		t.Errorf("root's sticky folder: got %v, want no error", err)
	} else {
		_ = l.Close()
	}
}

// What programs announce goes to no server of another user, except the one that root gave the folder to.
func TestClientChecksItsServer(t *testing.T) {
	sticky, given := shared(t, 0o777|os.ModeSticky), "/run/stallspan-test-"+filepath.Base(folder(t))
	if err := errors.Join(os.Mkdir(given, 0o755), os.Chown(given, otherUser, otherUser)); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(given) }()
	for dir, trusted := range map[string]bool{sticky: false, given: true} {
		var l net.Listener
		asOther(t, func() (err error) {
			l, err = net.Listen("unix", dir+"/s")
			return err
		})
		got := make(chan string, 1)
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			text := make([]byte, 1<<10)
			n, _ := c.Read(text)
			_, _ = c.Write([]byte("HTTP/1.1 201 Created\r\nContent-Length: 25\r\n\r\n{\"id\":\"\\u001b]0;pwned\\u0007\"}"))
			_ = c.Close()
			got <- string(text[:n])
		}()
		begun, err := NewClient(dir+"/s").Begin(t.Context(), Announcement{Kind: "custom", Name: "secret"})
		if err == nil || begun.ID != "" {
			t.Errorf("%s: got the id %q, %v; want an error", dir, begun.ID, err)
		}
		if text := <-got; strings.Contains(text, "secret") != trusted {
			t.Errorf("%s: the server got %q, want trust %v", dir, text, trusted)
		}
		if want := "user 65534 listens there"; !trusted && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", dir, err, want)
		}
		_ = l.Close()
	}
}

// A pod that mounts the folder read-only can connect, and not replace the socket, whatever its user is.
func TestReadOnlyMount(t *testing.T) {
	dir, mounted := shared(t, 0o755), folder(t)
	l, err := Listen(dir + "/s")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if err := unix.Mount(dir, mounted, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("needs the right to mount: %v", err)
	}
	defer func() { _ = unix.Unmount(mounted, unix.MNT_DETACH) }()
	if err := unix.Mount("", mounted, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("unix", mounted+"/s")
	if err != nil {
		t.Fatalf("got %v, want a connection", err)
	}
	_ = c.Close()
	if err := os.Rename(mounted+"/s", mounted+"/t"); !errors.Is(err, unix.EROFS) {
		t.Errorf("rename: got %v, want %v", err, unix.EROFS)
	}
	if err := os.Remove(mounted + "/s"); !errors.Is(err, unix.EROFS) {
		t.Errorf("remove: got %v, want %v", err, unix.EROFS)
	}
}

// A user who may read the folder cannot keep a server from starting.
func TestListenInALockedFolder(t *testing.T) {
	dir := shared(t, 0o755)
	var held *os.File
	asOther(t, func() (err error) {
		if held, err = os.Open(dir); err != nil {
			return err
		}
		return syscall.Flock(int(held.Fd()), syscall.LOCK_SH)
	})
	defer func() { _ = held.Close() }()
	l, err := Listen(dir + "/s")
	if err != nil {
		t.Fatalf("got %v, want no error", err)
	}
	_ = l.Close()
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("got %v left, want nothing", left)
	}
}

// TestSocketIsNeverOpenToOthers binds with a umask of 0 and checks the file before its mode is set.
func TestSocketIsNeverOpenToOthers(t *testing.T) {
	const variable = "STALLSPAN_TEST_BIND"
	if path := os.Getenv(variable); path != "" {
		syscall.Umask(0)
		config := net.ListenConfig{Control: bornPrivate}
		l, err := config.Listen(t.Context(), "unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("got mode %v, %v; want 0600", info.Mode(), err)
		}
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), variable+"="+filepath.Join(folder(t), "s"))
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("got %v, want exit code 0\n%s", err, out)
	}
}

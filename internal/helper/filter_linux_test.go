//go:build amd64 || arm64

package helper

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/process"
)

// actConfined confines itself, and prints what each forbidden call returns. Then it does what the helper does.
func actConfined() error {
	path := os.Args[1]
	page := uintptr(os.Getpagesize())
	memory, err := unix.Mmap(-1, 0, int(page), unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	if err := confine(nil); err != nil {
		return err
	}
	got := map[string]syscall.Errno{}
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	file := uintptr(unsafe.Pointer(name))
	var zeros [256]byte
	none := uintptr(unsafe.Pointer(&zeros))
	try := func(what string, call uintptr, args ...uintptr) {
		var a [6]uintptr
		copy(a[:], args)
		_, _, got[what] = unix.Syscall6(call, a[0], a[1], a[2], a[3], a[4], a[5])
	}
	here := ^uintptr(99) // AT_FDCWD
	self := uintptr(os.Getpid())
	try("socket", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM)
	try("unix socket", unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM)
	try("connect", unix.SYS_CONNECT, socketFD, none, 16)
	try("execve", unix.SYS_EXECVE, file, none, none)
	try("execveat", unix.SYS_EXECVEAT, here, file, none, none)
	try("fork", unix.SYS_CLONE, uintptr(unix.SIGCHLD))
	try("new namespace", unix.SYS_UNSHARE, unix.CLONE_NEWUSER)
	try("ptrace", unix.SYS_PTRACE, unix.PTRACE_ATTACH, uintptr(os.Getppid()))
	try("other memory", unix.SYS_PROCESS_VM_READV, uintptr(os.Getppid()))
	try("other descriptors", unix.SYS_PIDFD_GETFD)
	for what, flags := range map[string]uintptr{
		"open to write": unix.O_WRONLY, "open for both": unix.O_RDWR, "create": unix.O_CREAT, "truncate": unix.O_TRUNC,
		"append": unix.O_APPEND, "unnamed file": unix.O_TMPFILE | unix.O_WRONLY,
	} {
		try(what, unix.SYS_OPENAT, here, file, flags, 0o600)
	}
	try("openat2", unix.SYS_OPENAT2, here, file, none, 24)
	try("open by handle", unix.SYS_OPEN_BY_HANDLE_AT, here, none)
	try("unlink", unix.SYS_UNLINKAT, here, file)
	try("rename", unix.SYS_RENAMEAT, here, file, here, file)
	try("mkdir", unix.SYS_MKDIRAT, here, file, 0o700)
	try("chmod", unix.SYS_FCHMODAT, here, file, 0o777)
	try("kill", unix.SYS_KILL, uintptr(os.Getppid()), 0)
	try("signal to others", unix.SYS_TGKILL, uintptr(os.Getppid()), uintptr(os.Getppid()), 0)
	try("bpf", unix.SYS_BPF, 0, none, 8)
	try("perf events", unix.SYS_PERF_EVENT_OPEN, none, self, 0, 0)
	try("io_uring", unix.SYS_IO_URING_SETUP, 1, none)
	try("userfaultfd", unix.SYS_USERFAULTFD)
	try("keys", unix.SYS_KEYCTL)
	try("mount", unix.SYS_MOUNT, none, none, none)
	try("set user", unix.SYS_SETUID, 0)
	try("capabilities", unix.SYS_CAPSET, none, none)
	try("limits", unix.SYS_PRLIMIT64, self, unix.RLIMIT_NOFILE, none)
	try("dumpable", unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1)
	try("another filter", unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, none)
	try("program memory", unix.SYS_MMAP, 0, page, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON,
		^uintptr(0))
	try("memory to program", unix.SYS_MPROTECT, uintptr(unsafe.Pointer(&memory[0])), page, unix.PROT_READ|unix.PROT_EXEC)
	try("ioctl", unix.SYS_IOCTL, 2, unix.TCGETS, none)
	try("send descriptors", unix.SYS_SENDMSG, socketFD, none)
	if err := work(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(got)
}

// work is what the helper does: the runtime starts threads, sleeps and collects, and files are read.
func work() error {
	var all sync.WaitGroup
	failed := make(chan error, 8)
	for range cap(failed) {
		all.Go(func() {
			runtime.LockOSThread() // a thread of its own, which ends here
			time.Sleep(time.Millisecond)
			d := process.NewDirect("/proc")
			key := process.Key{PID: os.Getpid()}
			var list [1]process.Bytes
			err := d.Bytes([]process.Key{key}, list[:])
			if err == nil && list[0].Err != 0 {
				err = list[0].Err
			}
			if err == nil {
				_, _, err = d.Files(key, 0, 8)
			}
			if err == nil {
				_, err = d.SameProgram(key, key)
			}
			if err == nil {
				_, err = d.ModelFiles(key, process.FilesWanted{Maps: true, Sockets: true, Others: true})
			}
			if errors.Is(err, syscall.ETIMEDOUT) { // on a busy machine the mappings take longer than ModelFiles waits
				err = nil
			}
			failed <- err
			_ = make([]byte, 8<<20)
			runtime.GC()
		})
	}
	all.Wait()
	for range cap(failed) {
		if err := <-failed; err != nil {
			return fmt.Errorf("under the filter: %w", err)
		}
	}
	return nil
}

// The helper can neither connect, start, trace nor write anything, and still does its work.
func TestFilter(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: to others, a process that leaves no memory behind is closed, itself included")
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("as it was"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], path)
	cmd.Env = append(os.Environ(), actAs+"=confined", "GORACE=atexit_sleep_ms=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("got %v, %s", err, out)
	}
	var got map[string]syscall.Errno
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("got %v, %s", err, out)
	}
	const tried = 39
	if len(got) != tried {
		t.Errorf("got %d calls, want %d", len(got), tried)
	}
	for what, number := range got {
		if number != unix.EPERM {
			t.Errorf("%s: got %v, want %v", what, number, unix.EPERM)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "as it was" {
		t.Errorf("the file: got %q, %v", text, err)
	}
}

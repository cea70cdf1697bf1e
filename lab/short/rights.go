//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// plainUser is the number of the plain user and of its group.
const plainUser = 65534

// A kind of rights is reached in one step, or in a second one in new namespaces.
var rights = map[string]struct {
	first  func(*syscall.SysProcAttr)
	second func(*syscall.SysProcAttr) // nil for none
	last   func() error               // in the namespaces
}{
	"root": {first: func(*syscall.SysProcAttr) {}},
	// Those of the agent's unit that Stallspan reads processes and follows threads with.
	"capabilities": {first: func(a *syscall.SysProcAttr) {
		plain(a)
		a.AmbientCaps = []uintptr{unix.CAP_DAC_READ_SEARCH, unix.CAP_SYS_PTRACE, unix.CAP_PERFMON, unix.CAP_BPF}
	}},
	"user": {first: plain},
	// As podman without root: root in namespaces of its own.
	"rootless": {first: plain, second: func(a *syscall.SysProcAttr) {
		a.Cloneflags = unix.CLONE_NEWUSER | spaces
		a.UidMappings = []syscall.SysProcIDMap{{HostID: plainUser, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{HostID: plainUser, Size: 1}}
	}, last: func() error { return errors.Join(ownProc(), confine()) }},
	// As docker run: root with fourteen capabilities, in namespaces, with a list of system calls.
	"docker": {first: func(*syscall.SysProcAttr) {}, second: func(a *syscall.SysProcAttr) { a.Cloneflags = spaces },
		last: func() error { return errors.Join(ownProc(), readOnlySys(), confine(), drop()) }},
	// As a privileged container of Kubernetes without hostPID.
	"pod": {
		first: func(*syscall.SysProcAttr) {}, second: func(a *syscall.SysProcAttr) { a.Cloneflags = spaces }, last: ownProc,
	},
}

const spaces = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

func plain(a *syscall.SysProcAttr) {
	a.Credential = &syscall.Credential{Uid: plainUser, Gid: plainUser}
}

func kinds() (all []string) {
	for kind := range rights {
		all = append(all, kind)
	}
	slices.Sort(all)
	return all
}

// become runs a program with rights: KIND PROGRAM ARGUMENT...
func become(args []string) error {
	kind, known := rights[args[0]]
	if !known {
		return fmt.Errorf("no rights are %q", args[0])
	}
	own, err := os.Executable()
	if err != nil {
		return err
	}
	line := args[1:]
	if kind.second != nil {
		line = slices.Concat([]string{own, "inside", args[0], "1"}, line)
	}
	return start(kind.first, line)
}

// inside is a step in becoming: KIND STEP PROGRAM ARGUMENT...
func inside(args []string) error {
	kind := rights[args[0]]
	own, err := os.Executable()
	if err != nil {
		return err
	}
	if args[1] == "1" {
		return start(kind.second, slices.Concat([]string{own, "inside", args[0], "2"}, args[2:]))
	}
	runtime.LockOSThread() // what a thread gives up is its own, until it runs another program
	if err := kind.last(); err != nil {
		return err
	}
	return unix.Exec(args[2], args[2:], os.Environ())
}

// start runs a line with attributes, and exits as it does.
func start(with func(*syscall.SysProcAttr), line []string) error {
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	with(cmd.SysProcAttr)
	err := cmd.Run()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		os.Exit(failed.ExitCode())
	}
	return err
}

// ownProc mounts a /proc of the PID namespace.
func ownProc() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts apart: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}

// readOnlySys has a /sys that can only be read, as containers do.
func readOnlySys() error {
	for _, at := range []string{"/sys", "/sys/fs/cgroup"} {
		if err := errors.Join(unix.Mount(at, at, "", unix.MS_BIND, ""),
			unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")); err != nil {
			return fmt.Errorf("mount %s: %w", at, err)
		}
	}
	return nil
}

// drop takes away the capabilities that docker takes away. It holds once another program runs.
func drop() error {
	keep := []uintptr{
		unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID,
		unix.CAP_SETUID, unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE, unix.CAP_NET_RAW, unix.CAP_SYS_CHROOT, unix.CAP_MKNOD,
		unix.CAP_AUDIT_WRITE, unix.CAP_SETFCAP}
	for c := range uintptr(unix.CAP_LAST_CAP + 1) {
		if slices.Contains(keep, c) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("give up capability %d: %w", c, err)
		}
	}
	return nil
}

// refused are the system calls that docker's default list refuses and that this program could make.
var refused = []uint32{unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_UNSHARE,
	unix.SYS_SETNS, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_SYSLOG, unix.SYS_QUOTACTL,
	unix.SYS_IO_URING_SETUP, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_FSOPEN, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT}

// confine installs a filter that refuses them.
func confine() error {
	filters := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // the number of the call
	for _, number := range refused {
		filters = append(filters, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)})
	}
	filters = append(filters, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(filters)), Filter: &filters[0]}
	if _, _, errno := unix.Syscall(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER,
		uintptr(unsafe.Pointer(&program))); errno != 0 {
		return fmt.Errorf("refuse system calls: %w", errno)
	}
	return nil
}

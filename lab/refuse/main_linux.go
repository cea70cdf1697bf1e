// Command refuse runs a program as root, lists its calls of bpf(2) and perf_event_open(2), and has those of one name
// fail, as with a policy or without memory:
//
//	build/refuse-run -call 'PROG_LOAD on_bio' -errno EPERM -- build/stallspan check
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// refusals are the errors that a kernel refuses such calls with.
var refusals = map[string]unix.Errno{
	"EPERM": unix.EPERM, "EACCES": unix.EACCES, "EINVAL": unix.EINVAL, "ENOMEM": unix.ENOMEM,
}

func main() {
	call := flag.String("call", "", "refuse this `call`: a line of the list")
	number := flag.String("errno", "EPERM", "with this `error`: EPERM, EACCES, EINVAL or ENOMEM")
	flag.Parse()
	if flag.NArg() == 0 || refusals[*number] == 0 {
		flag.Usage()
		os.Exit(2)
	}
	seen := map[string]int{}
	answer := func(name string) unix.Errno {
		if seen[name]++; name == *call {
			return refusals[*number]
		}
		return 0
	}
	status, err := run(context.Background(), flag.Args(), os.Environ(), os.Stdout, os.Stderr, answer)
	if err != nil {
		fmt.Fprintln(os.Stderr, "refuse:", err)
		os.Exit(1)
	}
	for name, n := range seen {
		fmt.Fprintf(os.Stderr, "%4d %s\n", n, name)
	}
	os.Exit(status)
}

// run runs a program, which gets SIGTERM when ctx ends, and asks about each call of it and of its children. A call goes
// on if the answer is 0.
func run(ctx context.Context, argv, environ []string, out, diagnostics io.Writer, answer func(call string) unix.Errno,
) (status int, err error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = environ, out, diagnostics
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	listener := -1
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // children inherit its filter; it is never unlocked, so that it serves nothing else
		if listener, err = filter(); err == nil {
			err = cmd.Start()
		}
		started <- err
	}()
	if err := <-started; err != nil {
		return 0, fmt.Errorf("start %s with a seccomp filter, as root: %w", argv[0], err)
	}
	defer func() { _ = unix.Close(listener) }()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err = <-ended:
			var exit *exec.ExitError
			if errors.As(err, &exit) || errors.Is(err, context.Canceled) {
				err = nil
			}
			return cmd.ProcessState.ExitCode(), err
		default:
		}
		ready := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if n, _ := unix.Poll(ready, 20); n > 0 {
			serve(listener, answer)
		}
	}
}

// filter has the calls of this thread answered through a listener.
func filter() (listener int, err error) {
	program, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_BPF, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_PERF_EVENT_OPEN, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
		bpf.RetConstant{Val: unix.SECCOMP_RET_USER_NOTIF},
	})
	if err != nil {
		return -1, err
	}
	f := unix.SockFprog{Len: uint16(len(program)), Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0]))}
	fd, _, number := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER,
		uintptr(unsafe.Pointer(&f)))
	if number != 0 {
		return -1, number
	}
	return int(fd), nil
}

// notification is struct seccomp_notif. Its fields have names, as the kernel wants all of them to be zero.
type notification struct {
	id            uint64
	thread, flags uint32
	call          int32
	arch          uint32
	at            uint64
	arguments     [6]uint64 // of bpf(2): command, attributes, their length
}

// serve answers one call.
func serve(listener int, answer func(call string) unix.Errno) {
	var n notification
	if control(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) != 0 {
		return // the thread has ended, or takes a signal first
	}
	response := struct { // struct seccomp_notif_resp
		id    uint64
		value int64
		error int32
		flags uint32
	}{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	if number := answer(n.name()); number != 0 {
		response.error, response.flags = -int32(number), 0
	}
	_ = control(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&response)) // as above
}

func control(fd int, request uintptr, of unsafe.Pointer) unix.Errno {
	_, _, number := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(of))
	return number
}

// command is one of bpf(2), with the place in its attributes of the descriptor, or the name, of what it is about.
type command struct {
	name             string
	descriptor, text int
}

const none = -1

// commands are listed by name; the others by number.
var commands = map[uint64]command{
	unix.BPF_MAP_CREATE: {"MAP_CREATE", none, 28}, unix.BPF_PROG_LOAD: {"PROG_LOAD", none, 48},
	unix.BPF_BTF_LOAD: {"BTF_LOAD", none, none}, unix.BPF_RAW_TRACEPOINT_OPEN: {"RAW_TRACEPOINT_OPEN", 8, none},
	unix.BPF_LINK_CREATE: {"LINK_CREATE", 0, none}, unix.BPF_ITER_CREATE: {"ITER_CREATE", 0, none},
	unix.BPF_MAP_UPDATE_ELEM: {"MAP_UPDATE_ELEM", 0, none}, unix.BPF_MAP_DELETE_ELEM: {"MAP_DELETE_ELEM", 0, none},
	unix.BPF_MAP_LOOKUP_ELEM: {"MAP_LOOKUP_ELEM", 0, none}, unix.BPF_MAP_FREEZE: {"MAP_FREEZE", 0, none},
	unix.BPF_OBJ_GET_INFO_BY_FD: {"OBJ_GET_INFO_BY_FD", 0, none},
}

// name is a call with what it is about: "LINK_CREATE on_switch".
func (n *notification) name() string {
	c, known := commands[n.arguments[0]]
	switch {
	case n.call == unix.SYS_PERF_EVENT_OPEN:
		return "perf_event_open"
	case !known:
		return fmt.Sprintf("bpf %d", n.arguments[0])
	}
	var b [64]byte // what the thread does not have stays zero
	length := int(min(n.arguments[2], uint64(len(b))))
	_, _ = unix.ProcessVMReadv(int(n.thread), []unix.Iovec{{Base: &b[0], Len: uint64(length)}},
		[]unix.RemoteIovec{{Base: uintptr(n.arguments[1]), Len: length}}, 0)
	about := ""
	if c.descriptor != none {
		about = held(n.thread, *(*uint32)(unsafe.Pointer(&b[c.descriptor])))
	} else if c.text != none {
		about = text(b[c.text:])
	}
	return strings.TrimSpace(c.name + " " + about)
}

// text is a name of the kernel, which has at most 16 bytes.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b[:16], []byte{0})
	return string(b)
}

// held is the name of the program or map that a descriptor holds, or of the program of a link.
func held(thread, fd uint32) string {
	info, _ := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", thread, fd))
	for line := range strings.Lines(string(info)) {
		var id uint32
		open, at := uintptr(unix.BPF_MAP_GET_FD_BY_ID), 24 // of the name in struct bpf_map_info
		if n, _ := fmt.Sscanf(line, "prog_id: %d", &id); n == 1 {
			open, at = unix.BPF_PROG_GET_FD_BY_ID, 64 // in struct bpf_prog_info
		} else if n, _ := fmt.Sscanf(line, "map_id: %d", &id); n != 1 {
			continue
		}
		object, _, _ := unix.Syscall(unix.SYS_BPF, open, uintptr(unsafe.Pointer(&[3]uint32{id})), 12)
		var b [128]byte
		question := struct {
			fd, length uint32
			info       *byte
		}{uint32(object), uint32(len(b)), &b[0]}
		_, _, _ = unix.Syscall(unix.SYS_BPF, unix.BPF_OBJ_GET_INFO_BY_FD, uintptr(unsafe.Pointer(&question)), 16)
		_ = unix.Close(int(object))
		return text(b[at:])
	}
	return ""
}

//go:build amd64 || arm64

package helper

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// rule says when a system call is allowed: always, or if a test of one of its arguments holds.
type rule struct {
	call     uint32
	argument int // -1 for none
	test     bpf.JumpTest
	values   []uint32 // one of them, of the lower half of the argument
}

func always(calls ...uint32) (list []rule) {
	for _, c := range calls {
		list = append(list, rule{call: c, argument: -1})
	}
	return list
}

// Flags that open files for writing, make files, or change them.
const writing = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC | unix.O_APPEND |
	unix.O_TMPFILE&^unix.O_DIRECTORY

// nameMemory is PR_SET_VMA of prctl(2), with which Go names its memory.
const nameMemory = 0x53564d41

// rules are the system calls that the helper needs: those of Go's runtime with and without cgo, those that read open
// files, and those on its socket. It can open files for reading only, and start threads but no processes.
func rules(pid int) []rule {
	list := always(
		// the runtime: memory, threads, time, signals
		unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_MREMAP, unix.SYS_MINCORE, unix.SYS_BRK,
		unix.SYS_FUTEX, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP,
		unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_RESTART_SYSCALL, unix.SYS_MEMBARRIER, unix.SYS_RSEQ,
		unix.SYS_SET_ROBUST_LIST, unix.SYS_GETRANDOM, unix.SYS_GETPID, unix.SYS_GETTID,
		unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
		unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
		unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2,
		// files, and the socket
		unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_WRITE, unix.SYS_CLOSE, unix.SYS_FSTAT, statAt, unix.SYS_STATX,
		unix.SYS_LSEEK,
		unix.SYS_READLINKAT, unix.SYS_GETDENTS64, unix.SYS_RECVFROM, unix.SYS_SENDTO,
	)
	return append(list,
		rule{unix.SYS_OPENAT, 2, bpf.JumpBitsNotSet, []uint32{writing}},
		rule{unix.SYS_FCNTL, 1, bpf.JumpEqual, []uint32{unix.F_GETFL, unix.F_GETFD, unix.F_SETFD}},
		rule{unix.SYS_MMAP, 2, bpf.JumpBitsNotSet, []uint32{unix.PROT_EXEC}},
		rule{unix.SYS_MPROTECT, 2, bpf.JumpBitsNotSet, []uint32{unix.PROT_EXEC}},
		rule{unix.SYS_CLONE, 0, bpf.JumpBitsSet, []uint32{unix.CLONE_THREAD}},
		rule{unix.SYS_TGKILL, 0, bpf.JumpEqual, []uint32{uint32(pid)}},
		rule{unix.SYS_PRCTL, 0, bpf.JumpEqual, []uint32{nameMemory}},
	)
}

// Offsets in struct seccomp_data (linux/seccomp.h).
const (
	callOffset     = 0
	archOffset     = 4
	argumentOffset = 16
	argumentBytes  = 8
)

// filter compiles rules. A call that they do not allow fails with EPERM, except clone3: the C library then uses clone,
// whose flags the filter can read. A call of another architecture ends the process.
func filter(rules []rule) ([]bpf.RawInstruction, error) {
	refuse := func(number unix.Errno) bpf.Instruction {
		return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(number)}
	}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: archOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
		bpf.LoadAbsolute{Off: callOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_CLONE3, SkipFalse: 1},
		refuse(unix.ENOSYS),
	}
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	for _, r := range merged(rules) {
		var then []bpf.Instruction
		if r.argument >= 0 {
			then = append(then, bpf.LoadAbsolute{Off: argumentOffset + argumentBytes*uint32(r.argument), Size: 4})
			for i, v := range r.values {
				then = append(then, bpf.JumpIf{Cond: r.test, Val: v, SkipTrue: uint8(len(r.values) - i)})
			}
			then = append(then, refuse(unix.EPERM))
		}
		then = append(then, allow)
		program = append(append(program, bpf.JumpIf{Cond: bpf.JumpEqual, Val: r.call, SkipFalse: uint8(len(then))}), then...)
	}
	return bpf.Assemble(append(program, refuse(unix.EPERM)))
}

// merged makes one rule of those with the same test of the same argument: the first rule of a call decides.
func merged(rules []rule) (all []rule) {
	for _, r := range rules {
		i := slices.IndexFunc(all, func(x rule) bool {
			return x.call == r.call && x.argument == r.argument && x.test == r.test
		})
		if i < 0 {
			all = append(all, r)
			continue
		}
		all[i].values = slices.Concat(all[i].values, r.values)
	}
	return all
}

// install puts a filter on all threads of this process, and on those that they start.
func install(program []bpf.RawInstruction) error {
	list := make([]unix.SockFilter, len(program))
	for i, in := range program {
		list[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	runtime.LockOSThread() // no_new_privs is of this thread, and the filter takes it to the others
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	fprog := unix.SockFprog{Len: uint16(len(list)), Filter: &list[0]}
	thread, _, err := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&fprog)))
	if err != 0 {
		return fmt.Errorf("install a seccomp filter, the kernel needs CONFIG_SECCOMP_FILTER, and a unit with "+
			"SystemCallFilter= has to allow seccomp: %w", err)
	}
	if thread != 0 {
		return fmt.Errorf("install the seccomp filter on thread %d", thread)
	}
	return nil
}

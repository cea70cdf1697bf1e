package sample

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// The table has the numbers of this machine's kernel.
func TestCallOf(t *testing.T) {
	for number, want := range map[int]Call{
		NoSyscall: NoCall, UnknownSyscall: OtherCall, unix.SYS_READ: FileCall, unix.SYS_PWRITEV2: WriteCall,
		unix.SYS_RECVMSG: ReceiveCall, unix.SYS_SENDTO: SendCall, unix.SYS_CONNECT: ConnectCall,
		unix.SYS_ACCEPT4: AcceptCall, unix.SYS_FUTEX: LockCall, unix.SYS_FLOCK: FlockCall,
		unix.SYS_CLOCK_NANOSLEEP: SleepCall, unix.SYS_RT_SIGTIMEDWAIT: SignalCall, unix.SYS_WAITID: ChildCall,
		unix.SYS_PPOLL: PollCall, unix.SYS_PSELECT6: SelectCall, unix.SYS_EPOLL_PWAIT: EpollCall,
		unix.SYS_EPOLL_PWAIT2: EpollCall, unix.SYS_IOCTL: IoctlCall, unix.SYS_IO_URING_ENTER: AIOCall,
		unix.SYS_SCHED_YIELD: YieldCall, unix.SYS_CLONE3: ForkCall, unix.SYS_EXECVE: ExecCall, unix.SYS_MADVISE: MapCall,
		unix.SYS_MUNMAP: UnmapCall, unix.SYS_GETPID: OtherCall,
	} {
		if got := CallOf(runtime.GOARCH, number); got != want {
			t.Errorf("system call %d: got %d, want %d", number, got, want)
		}
	}
}

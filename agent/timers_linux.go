package agent

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// timerSlack is by how much the kernel may delay the agent's timers, as PR_SET_TIMERSLACK of prctl(2) has it. With the
// usual 50 us, Go's monitor thread wakes every 70 us for as long as anything runs, which took an eighth of the agent's
// CPU time. The readings have a timerfd, which is not delayed.
const timerSlack = time.Millisecond

// timersVariable is set while the agent starts itself again. It keeps it from doing that twice where the system forgets
// the slack.
const timersVariable = "STALLSPAN_TIMERS"

// fineTimers reports whether the agent is to start itself again.
func fineTimers() (slack int, fine bool) {
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	return slack, err == nil && slack < int(timerSlack) && os.Getenv(timersVariable) == ""
}

// coarsenTimers starts the agent again with coarse timers. The slack belongs to a thread, and is inherited from the
// thread that creates it. Go's monitor thread is there before any code of ours. It returns if the timers are coarse
// already, and where that is not possible.
func coarsenTimers() {
	slack, fine := fineTimers()
	_ = os.Unsetenv(timersVariable)
	if !fine {
		return
	}
	path, err := os.Executable()
	if err != nil {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0, 0, 0) != nil {
		return
	}
	_ = syscall.Exec(path, os.Args, append(os.Environ(), timersVariable+"=coarse"))
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0)
}

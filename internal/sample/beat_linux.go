package sample

import (
	"context"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// kernelBeat is a timer of the kernel (timerfd_create(2)) that Go's poller waits for. Go rounds its own timers down to
// a millisecond when it goes to sleep and wakes twice for each; a program that does little else pays more for that than
// for its readings.
type kernelBeat struct {
	file     *os.File
	ctx      context.Context
	interval time.Duration
	wake     func() bool // takes back that the end of ctx ends the waiting

	spare beat // Go's, after the kernel's has failed
	beats [8]byte
}

// The clock and the flags of timerfd_create(2).
const (
	clockMonotonic = 1
	nonblock       = syscall.O_NONBLOCK
	closeOnExec    = syscall.O_CLOEXEC
)

// newBeat begins to beat. Where the kernel has no such timer left, Go's do.
func newBeat(ctx context.Context, interval time.Duration) beat {
	fd, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, clockMonotonic, nonblock|closeOnExec, 0)
	if errno != 0 {
		return newTicking(ctx, interval)
	}
	every := syscall.NsecToTimespec(interval.Nanoseconds())
	setting := struct{ interval, first syscall.Timespec }{every, every}
	_, _, errno = syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&setting)), 0, 0, 0)
	file := os.NewFile(fd, "timer")
	if errno != 0 || file == nil || file.SetReadDeadline(time.Time{}) != nil { // the last: it cannot be polled
		if file != nil {
			_ = file.Close()
		} else {
			_ = syscall.Close(int(fd))
		}
		return newTicking(ctx, interval)
	}
	b := &kernelBeat{file: file, ctx: ctx, interval: interval}
	b.wake = context.AfterFunc(ctx, func() { _ = file.SetReadDeadline(time.Unix(0, 1)) })
	return b
}

func (b *kernelBeat) wait() bool {
	if b.spare != nil {
		return b.spare.wait()
	}
	_, err := b.file.Read(b.beats[:]) // how many there were since the last time
	if err != nil && b.ctx.Err() == nil {
		b.spare = newTicking(b.ctx, b.interval)
	}
	return b.ctx.Err() == nil
}

func (b *kernelBeat) stop() {
	b.wake()
	_ = b.file.Close()
	if b.spare != nil {
		b.spare.stop()
	}
}

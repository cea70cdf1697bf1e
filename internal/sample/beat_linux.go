package sample

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func init() { newBeat = newKernelBeat }

// kernelBeat waits for a kernel timer (timerfd_create(2)) in the runtime's poller. The runtime rounds its own timers
// down to a millisecond before it sleeps and so wakes twice for each. In a mostly idle program that costs more than the
// readings.
type kernelBeat struct {
	file     *os.File
	ctx      context.Context
	interval time.Duration
	wake     func() bool // stops the context from ending the wait

	spare beat // with the runtime's timer, after the kernel's has failed
	beats [8]byte
}

// newKernelBeat falls back to the runtime's timer where the kernel gives none.
func newKernelBeat(ctx context.Context, interval time.Duration) beat {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return newTicking(ctx, interval)
	}
	file := os.NewFile(uintptr(fd), "timer")
	period := unix.NsecToTimespec(interval.Nanoseconds())
	err = unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Interval: period, Value: period}, nil)
	if err != nil || file.SetReadDeadline(time.Time{}) != nil { // the latter: the poller does not support it
		_ = file.Close()
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
	_, err := b.file.Read(b.beats[:]) // the number of beats since the last read
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

//go:build linux

package pipeline

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// noise is a running neighbour.
type noise struct {
	Noise
	fds     []int
	sizes   []int64
	begin   time.Time
	stopped atomic.Bool
	count   atomic.Int64
	threads sync.WaitGroup

	mu  sync.Mutex
	err error
}

func newNoise(q *Noise) (*noise, error) {
	n := &noise{Noise: *q, begin: time.Now()}
	if n.Record == 0 {
		n.Record = 64 << 10
	}
	n.Workers, n.Every = max(n.Workers, 1), max(n.Every, 0)
	if n.Every == 0 {
		n.Every = 16
	}
	if n.Record < 0 || n.Record%block != 0 || len(n.Files) == 0 || n.Workers > maxWorkers {
		return nil, fmt.Errorf(
			"noise of %d threads with records of %d bytes on %d files: it needs whole blocks of %d, a file, at most %d threads",
			n.Workers,
			n.Record,
			len(n.Files),
			block,
			maxWorkers,
		)
	}
	for _, path := range n.Files {
		if err := n.open(path); err != nil {
			return nil, errors.Join(err, n.close())
		}
	}
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), n.Workers+2))
	for i := range n.Workers {
		n.threads.Go(func() { n.thread(i) })
	}
	return n, nil
}

func (n *noise) open(path string) error {
	flags := unix.O_RDWR | unix.O_CLOEXEC
	if !n.Write {
		flags = unix.O_RDONLY | unix.O_CLOEXEC
	}
	if n.Reading == Direct {
		flags |= unix.O_DIRECT
	}
	fd, err := retry(func() (int, error) { return unix.Open(path, flags, 0) })
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	n.fds = append(n.fds, fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if stat.Size < int64(n.Record) {
		return fmt.Errorf("%s is smaller than a record of %d bytes", path, n.Record)
	}
	n.sizes = append(n.sizes, stat.Size)
	return nil
}

func (n *noise) thread(i int) {
	runtime.LockOSThread()
	memory, err := newSlots(n.Record, 1)
	if err == nil {
		slot := memory.take()[:n.Record]
		fillBlock(slot, n.Seed+uint64(i))
		r := rand.New(rand.NewPCG(n.Seed, uint64(i)))
		for k := 1; err == nil && !n.stopped.Load(); k++ {
			err = n.operation(r, slot, k)
		}
		err = errors.Join(err, memory.close())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.err = errors.Join(n.err, err)
}

func (n *noise) operation(r *rand.Rand, slot []byte, k int) error {
	file := r.IntN(len(n.fds))
	fd, at := n.fds[file], r.Int64N(n.sizes[file]/int64(n.Record))*int64(n.Record)
	done, err := retry(func() (int, error) {
		if n.Write {
			return unix.Pwrite(fd, slot, at)
		}
		return unix.Pread(fd, slot, at)
	})
	switch {
	case err != nil:
	case done != n.Record:
		err = fmt.Errorf("%d bytes of %d", done, n.Record)
	case n.Write && n.Reading != Direct && k%n.Every == 0:
		err = unix.Fdatasync(fd)
	case !n.Write && n.Reading != Direct:
		err = unix.Fadvise(fd, at, int64(n.Record), unix.FADV_DONTNEED)
	}
	if err != nil {
		return &os.PathError{Op: "noise on", Path: n.Files[file], Err: err}
	}
	n.count.Add(1)
	return nil
}

// stop ends the threads.
func (n *noise) stop() (NoiseTruth, error) {
	n.stopped.Store(true)
	n.threads.Wait()
	count := n.count.Load()
	return NoiseTruth{
			Operations: count,
			Bytes:      count * int64(n.Record),
			Duration:   time.Since(n.begin),
		}, errors.Join(
			n.err,
			n.close(),
		)
}

func (n *noise) close() error {
	var errs []error
	for _, fd := range n.fds {
		errs = append(errs, unix.Close(fd))
	}
	n.fds = nil
	return errors.Join(errs...)
}

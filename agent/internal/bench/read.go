package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/agent/internal/quantile"
)

// step reads in one way for some time.
type step struct {
	read    reads
	readers int
	length  int // bytes of a read
	lasts   time.Duration
	offsets func(reader int) func() int64 // the next offset of each reader; negative at the end
	late    func()                        // called when reads that were left behind have returned
}

// reads fills a buffer with what is at an offset. Several goroutines call it.
type reads func(buffer []byte, offset int64) (int, error)

var errHangs = errors.New("reads do not return")

// run reads until the step is over or ctx ends, and then waits for the reads in flight, within limits. After errHangs
// some are still in flight.
func (s *step) run(ctx context.Context) (*tally, error) {
	memory, err := unix.Mmap(-1, 0, s.readers*s.length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil { // the buffers begin at a page, as O_DIRECT requires
		return nil, fmt.Errorf("no memory to read into: %w", err)
	}
	var stop atomic.Bool
	done := make(chan *tally, s.readers)
	began := time.Now()
	for i := range s.readers {
		buffer := memory[i*s.length : (i+1)*s.length]
		go func() { done <- s.reader(i, buffer, began, &stop) }()
	}
	all := &tally{}
	timeout := time.NewTimer(s.lasts + readTimeout)
	defer timeout.Stop()
	ended := ctx.Done()
	for left := s.readers; left > 0; {
		select {
		case one := <-done:
			all.merge(one)
			left--
		case <-ended:
			stop.Store(true)
			ended = nil
			timeout.Reset(readTimeout / 2)
		case <-timeout.C:
			stop.Store(true)
			go func() { // the kernel may still write to the memory
				for range left {
					<-done
				}
				_ = unix.Munmap(memory)
				s.late()
			}()
			return all, errHangs
		}
	}
	_ = unix.Munmap(memory)
	return all, all.err
}

// A touch is slow if the median read took so much longer than the second time, and so long.
const (
	slowTouch    = 3
	minSlowTouch = 5 * time.Millisecond
)

// touch reads again what a step without the page cache has read, and returns how many times as long the median read
// took the first time. It returns 0 if that was not slow.
func (s *step) touch(ctx context.Context, first *tally, offsets func(int) func() int64) (times float64, err error) {
	s.offsets = offsets
	second, err := s.run(ctx)
	if err != nil || ctx.Err() != nil || second.times.N == 0 {
		return 0, err
	}
	before, after := first.times.Quantile(0.5), second.times.Quantile(0.5)
	if before < slowTouch*after || before < minSlowTouch.Seconds() {
		return 0, nil
	}
	return before / after, nil
}

// touched is the remark that follows from a slow touch.
const touched = "The first touch is slow: the same reads took %.1f times as long the first time as the second, both " +
	"without the page cache. So it is with a volume made from a snapshot, with a cold tier, and with a cache of a " +
	"hypervisor or server. Read all of it once before it is needed (of a cloud volume: initialize it, or restore its " +
	"snapshot fast)."

// reader reads at least once, even if it gets a CPU when the step is over.
func (s *step) reader(number int, buffer []byte, began time.Time, stop *atomic.Bool) *tally {
	t := &tally{}
	next := s.offsets(number)
	at := time.Since(began)
	for first := true; (first || at < s.lasts) && !stop.Load(); first = false {
		offset := next()
		if offset < 0 {
			break
		}
		n, err := s.read(buffer, offset)
		now := time.Since(began)
		if err != nil {
			t.err = fmt.Errorf("reading %d bytes at byte %d failed: %w", len(buffer), offset, err)
			stop.Store(true)
			break
		}
		t.took(now, now-at, s.lasts, n)
		at = now
	}
	return t
}

// from reads a file.
func from(file *os.File) reads {
	return func(buffer []byte, offset int64) (int, error) { return pread(file, buffer, offset) }
}

// pread reads a whole buffer.
func pread(file *os.File, buffer []byte, offset int64) (int, error) {
	for {
		n, err := unix.Pread(int(file.Fd()), buffer, offset)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n < len(buffer):
			return n, io.ErrUnexpectedEOF // the file has shrunk
		default:
			return n, nil
		}
	}
}

// parts is the number of equal slices of a step.
const parts = 10

// tally counts the reads of one reader in a step.
type tally struct {
	times quantile.Histogram // of reads, in seconds
	parts [parts]uint64      // reads that ended in each part of the step
	bytes uint64
	last  time.Duration // end of the last read, since the step began
	err   error
}

// took counts a read that lasted length and ended at a time since the step began.
func (t *tally) took(at, length, step time.Duration, bytes int) {
	t.times.Add(length.Seconds())
	if part := int(at * parts / step); part < parts {
		t.parts[part]++
	}
	t.bytes += uint64(bytes)
	t.last = at
}

func (t *tally) merge(other *tally) {
	t.times.Merge(&other.times)
	for i, n := range other.parts {
		t.parts[i] += n
	}
	t.bytes += other.bytes
	t.last = max(t.last, other.last)
	if t.err == nil {
		t.err = other.err
	}
}

// minReads is the minimum mean number of reads in a part. With fewer, the parts vary too much to be compared.
const minReads = 10

// rate returns reads per second: the mean of the parts without the two fastest and the two slowest. With few reads, or
// after a step that was cut short, it is all reads over the time until the last one.
func (t *tally) rate(step time.Duration) float64 {
	var within uint64
	for _, n := range t.parts {
		within += n
	}
	if t.last < step*9/10 || within < minReads*parts {
		if t.last <= 0 {
			return 0
		}
		return float64(t.times.N) / t.last.Seconds()
	}
	sorted := slices.Sorted(slices.Values(t.parts[:]))
	const cut = 2
	var middle uint64
	for _, n := range sorted[cut : parts-cut] {
		middle += n
	}
	return float64(middle) / ((parts - 2*cut) * (step.Seconds() / parts))
}

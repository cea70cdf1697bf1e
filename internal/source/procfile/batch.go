package procfile

import (
	"bytes"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// Batch reads many processes, again and again, without allocations. It is not safe for concurrent use.
type Batch[I, T any] struct {
	proc string
	pid  func(I) int
	read func(I, []byte) T
	late func(I) T

	run   *run[I, T] // that no goroutine uses; nil for none
	timer *time.Timer
}

// NewBatch returns a Batch of items, each about a process below a mounted proc, such as "/proc". It reads each with
// read, on another goroutine, with room for a small file. late makes the result of what is late or left out.
func NewBatch[I, T any](proc string, pid func(I) int, read func(I, []byte) T, late func(I) T) *Batch[I, T] {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &Batch[I, T]{proc: proc, pid: pid, read: read, late: late, timer: timer}
}

// Each reads items into results, which has the same length.
func (b *Batch[I, T]) Each(items []I, results []T) {
	for from := 0; from < len(items); {
		end := from
		for end < len(items) && May(b.proc, b.pid(items[end])) {
			end++
		}
		if end == from {
			results[from] = b.late(items[from])
			from++
			continue
		}
		from += b.some(items[from:end], results[from:end])
	}
}

// some reads items until one is late, and returns the number of results.
func (b *Batch[I, T]) some(items []I, results []T) (done int) {
	r := b.run
	if r == nil {
		r = newRun(b.read)
	}
	b.run = nil
	r.items, r.results, r.over = append(r.items[:0], items...), r.results[:0], false
	go r.body()
	ended := b.wait(r)
	r.mu.Lock()
	done = copy(results, r.results)
	if !r.over && done < len(items) {
		defer r.mu.Unlock()
		r.late = reads.leave(process{b.proc, b.pid(items[done])})
		results[done] = b.late(items[done])
		return done + 1
	}
	r.mu.Unlock()
	if !ended {
		<-r.done
	}
	for ; done < len(results); done++ { // after a panic
		results[done] = b.late(items[done])
	}
	b.run = r
	return done
}

// wait reports whether all items have been read; false if one is late.
func (b *Batch[I, T]) wait(r *run[I, T]) bool {
	defer b.timer.Stop()
	for last, same := -1, 0; same < 2 || same < looksOfRunning && isRunning(int(r.thread.Load())); same++ {
		b.timer.Reset(lookEvery)
		select {
		case <-r.done:
			return true
		case <-b.timer.C:
		}
		r.mu.Lock()
		at := len(r.results)
		r.mu.Unlock()
		if at != last {
			last, same = at, -1
		}
	}
	return false
}

// isRunning reports whether a thread of this program works, or waits for a CPU, as one that has not begun does.
func isRunning(thread int) bool {
	if thread == 0 {
		return true
	}
	var buf [512]byte
	text, err := kernfile.ReadPiece("/proc/self/task/"+strconv.Itoa(thread)+"/stat", buf[:])
	_, state, found := bytes.Cut(text, []byte(") "))
	return err == nil && found && bytes.HasPrefix(state, []byte("R"))
}

// run reads items once. After a late one it is not used again.
type run[I, T any] struct {
	read  func(I, []byte) T
	body  func() // a value, so that a goroutine needs no memory
	items []I
	buf   [4096]byte
	done  chan struct{}

	thread atomic.Int64 // that reads; 0 before it began

	mu      sync.Mutex
	results []T
	over    bool
	late    *lateRead // once its reader has left it
}

func newRun[I, T any](read func(I, []byte) T) *run[I, T] {
	r := &run[I, T]{read: read, done: make(chan struct{}, 1)}
	each := r.each
	r.body = func() {
		_ = sample.Protect(each) // counted there
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.over = true; r.late == nil {
			r.done <- struct{}{}
			return
		}
		reads.end(r.late)
	}
	return r
}

func (r *run[I, T]) each() {
	r.thread.Store(int64(syscall.Gettid())) // a call of the kernel stays on it
	defer r.thread.Store(0)
	for _, item := range r.items {
		result := r.read(item, r.buf[:])
		r.mu.Lock()
		left := r.late != nil
		if !left {
			r.results = append(r.results, result)
		}
		r.mu.Unlock()
		if left {
			return
		}
	}
}

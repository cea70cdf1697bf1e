package baseline

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

const (
	mostPending = 1024                   // observations that wait to be written
	writeEvery  = 5 * time.Second        // writes, and looks whether another program has written
	firstLook   = 500 * time.Millisecond // for how long Open waits for the file
	lastWrite   = 5 * time.Second        // for how long Save and Close wait for the file
)

// Book is the file as one program uses it. What is known is kept in memory, and one goroutine alone touches the file, for
// a moment every few seconds: whoever asks or tells never waits for a disk. It is safe for concurrent use, and a nil Book
// knows and learns nothing.
type Book struct {
	path string
	tell func(error)

	mu      sync.Mutex
	known   records       // as in the file, and what is pending
	pending []observation // not written yet
	full    bool          // some had to be left out, and that was told

	save chan chan struct{} // closed when all that was pending has been written, or could not be
	stop chan struct{}
	done chan struct{}

	closing sync.Once

	seen   os.FileInfo // of the file when it was read last; the goroutine's own
	unread string      // why it could not be read, as was told last; the goroutine's own, too
}

// Open begins to use the file at path, which need not exist. tell is called with each problem, possibly the same one
// many times, on any goroutine; it must not use the book. What is known is there when Open returns, unless the file keeps
// it waiting: then it comes later. Each Open needs its Close.
func Open(path string, tell func(error)) *Book {
	b := &Book{
		path: path, tell: tell, known: records{},
		save: make(chan chan struct{}), stop: make(chan struct{}), done: make(chan struct{}),
	}
	loaded := make(chan struct{})
	go b.own(loaded)
	wait(loaded, firstLook)
	return b
}

// wait returns when c is closed, or after a while: a file system may hang.
func wait(c <-chan struct{}, longest time.Duration) bool {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
		return false
	}
}

// Usual is how long windows with that key usually take; false where too few are known.
func (b *Book) Usual(key Key) (window.Baseline, bool) {
	if b == nil || key == "" {
		return window.Baseline{}, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.known[key]; r != nil {
		return r.Usual()
	}
	return window.Baseline{}, false
}

// Learn adds a window that ended at a moment. slow says that it took longer than it should have.
func (b *Book) Learn(key Key, took time.Duration, slow bool, at time.Time) {
	if b == nil || key == "" || took <= 0 {
		return
	}
	o := observation{key, took, slow, at}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.pending) >= mostPending {
		if !b.full {
			b.full = true
			b.tell(fmt.Errorf("%s cannot be written as fast as windows end: some are not learned from", b.path))
		}
		return
	}
	b.pending = append(b.pending, o)
	b.known.learn(o)
}

// Save waits until what was learned is in the file, or could not be written and that was told; for five seconds at most.
func (b *Book) Save() {
	if b == nil {
		return
	}
	saved := make(chan struct{})
	timer := time.NewTimer(lastWrite)
	defer timer.Stop()
	select {
	case b.save <- saved:
	case <-b.done:
		return
	case <-timer.C:
		return
	}
	select {
	case <-saved:
	case <-timer.C:
	}
}

// Close writes what is left and ends the use of the file. It waits for the goroutine that does so, unless the file keeps
// that hanging for longer than five seconds: then it is left behind.
func (b *Book) Close() {
	if b == nil {
		return
	}
	b.closing.Do(func() { close(b.stop) })
	if !wait(b.done, lastWrite+time.Second) {
		b.tell(fmt.Errorf("%s does not answer: what was learned last may be lost", b.path))
	}
}

package baseline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"go.etcd.io/bbolt"

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

	seen os.FileInfo // of the file when it was read last; the goroutine's own
}

// Open begins to use the file at path, which need not exist. tell is called with each problem, possibly the same one
// many times, on any goroutine; it must not use the book. What is known is there when Open returns, unless the file keeps it waiting: then it
// comes later. Each Open needs its Close.
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
func (b *Book) Usual(key Key) (window.Usual, bool) {
	if b == nil || key == "" {
		return window.Usual{}, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.known[key]; r != nil {
		return r.Usual()
	}
	return window.Usual{}, false
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
	wait(saved, lastWrite)
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

// own is the goroutine that touches the file.
func (b *Book) own(loaded chan<- struct{}) {
	defer close(b.done)
	b.refresh(firstLook)
	close(loaded)
	ticker := time.NewTicker(writeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-b.stop:
			b.flush()
			return
		case saved := <-b.save:
			b.flush()
			close(saved)
		case <-ticker.C:
			if b.flush(); b.changed() {
				b.refresh(lastWrite)
			}
		}
	}
}

// changed says whether another program has written, or replaced, the file.
func (b *Book) changed() bool {
	info, err := os.Stat(b.path)
	if err != nil || b.seen == nil {
		return err == nil
	}
	return !os.SameFile(info, b.seen) || !info.ModTime().Equal(b.seen.ModTime()) || info.Size() != b.seen.Size()
}

// refresh reads the file.
func (b *Book) refresh(patience time.Duration) {
	b.seen, _ = os.Stat(b.path)
	var all records
	read := func(tx *bbolt.Tx) (err error) {
		all, err = readAll(tx)
		return err
	}
	err := access{path: b.path, until: time.Now().Add(patience)}.do(read)
	var bad *damage
	switch {
	case err == nil:
		b.keep(all, 0)
	case errors.Is(err, fs.ErrNotExist):
		b.keep(records{}, 0)
	case errors.As(err, &bad): // the lock that lets others read does not let us set it aside
		b.flushAll(true)
	default:
		b.problem("read", err)
	}
}

// flush writes what is pending.
func (b *Book) flush() { b.flushAll(false) }

func (b *Book) flushAll(always bool) {
	b.mu.Lock()
	batch := b.pending[:len(b.pending):len(b.pending)]
	b.mu.Unlock()
	if len(batch) == 0 && !always {
		return
	}
	for range 2 { // a second time where the file had to be set aside
		var all records
		moved := false
		a := access{path: b.path, write: true, until: time.Now().Add(lastWrite), broken: func(d *damage) { moved = b.setAside(d) }}
		err := a.do(func(tx *bbolt.Tx) (err error) {
			all, err = apply(tx, batch)
			return err
		})
		if err == nil {
			b.keep(all, len(batch))
			b.seen, _ = os.Stat(b.path)
			return
		}
		if !moved {
			var bad *damage
			if !errors.As(err, &bad) { // else it was told
				b.problem("written", err)
			}
			return
		}
		if b.keep(records{}, 0); len(batch) == 0 {
			return // a new file is made when there is something to write
		}
	}
}

// keep takes over what the file holds, to which the first so many that were pending have been added.
func (b *Book) keep(all records, written int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending = append([]observation(nil), b.pending[written:]...)
	for _, o := range b.pending {
		all.learn(o)
	}
	b.known = all
}

// setAside gives a file that cannot be used another name. Its lock is held.
func (b *Book) setAside(d *damage) bool {
	name, err := aside(b.path, d.kind)
	if err != nil {
		b.tell(fmt.Errorf("%s cannot be used (%w) and cannot be set aside (%w): move it away", b.path, d.why, err))
		return false
	}
	b.tell(fmt.Errorf("%s cannot be used: %w. It is kept as %s, and learning starts over", b.path, d.why, name))
	return true
}

func (b *Book) problem(what string, err error) {
	b.tell(fmt.Errorf("%s cannot be %s, so windows are not compared with earlier ones there: %w", b.path, what, err))
}

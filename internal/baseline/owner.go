package baseline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"go.etcd.io/bbolt"

	"github.com/stallspan/stallspan/internal/statefile"
)

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
		b.seen = nil // to try it again
		b.unread = err.Error()
		b.tell(fmt.Errorf("%s cannot be read, so windows are not compared with earlier ones there: %w", b.path, err))
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
			if !errors.As(err, &bad) && err.Error() != b.unread { // else it was told
				b.tell(fmt.Errorf("%s cannot be written, so what was learned now is lost: %w", b.path, err))
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
	b.unread = ""
}

// setAside gives a file that cannot be used another name. Its lock is held.
func (b *Book) setAside(d *damage) bool {
	name, err := statefile.Aside(b.path, d.kind)
	if err != nil {
		b.tell(fmt.Errorf("%s cannot be used (%w) and cannot be set aside (%w): move it away", b.path, d.why, err))
		return false
	}
	b.tell(fmt.Errorf("%s cannot be used: %w. It is kept as %s, and learning starts over", b.path, d.why, name))
	return true
}

package helper

import (
	"slices"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/source/process"
)

// The kernel has who reads /proc/PID/io wait while that process is in execve(2), which may wait for a disk or a server.
// So each part of a question is read on a goroutine that may hang.
const (
	partKeys = 64                     // processes of a part
	partWait = 200 * time.Millisecond // for a part, and for each process of one that was late
	// questionWait is what a question may take in all: less than answerWait.
	questionWait = 600 * time.Millisecond
	// maxHung is how many goroutines may hang, each with a thread, and maxHungOfUser how many for the processes of a user.
	// His others are not read then.
	maxHung       = 64
	maxHungOfUser = maxHung / 4
)

// byteReads reads the bytes of processes, and skips those whose file hangs. It is not safe for concurrent use.
type byteReads struct {
	open  func() process.Reader
	owner func(process.Key) int // the user of a process
	idle  *byteReader           // nil for none
	late  []*byteReader
	skip  map[process.Key]bool // processes whose file one of late waits for

	keys  []process.Key // of the question, without those to skip
	at    []int         // their places in it
	bytes [maxKeys]process.Bytes
}

// byteReader reads on a goroutine of its own.
type byteReader struct {
	reader process.Reader
	keys   []process.Key
	owner  int // of the only key
	bytes  [partKeys]process.Bytes
	begin  chan struct{}
	done   chan struct{}
}

func newByteReads(open func() process.Reader, owner func(process.Key) int) *byteReads {
	return &byteReads{open: open, owner: owner, skip: map[process.Key]bool{}}
}

// read answers for all processes within questionWait. The error of one that was not read in time is ETIMEDOUT.
func (b *byteReads) read(keys []process.Key, into []process.Bytes) {
	b.takeBack()
	b.keys, b.at = b.keys[:0], b.at[:0]
	for i, key := range keys {
		into[i] = process.Bytes{Err: syscall.ETIMEDOUT}
		if !b.skip[key] && !b.spent(key) {
			b.keys, b.at = append(b.keys, key), append(b.at, i)
		}
	}
	until := time.Now().Add(questionWait)
	from := 0
	for part := range slices.Chunk(b.keys, partKeys) {
		list := b.bytes[from : from+len(part)]
		if !b.part(part, list, until) && len(part) > 1 {
			for i := range part {
				b.part(part[i:i+1], list[i:i+1], until)
			}
		}
		from += len(part)
	}
	for i, at := range b.at {
		into[at] = b.bytes[i]
	}
}

// spent reports whether too many files of a user's processes hang.
func (b *byteReads) spent(key process.Key) bool {
	if len(b.skip) < maxHungOfUser {
		return false
	}
	user, hung := b.owner(key), 0
	for _, r := range b.late {
		if len(r.keys) == 1 && r.owner == user {
			hung++
		}
	}
	return hung >= maxHungOfUser
}

// part reads some processes, and reports whether it did in time.
func (b *byteReads) part(keys []process.Key, into []process.Bytes, until time.Time) bool {
	for i := range into {
		into[i] = process.Bytes{Err: syscall.ETIMEDOUT}
	}
	wait := min(partWait, time.Until(until))
	if wait <= 0 || len(b.late) >= maxHung {
		return false
	}
	r := b.idle
	if r == nil {
		r = &byteReader{reader: b.open(), begin: make(chan struct{}), done: make(chan struct{}, 1)}
		go r.run()
	}
	b.idle = nil
	r.keys = append(r.keys[:0], keys...)
	r.begin <- struct{}{}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-r.done:
		copy(into, r.bytes[:len(keys)])
		b.idle = r
		return true
	case <-timer.C:
	}
	b.late = append(b.late, r)
	if len(keys) == 1 {
		r.owner = b.owner(keys[0])
		b.skip[keys[0]] = true
	}
	return false
}

// takeBack looks which of the late readers have come to an end.
func (b *byteReads) takeBack() {
	b.late = slices.DeleteFunc(b.late, func(r *byteReader) bool {
		select {
		case <-r.done:
		default:
			return false
		}
		if len(r.keys) == 1 {
			delete(b.skip, r.keys[0])
		}
		if b.idle == nil {
			b.idle = r
		} else {
			r.end()
		}
		return true
	})
}

func (r *byteReader) run() {
	for range r.begin {
		_ = r.reader.Bytes(r.keys, r.bytes[:len(r.keys)]) // a Direct has no other errors than those of single processes
		r.done <- struct{}{}
	}
}

// end ends a reader that waits for work, and closes the files that it keeps.
func (r *byteReader) end() {
	close(r.begin)
	if c, ok := r.reader.(interface{ Close() }); ok {
		c.Close()
	}
}

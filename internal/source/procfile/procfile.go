// Package procfile reads the files of /proc that may wait for the process that they are about. It is the only reader
// of them.
//
// cmdline, environ, mem, smaps, smaps_rollup, numa_maps and, on older kernels, maps take the lock of the process's
// memory map. A thread holds that lock while it waits for a page of a file, perhaps of a server that does not respond.
// io, syscall and stack, and what shows memory, take the lock of execve(2), which lasts while that waits: for the
// memory map of the program before, or for the files that it closes. Newer kernels take it for all that depends on the
// right to trace the process: stat, wchan and all links, too. Only the kernel can end such a read. status, statm, comm,
// cgroup, schedstat, children, fdinfo and the lists of folders never wait.
//
// So each read runs on a goroutine, and the caller waits for about 100 ms, or for 400 ms while it works or has no CPU.
// After a late read its process is left out until the read has ended, and for a while after that, so that it cannot
// hold up each round again. A late read keeps a thread, and each user has a share of them.
package procfile

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
	"github.com/stallspan/stallspan/internal/trust"
)

const (
	// A read is late if it is the same one at two of these moments in a row after the first. One moment would not do: this
	// program itself may not have run. A read whose thread works, or has no CPU on a busy machine, has ten.
	lookEvery      = 40 * time.Millisecond
	looksOfRunning = 10
	// A process is left out for so long after its late read has ended.
	pause   = 5 * time.Second
	maxLate = 16 // of all users; one may have a quarter
)

// LateError is the error of a process for which the kernel does not answer. It is syscall.ETIMEDOUT to errors.Is.
type LateError struct{ PID int }

func (e LateError) Error() string {
	return fmt.Sprintf("process %d is left out for now: the kernel does not answer for it, perhaps because it waits for "+
		"a file system that hangs", e.PID)
}

// Unwrap returns syscall.ETIMEDOUT.
func (LateError) Unwrap() error { return syscall.ETIMEDOUT }

// Do calls read on another goroutine, for a process below a mounted proc, such as "/proc". The error is a LateError if
// the process is left out. The result of a late read is dropped.
func Do[T any](proc string, pid int, read func() T) (T, error) {
	type answer struct {
		result T
		err    error
	}
	var answers [1]answer
	NewBatch(proc, func(pid int) int { return pid },
		func(int, []byte) answer { return answer{result: read()} },
		func(pid int) answer { return answer{err: LateError{pid}} },
	).Each([]int{pid}, answers[:])
	return answers[0].result, answers[0].err
}

// Text returns up to limit bytes of a file of a process.
func Text(proc string, pid int, name string, limit int) ([]byte, error) {
	type answer struct {
		text []byte
		err  error
	}
	a, err := Do(proc, pid, func() (a answer) {
		a.text, a.err = kernfile.ReadWhole(filepath.Join(proc, strconv.Itoa(pid), name), nil, limit)
		return a
	})
	return a.text, cmp.Or(err, a.err)
}

// May reports whether a process is not left out.
func May(proc string, pid int) bool { return reads.may(process{proc, pid}) }

// Leave leaves out a process whose files a goroutine of the caller reads, until end is called and for a while after
// that.
func Leave(proc string, pid int) (end func()) {
	l := reads.leave(process{proc, pid})
	return func() { reads.end(l) }
}

// Late returns the processes with reads that became late since an earlier call, which has returned next; 0 for all that
// are left out.
func Late(earlier uint64) (list []LateError, next uint64) { return reads.since(earlier) }

// process is one below a mounted proc.
type process struct {
	proc string
	pid  int
}

// lateRead is a process with reads that are late, or were.
type lateRead struct {
	process
	user   string
	places int    // that its reads have taken
	number uint64 // in the order of those that became late
	going  int    // reads
	ended  time.Duration
}

// registry has the late reads of this program.
type registry struct {
	mu     sync.Mutex
	late   map[process]*lateRead
	number uint64
	places *trust.Places
}

// reads are all of this program: what they take are its threads.
var reads = registry{late: map[process]*lateRead{}, places: trust.NewPlaces(maxLate)}

func (r *registry) may(p process) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.late) == 0 {
		return true
	}
	now := sample.Now().Mono
	for of, l := range r.late {
		if l.going == 0 && now-l.ended >= pause {
			delete(r.late, of)
			for range l.places {
				r.places.Release(l.user)
			}
		}
	}
	if r.late[p] != nil {
		return false
	}
	if len(r.late) < r.places.Each() {
		return true // no user has taken a share
	}
	user := userOf(p)
	free := r.places.Take(user) == nil
	if free {
		r.places.Release(user)
	}
	return free
}

// leave leaves a process out until end.
func (r *registry) leave(p process) *lateRead {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.late[p]
	if l == nil {
		r.number++
		l = &lateRead{process: p, user: userOf(p), number: r.number}
		r.late[p] = l
	}
	l.going++
	if r.places.Take(l.user) == nil { // some may ask at the same time for the last place
		l.places++
	}
	return l
}

func (r *registry) end(l *lateRead) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.going--
	l.ended = sample.Now().Mono
}

func (r *registry) since(earlier uint64) (list []LateError, next uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.late {
		if l.number > earlier {
			list = append(list, LateError{l.pid})
		}
	}
	slices.SortFunc(list, func(a, b LateError) int { return cmp.Compare(a.PID, b.PID) })
	return list, r.number
}

// userOf returns who has the share of a process: its real user, and for root its cgroup, too, as containers of others
// may run as root.
func userOf(p process) string {
	var buf [4096]byte
	folder := filepath.Join(p.proc, strconv.Itoa(p.pid))
	status, _ := kernfile.ReadPiece(filepath.Join(folder, "status"), buf[:])
	id, _ := kernfile.UserIDs(status)
	user := strconv.Itoa(id)
	if user == "0" {
		group, _ := kernfile.ReadPiece(filepath.Join(folder, "cgroup"), buf[:])
		user += string(group)
	}
	return user
}

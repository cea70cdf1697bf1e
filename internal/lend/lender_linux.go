package lend

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/tcp"
)

// Limits of a Lender.
const (
	maxBorrowers  = 8
	maxOfUser     = 2
	maxJobs       = 8    // of a borrower
	maxNamed      = 256  // processes that a borrower may name, of those that still run
	maxLent       = 4096 // processes of a borrower, with the children of those that it named
	startsPeriod  = time.Minute
	maxStarts     = 30 // in a period: each takes about 100 ms to load programs into the kernel
	startsOfUser  = 10
	pruneInterval = time.Second
	idleLimit     = 10 * time.Second // without a process that runs
	budget        = 128              // cost of the orders that are obeyed until the next frame
	orderCost     = 8                // of an order; each of its processes costs 1
)

// ErrBusy is the error of Admit.
var ErrBusy = errors.New("too many programs ask for the scheduler's events: try again in a minute")

// Owner says whose processes a source may report: with these real, effective and saved ids, and without capabilities.
type Owner struct{ UID, GID uint32 }

// Opener opens a source for one borrower. It reports processes of owner alone, at each event; nil is for all processes.
type Opener func(owner *Owner) (Source, error)

// Lender lends the scheduler's events to the programs of plain users. Each has a source of its own, so that none can
// fill the buffers of another, or the server's. A Lender is safe for concurrent use.
type Lender struct {
	open Opener
	proc string

	mu        sync.Mutex
	borrowers []uint32 // their users
	starts    []start  // of the last period, oldest first
}

type start struct {
	uid uint32
	at  time.Duration
}

// NewLender returns a Lender.
func NewLender(open Opener) *Lender { return &Lender{open: open, proc: "/proc"} }

// Admit returns a loan for a peer, or ErrBusy. Call Close on the Loan.
func (l *Lender) Admit(peer Peer) (*Loan, error) {
	if err := l.enter(peer.UID, sample.Now().Mono); err != nil {
		return nil, err
	}
	return &Loan{
		lender: l, peer: peer, encoder: encoder{origin: -sample.OnMonotonic(0)},
		jobs: map[string]map[int]bool{}, lent: map[int]bool{}, revoked: map[int]bool{}, checked: map[int]bool{},
	}, nil
}

func (l *Lender) enter(uid uint32, now time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.starts = slices.DeleteFunc(l.starts, func(s start) bool { return now-s.at > startsPeriod })
	own, started := 0, 0
	for _, other := range l.borrowers {
		if other == uid {
			own++
		}
	}
	for _, s := range l.starts {
		if s.uid == uid {
			started++
		}
	}
	if len(l.borrowers) >= maxBorrowers || own >= maxOfUser || len(l.starts) >= maxStarts || started >= startsOfUser {
		return ErrBusy
	}
	l.borrowers = append(l.borrowers, uid)
	l.starts = append(l.starts, start{uid, now})
	return nil
}

func (l *Lender) leave(uid uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.borrowers, uid); i >= 0 {
		l.borrowers = slices.Delete(l.borrowers, i, i+1)
	}
}

// Loan is what one borrower has. Only one goroutine may use it.
type Loan struct {
	lender  *Lender
	peer    Peer
	source  Source // nil before start
	encoder encoder
	sample  sample.Sample
	list    []tcp.Change // of a frame
	tail    []byte       // of a frame

	jobs    map[string]map[int]bool // processes that the borrower named, by job
	lent    map[int]bool            // processes whose events may be sent, and whether they were found gone
	revoked map[int]bool            // processes whose rights are not the peer's any more
	checked map[int]bool            // those with events in this frame, and whether these may be sent
	idle    time.Duration           // when a process ran last
	pruned  time.Duration           // when lent was pruned last
}

// Close ends the loan.
func (n *Loan) Close() {
	if n.source != nil {
		_ = n.source.Close() // it is of no more use
	}
	n.lender.leave(n.peer.UID)
}

// start opens the source. The kernel takes about 100 ms to check its programs.
func (n *Loan) start() (err error) {
	var owner *Owner
	if !n.peer.All {
		owner = &Owner{UID: n.peer.UID, GID: n.peer.GID}
	}
	n.source, err = n.lender.open(owner)
	return err
}

// Serve obeys orders and sends a frame each 100 ms, until orders is closed, ctx ends, send fails, or no process has run
// for ten seconds.
func (n *Loan) Serve(ctx context.Context, orders <-chan Order, send func(frame []byte) error) error {
	if err := n.start(); err != nil {
		return err
	}
	ticker := time.NewTicker(frameInterval)
	defer ticker.Stop()
	n.idle = sample.Now().Mono
	if err := n.frame(send); err != nil { // the borrower waits for it
		return err
	}
	inbox, left := orders, budget
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case o, more := <-inbox:
			if !more {
				return nil
			}
			if err := n.obey(&o); err != nil {
				return err
			}
			if left -= orderCost + len(o.PIDs); left <= 0 {
				inbox = nil // until the next frame
			}
			if o.Op != now {
				continue
			}
		case <-ticker.C:
			inbox, left = orders, budget
			if at := sample.Now().Mono; at-n.pruned >= pruneInterval && n.prune(at) {
				return nil
			}
		}
		if err := n.frame(send); err != nil {
			return err
		}
	}
}

// obey carries out an order.
func (n *Loan) obey(o *Order) error {
	switch o.Op {
	case unfollow:
		delete(n.jobs, o.Job)
		n.source.Unfollow(o.Job)
	case follow:
		if n.jobs[o.Job] != nil {
			return fmt.Errorf("the job %q is followed already: give this one another name", o.Job)
		}
		if len(n.jobs) == maxJobs {
			return fmt.Errorf("%d jobs are followed: end one of them first", maxJobs)
		}
		n.jobs[o.Job] = map[int]bool{}
		return n.adopt(o.Job, o.PIDs, func(pids []int) error { return n.source.Follow(o.Job, pids) })
	case add:
		if n.jobs[o.Job] == nil {
			return fmt.Errorf("the job %q is not followed: send %s first", o.Job, follow)
		}
		return n.adopt(o.Job, o.PIDs, func(pids []int) error { return n.source.Sync(o.Job, pids) })
	}
	return nil
}

// adopt has a source follow those of pids that the peer may have. The numbers may change hands at any moment. So each
// process is checked again when the source follows it, and was held by a pidfd from before the first check.
func (n *Loan) adopt(job string, pids []int, take func([]int) error) error {
	var held []int // pidfds
	defer func() {
		for _, fd := range held {
			_ = unix.Close(fd)
		}
	}()
	named := n.jobs[job]
	var fresh []int
	for _, pid := range pids {
		if named[pid] || n.named() == maxNamed {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		held = append(held, fd)
		if !n.mayHave(pid) || !alive(fd) {
			held = held[:len(held)-1]
			_ = unix.Close(fd)
			continue
		}
		named[pid] = true
		fresh = append(fresh, pid)
	}
	if err := take(slices.Sorted(maps.Keys(named))); err != nil {
		return err
	}
	for i, pid := range fresh {
		if !n.mayHave(pid) || !alive(held[i]) {
			delete(named, pid)
			continue
		}
		delete(n.revoked, pid)
		n.lend(pid)
	}
	return nil
}

func (n *Loan) named() (all int) {
	for _, pids := range n.jobs {
		all += len(pids)
	}
	return all
}

func (n *Loan) mayHave(pid int) bool {
	i, err := identify(n.lender.proc, pid)
	return err == nil && n.peer.mayHave(&i)
}

func (n *Loan) lend(pid int) bool {
	if len(n.lent) == maxLent {
		return false
	}
	n.lent[pid] = false
	return true
}

// prune forgets processes that are gone, and reports whether there has been none for long. It is called before a
// reading, which still has the last events of what has just gone: so it forgets at the second time.
func (n *Loan) prune(now time.Duration) (idle bool) {
	n.pruned = now
	for pid, gone := range n.lent {
		switch {
		case unix.Access(filepath.Join(n.lender.proc, strconv.Itoa(pid)), unix.F_OK) == nil:
			n.idle = now
			n.lent[pid] = false
		case !gone:
			n.lent[pid] = true
		default:
			delete(n.lent, pid)
			for _, named := range n.jobs {
				delete(named, pid)
			}
		}
	}
	return now-n.idle > idleLimit
}

// frame sends what the source has.
func (n *Loan) frame(send func([]byte) error) error {
	n.sample.Reset()
	if err := n.source.Read(&n.sample); err != nil {
		return err
	}
	s := n.sample.Schedule
	if s == nil {
		return nil
	}
	n.filter(s)
	n.encoder.tail = n.changes()
	return send(n.encoder.encode(s))
}

// filter removes what the borrower may not see. The source has compared the ids at each event. Here, a process must be
// dumpable, too: one that ran a setuid program and gave up the rights is not, as it may still know secrets.
func (n *Loan) filter(s *sample.Schedule) {
	clear(n.checked)
	kept := s.Events[:0]
	for i := range s.Events {
		e := &s.Events[i]
		may, known := n.checked[e.PID]
		if !known {
			may = n.check(e.PID)
			n.checked[e.PID] = may
		}
		if may {
			kept = append(kept, *e)
		} else if len(n.lent) == maxLent {
			s.Lost++
		}
	}
	s.Events = kept
	for i := range kept {
		n.blank(&kept[i])
	}
}

// check reports whether the events of a process may be sent. A process that was not named is a child of one.
func (n *Loan) check(pid int) bool {
	if n.revoked[pid] {
		return false
	}
	_, lent := n.lent[pid]
	if n.peer.All {
		return lent || n.lend(pid)
	}
	var may bool
	var err error
	if lent { // whatever gives other rights to a process makes it not dumpable, too
		var owner uint32
		owner, err = ownerOf(n.lender.proc, pid)
		may = owner == n.peer.UID
	} else {
		var i identity
		i, err = identify(n.lender.proc, pid)
		may = n.peer.mayHave(&i)
	}
	if gone := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH); !gone && (err != nil || !may) {
		n.revoke(pid)
		return false
	}
	return lent || n.lend(pid)
}

// revoke ends the loan of a process permanently.
func (n *Loan) revoke(pid int) {
	delete(n.lent, pid)
	for _, named := range n.jobs {
		delete(named, pid)
	}
	if len(n.revoked) == maxLent {
		clear(n.revoked) // they are checked again
	}
	n.revoked[pid] = true
}

// blank removes the waker of an event if the borrower may not have its events, or if it only was interrupted.
func (n *Loan) blank(e *sample.ThreadEvent) {
	_, lent := n.lent[e.WakerPID]
	if !lent || e.WakerKind == sample.Interrupt || e.WakerKind == sample.KernelThread {
		e.Waker, e.WakerPID = 0, 0
	}
}

//go:build linux

package pipeline

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// tfdata makes batches in threads that take records from one list.
type tfdata struct {
	clock   clock
	plan    *Plan
	files   *openFiles
	workers []*worker
	lines   []*timeline
	threads sync.WaitGroup
	wake    int // eventfd: the training thread waits in the kernel instead of Go's scheduler

	mu      sync.Mutex
	room    *sync.Cond // claimable has grown, or err is set
	claimed int        // records
	allowed int        // records
	batches []assembly // a ring of batches that may be in progress
	wanted  int        // the batch that the training thread waits for; -1 for none
	err     error
}

// assembly is a batch in progress.
type assembly struct {
	records int
	sum     uint32
	made    time.Duration
}

func newTFData(c clock, plan *Plan, o *order, rate float64) (_ *tfdata, err error) {
	t := &tfdata{clock: c, plan: plan, batches: make([]assembly, plan.Prefetch), wanted: -1}
	t.room = sync.NewCond(&t.mu)
	if t.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	if t.files, err = open(plan.Files, plan.Reading); err != nil {
		return nil, errors.Join(err, unix.Close(t.wake))
	}
	ready := make(chan error)
	for i := range plan.Workers {
		t.workers, t.lines = append(t.workers, nil), append(t.lines, &timeline{})
		t.threads.Go(func() { t.thread(i, o, rate, ready) })
		err = errors.Join(err, <-ready)
	}
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// thread is the main function of a worker. Its thread ends with it.
func (t *tfdata) thread(i int, o *order, rate float64, ready chan<- error) {
	runtime.LockOSThread()
	own := *t.plan // a worker takes no more than its share of the records allowed ahead
	share := (own.Prefetch*own.Batch + own.Workers - 1) / own.Workers
	own.Depth = min(own.Depth, share)
	w, err := newWorker(t.clock, t.files, &own, rate, o.locate)
	if err == nil {
		w.chunk = min(w.chunk, share)
	}
	t.workers[i] = w
	ready <- err
	if err != nil {
		return
	}
	if err := w.run(t); err != nil {
		t.fail(err)
	}
}

func (t *tfdata) start() error {
	t.allow(t.plan.Prefetch)
	return nil
}

// allow lets the workers begin more batches.
func (t *tfdata) allow(batches int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.allowed = min(t.allowed+batches*t.plan.Batch, t.plan.Steps*t.plan.Batch)
	t.room.Broadcast()
}

func (t *tfdata) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
	t.room.Broadcast()
	t.rouse()
}

// rouse wakes the training thread. It fails only if the counter is full.
func (t *tfdata) rouse() { _, _ = unix.Write(t.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

func (t *tfdata) claim(to []task, n int, wait bool) ([]task, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for wait && t.err == nil && t.claimed == t.allowed && t.claimed < t.plan.Steps*t.plan.Batch {
		t.room.Wait()
	}
	for ; n > 0 && t.claimed < t.allowed; n-- {
		to = append(to, task{index: t.claimed, batch: t.claimed / t.plan.Batch})
		t.claimed++
	}
	return to, t.err
}

func (t *tfdata) finish(batch, records int, sum uint32) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := &t.batches[batch%len(t.batches)]
	b.records += records
	b.sum += sum
	if b.records == t.plan.Batch {
		b.made = t.clock.now()
		if t.wanted == batch {
			t.wanted = -1
			t.rouse()
		}
	}
	return t.err
}

func (t *tfdata) take(batch int) (delivery, error) {
	for {
		made, err := t.look(batch)
		if err != nil {
			return delivery{}, err
		}
		if made != nil {
			t.allow(1)
			for i, w := range t.workers {
				t.lines[i].events = w.meter.drain(t.lines[i].events)
			}
			return delivery{made: made.made, sum: made.sum, by: t.lines}, nil
		}
		var count [8]byte
		if _, err := retry(func() (int, error) { return unix.Read(t.wake, count[:]) }); err != nil {
			return delivery{}, fmt.Errorf("waiting for a batch: %w", err)
		}
	}
}

// look removes the batch if it is complete.
func (t *tfdata) look(batch int) (*assembly, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := &t.batches[batch%len(t.batches)]
	if t.err != nil {
		return nil, t.err
	}
	if b.records < t.plan.Batch {
		t.wanted = batch
		return nil, nil
	}
	made := *b
	*b = assembly{}
	return &made, nil
}

func (t *tfdata) totals() (sum totals) {
	t.threads.Wait() // no work is left
	for _, w := range t.workers {
		sum.add(&w.meter.accounts, w.count, w.bytes)
	}
	return sum
}

func (t *tfdata) close() error {
	t.fail(errStopped)
	t.threads.Wait()
	var errs []error
	for _, w := range t.workers {
		if w != nil {
			errs = append(errs, w.close())
		}
	}
	return errors.Join(append(errs, t.files.close(), unix.Close(t.wake))...)
}

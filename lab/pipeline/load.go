//go:build linux

package pipeline

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"time"
)

// loading reads a model file from start to end, one range per worker. A single worker is the training thread itself.
type loading struct {
	plan    *Plan
	clock   clock
	files   *openFiles
	size    int64
	ranges  []*span
	threads sync.WaitGroup
	gate    chan struct{} // closed when the workers may begin
	opened  bool
}

// span is one worker's part, in records of the plan's size.
type span struct {
	worker    *worker
	next, end int
	sum       uint32
	err       error
}

func (s *span) claim(to []task, n int, _ bool) ([]task, error) {
	for ; n > 0 && s.next < s.end; n-- {
		to = append(to, task{index: s.next})
		s.next++
	}
	return to, nil
}

func (s *span) finish(_, _ int, sum uint32) error {
	s.sum += sum
	return nil
}

func newLoading(c clock, plan *Plan, rate float64) (*loading, error) {
	info, err := os.Stat(plan.Load)
	if err != nil {
		return nil, err
	}
	l := &loading{plan: plan, clock: c, size: info.Size(), gate: make(chan struct{})}
	if l.files, err = open([]string{plan.Load}, plan.Reading); err != nil {
		return nil, err
	}
	records := int((l.size + int64(plan.Record) - 1) / int64(plan.Record))
	for i := range plan.Workers {
		l.ranges = append(l.ranges, &span{next: records * i / plan.Workers, end: records * (i + 1) / plan.Workers})
	}
	if plan.Workers == 1 {
		l.ranges[0].worker, err = l.newWorker(rate)
	} else {
		err = l.startThreads(rate)
	}
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

func (l *loading) locate(i int) (place, int) {
	offset := int64(i) * int64(l.plan.Record)
	return place{offset: offset}, int(min(int64(l.plan.Record), l.size-offset))
}

func (l *loading) newWorker(rate float64) (*worker, error) {
	w, err := newWorker(l.clock, l.files, l.plan, rate, l.locate)
	if err == nil {
		w.meter.silent = true
	}
	return w, err
}

func (l *loading) startThreads(rate float64) (err error) {
	ready := make(chan error)
	for _, s := range l.ranges {
		l.threads.Go(func() { l.thread(s, rate, ready) })
		err = errors.Join(err, <-ready)
	}
	return err
}

// thread is the main function of a worker. Its thread ends with it.
func (l *loading) thread(s *span, rate float64, ready chan<- error) {
	runtime.LockOSThread()
	w, err := l.newWorker(rate)
	s.worker = w
	ready <- err
	<-l.gate
	if err == nil && l.opened {
		w.meter.enter(idle, -1) // the time since it was prepared does not count
		s.err = w.run(s)
	}
}

func (l *loading) open(begin bool) {
	select {
	case <-l.gate:
	default:
		l.opened = begin
		close(l.gate)
	}
}

func (l *loading) run() (truth Truth, err error) {
	begin := l.clock.now()
	l.open(true)
	if l.plan.Workers == 1 {
		s := l.ranges[0]
		s.worker.meter.enter(idle, -1)
		s.err = s.worker.run(s)
	}
	l.threads.Wait()
	truth.Duration = l.clock.now() - begin
	var sum totals
	for _, s := range l.ranges {
		err = errors.Join(err, s.err)
		sum.add(&s.worker.meter.accounts, s.worker.count, s.worker.bytes)
		truth.Checksum += s.sum
	}
	truth.account(sum)
	truth.Read = truth.ReadTime / time.Duration(len(l.ranges))
	truth.Decode = truth.DecodeTime / time.Duration(len(l.ranges))
	truth.Other = truth.Duration - truth.Read - truth.Decode
	return truth, err
}

func (l *loading) close() error {
	l.open(false)
	l.threads.Wait()
	var errs []error
	for _, s := range l.ranges {
		if s.worker != nil {
			errs = append(errs, s.worker.close())
		}
	}
	return errors.Join(append(errs, l.files.close())...)
}

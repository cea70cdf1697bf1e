//go:build linux

package pipeline

import "errors"

// serial makes batches in the training thread itself.
type serial struct {
	files  *openFiles
	worker *worker
	line   timeline
	plan   *Plan

	batch, claimed int
	sum            uint32
}

func newSerial(c clock, plan *Plan, o *order, rate float64) (*serial, error) {
	f, err := open(plan.Files, plan.Reading)
	if err != nil {
		return nil, err
	}
	w, err := newWorker(c, f, plan, rate, o.locate)
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return &serial{files: f, worker: w, plan: plan}, nil
}

func (s *serial) start() error {
	s.worker.meter.enter(idle, -1) // the time since it was prepared does not count
	return nil
}

func (s *serial) take(batch int) (delivery, error) {
	s.batch, s.claimed, s.sum = batch, 0, 0
	if err := s.worker.run(s); err != nil {
		return delivery{}, err
	}
	s.line.events = s.worker.meter.drain(s.line.events)
	return delivery{made: s.worker.meter.since, sum: s.sum, by: []*timeline{&s.line}}, nil
}

func (s *serial) claim(to []task, n int, _ bool) ([]task, error) {
	for ; n > 0 && s.claimed < s.plan.Batch; n-- {
		to = append(to, task{index: s.batch*s.plan.Batch + s.claimed, batch: s.batch})
		s.claimed++
	}
	return to, nil
}

func (s *serial) finish(_, _ int, sum uint32) error {
	s.sum += sum
	return nil
}

func (s *serial) totals() (t totals) {
	t.add(&s.worker.meter.accounts, s.worker.count, s.worker.bytes)
	return t
}

func (s *serial) close() error { return errors.Join(s.worker.close(), s.files.close()) }

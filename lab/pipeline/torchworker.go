//go:build linux

package pipeline

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// torchWorker is the worker process's end.
type torchWorker struct {
	assignment
	input   rawFile
	credits *bufio.Reader // of input
	output  rawFile
	worker  *worker

	batch   int // claimed last
	left    int // unclaimed records of it
	made    int // records of the batch in progress
	sum     uint32
	events  []event
	message []byte
}

// work is the main function of a worker process. It sends errors to the training process, which reports them.
func work(input, output rawFile) {
	t := &torchWorker{input: input, credits: bufio.NewReader(input), output: output}
	if err := t.work(); err != nil {
		_, _ = writeMessage(output, nil, kindError, func(to []byte) []byte { return append(to, err.Error()...) })
	}
	_, _ = io.Copy(io.Discard, t.credits) // until the training process ends it
}

func (t *torchWorker) work() error {
	line, err := t.credits.ReadBytes('\n')
	if err != nil {
		return err
	}
	if err := json.Unmarshal(line, &t.assignment); err != nil {
		return fmt.Errorf("assignment: %w", err)
	}
	o, err := newOrder(t.Plan)
	if err != nil {
		return err
	}
	files, err := open(t.Plan.Files, t.Plan.Reading)
	if err != nil {
		return err
	}
	if t.worker, err = newWorker(newClock(), files, t.Plan, t.Rate, o.locate); err != nil {
		return errors.Join(err, files.close())
	}
	t.batch = t.Worker - t.Plan.Workers
	t.message, err = writeMessage(t.output, make([]byte, 0, 64<<10), kindReady, func(to []byte) []byte { return to })
	if err == nil {
		err = t.worker.run(t)
	}
	return errors.Join(err, t.worker.close(), files.close())
}

// claim takes batches in turn, one for each byte from the training process.
func (t *torchWorker) claim(to []task, n int, wait bool) ([]task, error) {
	for ; n > 0; n-- {
		if t.left == 0 {
			if t.batch+t.Plan.Workers >= t.Plan.Steps {
				return to, nil
			}
			if !wait && t.credits.Buffered() == 0 && !t.input.ready() {
				return to, nil
			}
			if _, err := t.credits.ReadByte(); err != nil {
				return to, err // the training process has ended
			}
			t.batch += t.Plan.Workers
			t.left = t.Plan.Batch
		}
		t.left--
		to = append(to, task{index: t.batch*t.Plan.Batch + t.Plan.Batch - 1 - t.left, batch: t.batch})
		wait = false
	}
	return to, nil
}

// finish hands a batch over with its last record. Records are finished in the order of their claims.
func (t *torchWorker) finish(batch, records int, sum uint32) error {
	t.sum += sum
	if t.made += records; t.made < t.Plan.Batch {
		return nil
	}
	w := t.worker
	w.meter.enter(idle, -1)
	t.events = w.meter.drain(t.events[:0])
	m := batchMessage{batch: batch, sum: t.sum, events: t.events}
	m.totals.add(&w.meter.accounts, w.count, w.bytes)
	var err error
	t.message, err = writeMessage(t.output, t.message, kindBatch, func(to []byte) []byte { return appendBatch(to, &m) })
	t.made, t.sum = 0, 0
	return err
}

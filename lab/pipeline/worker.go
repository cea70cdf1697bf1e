//go:build linux

package pipeline

import (
	"errors"
	"hash/crc32"
)

// task is one record to make.
type task struct{ index, batch int }

// supply gives a worker its tasks.
type supply interface {
	// claim appends up to n tasks in order. If none is available and wait is set, it waits; no task then means the end.
	claim(to []task, n int, wait bool) ([]task, error)
	// finish takes finished records of one batch: their number, and their part of the checksum.
	finish(batch, records int, sum uint32) error
}

// worker makes records: it reads and decodes them. One thread owns it.
type worker struct {
	meter  *meter
	reader reader
	locate func(index int) (place, int) // the place of a record, and its bytes
	rounds int                          // of the decoder
	chunk  int                          // records that are read together before they are decoded

	tasks   []task // claimed, in order
	begun   int    // of them, in flight in reader
	read    []task
	records [][]byte
	sink    uint64
	count   int
	bytes   int64
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// smallRead is how many bytes are read together before they are decoded: small records are not worth two phases each.
const smallRead = 64 << 10

func chunkOf(record int) int { return max(1, min(64, smallRead/max(record, 1))) }

// newWorker must run on the thread that owns the worker.
func newWorker(c clock, f *openFiles, plan *Plan, rate float64, locate func(int) (place, int)) (*worker, error) {
	m, err := newMeter(c)
	if err != nil {
		return nil, err
	}
	w := &worker{meter: m, locate: locate, rounds: roundsOf(plan.Decode, rate), chunk: chunkOf(plan.Record)}
	if w.reader, err = newReader(f, plan.Reading, plan.Record, w.chunk, plan.Depth); err != nil {
		m.close()
		return nil, err
	}
	return w, nil
}

func (w *worker) close() error {
	w.meter.close()
	return w.reader.close()
}

// run makes all records of a supply.
func (w *worker) run(s supply) error {
	for {
		if err := w.fetch(s); err != nil || len(w.read) == 0 {
			w.meter.enter(idle, -1)
			return err
		}
		if err := w.decode(s); err != nil {
			return err
		}
	}
}

// fetch reads a chunk of records of one batch. No records and a nil error mean the end.
func (w *worker) fetch(s supply) error {
	w.read, w.records = w.read[:0], w.records[:0]
	if err := w.claim(s); err != nil || len(w.tasks) == 0 {
		return err
	}
	batch := w.tasks[0].batch
	w.meter.enter(reading, batch)
	for len(w.read) < w.chunk && len(w.tasks) > 0 && w.tasks[0].batch == batch {
		for w.begun < min(len(w.tasks), w.reader.depth()) {
			at, size := w.locate(w.tasks[w.begun].index)
			if err := w.reader.begin(at, size); err != nil {
				return err
			}
			w.begun++
		}
		record, err := w.reader.next()
		if err != nil {
			return err
		}
		w.begun--
		w.read, w.records = append(w.read, w.tasks[0]), append(w.records, record)
		w.tasks = append(w.tasks[:0], w.tasks[1:]...)
	}
	return nil
}

// claim takes as many tasks as may be in flight while a chunk is read. It waits for the first one only.
func (w *worker) claim(s supply) (err error) {
	want := w.chunk + w.reader.depth() - 1
	if w.tasks, err = s.claim(w.tasks, want-len(w.tasks), false); err != nil || len(w.tasks) > 0 {
		return err
	}
	w.meter.enter(idle, -1)
	w.tasks, err = s.claim(w.tasks, want, true)
	return err
}

// decode turns bytes into records. The checksum does not depend on their order.
func (w *worker) decode(s supply) error {
	w.meter.enter(decoding, w.read[0].batch)
	sum := uint32(0)
	for i, record := range w.records {
		sum += crc32.Checksum(record, castagnoli) * (2*uint32(w.read[i].index) + 1)
		w.sink += mix(record, w.rounds)
		w.bytes += int64(len(record))
	}
	w.count += len(w.read)
	return s.finish(w.read[0].batch, len(w.read), sum)
}

// errStopped ends a worker whose work is no longer needed.
var errStopped = errors.New("stopped")

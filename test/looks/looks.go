// Package looks keeps what detectors of windows were given of a job, so that a test gives it to them again.
package looks

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"math"
	"sort"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
)

// quantities is the number of counters in a Row.
const quantities = int(detect.GPUBusy) + 1

// Row is a reading of a job's counters. A counter that is not known is negative.
type Row struct {
	At     time.Duration       `json:"at"`
	Levels [quantities]float64 `json:"levels"`
}

// Look is what a detector gets at a moment, with the readings since the look before.
type Look struct {
	detect.Facts
	Rows []Row `json:"rows"`
}

// Past is a detect.Past of rows.
type Past struct{ rows []Row }

// keep is how many rows are kept: a minute of them.
const keep = 600

// Add adds rows.
func (p *Past) Add(rows []Row) {
	p.rows = append(p.rows, rows...)
	if over := len(p.rows) - keep; over > 0 {
		p.rows = p.rows[over:]
	}
}

// Level interpolates between two rows.
func (p *Past) Level(q detect.Quantity, at time.Duration) (float64, bool) {
	i := sort.Search(len(p.rows), func(i int) bool { return p.rows[i].At >= at })
	switch {
	case i == len(p.rows):
		if i == 0 || at-p.rows[i-1].At > 2*time.Second {
			return 0, false
		}
		v := p.rows[i-1].Levels[q]
		return v, v >= 0
	case p.rows[i].Levels[q] < 0:
		return 0, false
	case i == 0:
		return p.rows[0].Levels[q], p.rows[0].At-at < time.Second
	}
	a, b := &p.rows[i-1], &p.rows[i]
	share := float64(at-a.At) / float64(b.At-a.At)
	if a.Levels[q] < 0 {
		return 0, false
	}
	return a.Levels[q] + share*(b.Levels[q]-a.Levels[q]), true
}

// Reading returns the time of the newest row.
func (p *Past) Reading(q detect.Quantity) (time.Duration, bool) {
	if n := len(p.rows); n > 0 && p.rows[n-1].Levels[q] >= 0 {
		return p.rows[n-1].At, true
	}
	return 0, false
}

// Writer writes looks as gzip JSON lines.
type Writer struct {
	zip *gzip.Writer
	out *json.Encoder
}

// NewWriter returns a writer to w.
func NewWriter(w io.Writer) *Writer {
	zip := gzip.NewWriter(w)
	return &Writer{zip, json.NewEncoder(zip)}
}

// Write adds a look.
func (w *Writer) Write(l *Look) error {
	past := l.Past
	l.Past = nil
	defer func() { l.Past = past }()
	for i := range l.Rows { // JSON has no other form for a missing value
		for q, v := range l.Rows[i].Levels {
			if math.IsNaN(v) {
				l.Rows[i].Levels[q] = -1
			}
		}
	}
	return w.out.Encode(l)
}

// Close ends the file.
func (w *Writer) Close() error { return w.zip.Close() }

// Read returns all looks of a file.
func Read(r io.Reader) (all []*Look, err error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	in := json.NewDecoder(zip)
	for {
		l := &Look{}
		err := in.Decode(l)
		if errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
}

// Replay gives looks to a detector, and returns what it found. Without exact, it gets no events of the kernel.
func Replay(d detect.Detector, all []*Look, exact bool) (found []detect.Found) {
	past := &Past{}
	for i, l := range all {
		past.Add(l.Rows)
		f := l.Facts
		f.Past = past
		if !exact {
			f.Exact, f.Events = false, nil
		}
		if i+1 < len(all) {
			found = append(found, d.Look(&f)...)
		} else {
			found = append(found, d.Close(&f)...)
		}
	}
	return found
}

package store

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// began is the first interval of tests.
var began = time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)

const period = 10 * time.Second

// columnsOf are so many columns of a disk.
func columnsOf(disk string, n int) (all []Column) {
	for _, q := range Quantities {
		if q.Of == Disk && len(all) < n {
			all = append(all, Column{Of: Disk, ID: disk, Name: disk, Quantity: q.Name, Step: q.Step})
		}
	}
	return all
}

func opened(t testing.TB, folder string, size int64) *Writer {
	t.Helper()
	w := New(Options{Folder: folder, MaxSize: size, MaxAge: DefaultMaxAge})
	if err := w.Open(); err != nil {
		t.Fatal(err)
	}
	return w
}

// add adds interval i, whose only value is its number.
func (w *Writer) add(i int) {
	w.Add(Devices, columnsOf("vda", 1), began.Add(time.Duration(i)*period), period, []float64{float64(i) * kilobyte})
}

func at(i int) time.Time { return began.Add(time.Duration(i) * period) }

// stamp is a moment of a clock that was never set.
func stamp(at time.Time) sample.Stamp { return sample.Stamp{Wall: at, Mono: at.Sub(began)} }

func flush(t testing.TB, w *Writer, when time.Time) {
	t.Helper()
	if err := w.Flush(stamp(when)); err != nil {
		t.Fatal(err)
	}
}

func closed(t testing.TB, w *Writer, when time.Time) {
	t.Helper()
	if err := w.Close(stamp(when)); err != nil {
		t.Fatal(err)
	}
}

// found is what a folder or a file holds.
type found struct {
	numbers []int // of intervals
	entries []Entry
	rows    []*Rows
	damaged int
	cut     int64
}

func readFile(in io.Reader, from, until time.Time) (f found, err error) {
	r := NewReader(in)
	r.From, r.Until = from, until
	for {
		item, err := r.Next()
		f.damaged, f.cut = r.Damaged(), r.Cut()
		if errors.Is(err, io.EOF) {
			return f, nil
		}
		if err != nil {
			return f, err
		}
		f.entries = append(f.entries, item.Entries...)
		if item.Rows != nil {
			f.rows = append(f.rows, item.Rows)
			for _, v := range item.Rows.Values[0] {
				f.numbers = append(f.numbers, int(math.Round(v/kilobyte)))
			}
		}
	}
}

func readFolder(t testing.TB, folder string, from, until time.Time) (all found) {
	t.Helper()
	err := Each(folder, from, until, func(_ string, file io.Reader) error {
		f, err := readFile(file, from, until)
		all.numbers, all.entries = append(all.numbers, f.numbers...), append(all.entries, f.entries...)
		all.rows = append(all.rows, f.rows...)
		all.damaged, all.cut = all.damaged+f.damaged, all.cut+f.cut
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// wantNumbers checks that intervals from first to last are there, each once.
func wantNumbers(t testing.TB, what string, got []int, first, last int) {
	t.Helper()
	if len(got) != last-first+1 {
		t.Errorf("%s: got %d intervals, want those from %d to %d", what, len(got), first, last)
		return
	}
	for i, n := range got {
		if n != first+i {
			t.Errorf("%s: got interval %d at place %d, want %d", what, n, i, first+i)
			return
		}
	}
}

func contents(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// written is a file of so many blocks, and where each ends.
func written(t testing.TB, blocks int) (text []byte, ends []int) {
	t.Helper()
	folder := t.TempDir()
	w := opened(t, folder, DefaultMaxSize)
	for i := range blocks {
		w.add(i)
		flush(t, w, at(i))
		ends = append(ends, int(w.size))
	}
	path := w.file.Name()
	closed(t, w, at(blocks))
	return bytes.Clone(contents(t, path)), ends
}

// Cut returns the bytes at the end that are no complete block: it is being written, or its writer was killed.
func (r *Reader) Cut() int64 { return r.cut }

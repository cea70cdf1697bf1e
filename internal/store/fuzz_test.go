package store

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"time"
)

// Any bytes are read in bounded time and memory, without a panic.
func FuzzReader(f *testing.F) {
	text, ends := written(f, 3)
	f.Add(text)
	f.Add(text[:ends[1]+7])
	f.Add(append(bytes.Clone(text), text...))
	f.Add(bytes.Repeat(marker, 100))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := NewReader(bytes.NewReader(text))
		for {
			item, err := r.Next()
			if err != nil {
				expected := []error{io.EOF, ErrForeign, ErrNewer, ErrBroken}
				if !slices.ContainsFunc(expected, func(e error) bool { return errors.Is(err, e) }) {
					t.Errorf("got %v", err)
				}
				break
			}
			if len(item.Entries) > maxEntries {
				t.Errorf("got %d entries, want at most %d", len(item.Entries), maxEntries)
			}
			if rows := item.Rows; rows != nil {
				n := len(rows.Starts) * max(1, len(rows.Columns))
				if n == 0 || n > maxValues || len(rows.Values) != len(rows.Columns) {
					t.Errorf("got %d values in %d columns", n, len(rows.Values))
				}
				for i := range rows.Starts[1:] {
					if rows.Starts[i+1] <= rows.Starts[i] {
						t.Errorf("got %d after %d, want ascending times", rows.Starts[i+1], rows.Starts[i])
					}
				}
			}
		}
		if r.read > int64(len(text)) || r.made > maxGrowth*int64(len(text))+freeGrowth+maxRaw+1 {
			t.Errorf("got %d bytes of a file of %d, %d unpacked", r.read, len(text), r.made)
		}
		if r.Damaged() > maxDamaged+1 {
			t.Errorf("got %d damaged places, want at most %d", r.Damaged(), maxDamaged)
		}
		_ = Copy(io.Discard, bytes.NewReader(text), time.Time{}, time.Time{}, func(Entry) bool { return false })
	})
}

// A file that expands without end is given up.
func TestBomb(t *testing.T) {
	var e encoder
	text, err := e.columns(header(), Devices, 1, columnsOf("vda", 1))
	if err != nil {
		t.Fatal(err)
	}
	e.raw = make([]byte, maxRaw)
	block, err := e.pack(nil, frame{content: eventsBlock})
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, bytes.Repeat(block, 100)...)
	r := NewReader(bytes.NewReader(text))
	for err == nil {
		_, err = r.Next()
	}
	if !errors.Is(err, ErrBroken) || r.made > maxGrowth*int64(len(text))+freeGrowth+maxRaw+1 {
		t.Errorf("got %v after %d bytes of a file of %d, want %v", err, r.made, len(text), ErrBroken)
	}
}

package recording

import (
	"bufio"
	"bytes"
	"errors"
	"strings"
	"testing"
)

// Everything arrives, in order.
func TestSpool(t *testing.T) {
	var to, want bytes.Buffer
	s := NewSpool(&to)
	out := bufio.NewWriterSize(s, maxWrite)
	for i := range 100_000 {
		piece := []byte{byte(i), byte(i >> 8), byte(i >> 16)}
		want.Write(piece)
		if _, err := out.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(out.Flush(), s.End()); err != nil || !bytes.Equal(to.Bytes(), want.Bytes()) {
		t.Errorf("got %d bytes and the error %v, want %d bytes", to.Len(), err, want.Len())
	}
}

// After Wait, more may come than the spool holds.
func TestSpoolWaits(t *testing.T) {
	hang := &hanging{release: make(chan struct{})}
	s := NewSpool(hang)
	s.Wait()
	go close(hang.release)
	piece := make([]byte, maxWrite)
	for range 3 * maxQueued / maxWrite {
		if _, err := s.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.End(); err != nil || hang.written != 3*maxQueued {
		t.Errorf("got %d bytes and the error %v, want %d", hang.written, err, 3*maxQueued)
	}
}

// Writes do not wait for a disk that hangs, and fail when too much waits for it.
func TestSpoolOfADiskThatHangs(t *testing.T) {
	hang := &hanging{release: make(chan struct{})}
	s := NewSpool(hang)
	chunk := make([]byte, 1<<20)
	var err error
	n := 0
	for ; err == nil && n < 1000; n++ {
		_, err = s.Write(chunk)
	}
	if !errors.Is(err, errBehind) || n != maxQueued>>20+1 {
		t.Errorf("got %d MiB, %v, want %d and %v", n-1, err, maxQueued>>20, errBehind)
	}
	close(hang.release)
	if err := s.End(); !errors.Is(err, errBehind) {
		t.Errorf("got the error %v at the end, want %v", err, errBehind)
	}
}

// A bug in what is written to ends it with an error.
func TestPanicOfTheSpool(t *testing.T) {
	s := NewSpool(nil)
	if _, err := s.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	err := s.flush()
	if err == nil || !strings.Contains(err.Error(), "a bug in stallspan") || s.End() == nil {
		t.Errorf("got %v, want that it is a bug", err)
	}
}

type hanging struct {
	release chan struct{}
	written int
}

func (h *hanging) Write(p []byte) (int, error) {
	<-h.release
	h.written += len(p)
	return len(p), nil
}

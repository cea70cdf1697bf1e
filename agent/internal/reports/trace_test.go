package reports

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/pftrace"
)

// TestBackground: everything arrives, in order, and nothing waits for a disk that hangs.
func TestBackground(t *testing.T) {
	var to bytes.Buffer
	b := newBackground(&to)
	out := bufio.NewWriterSize(b, maxTraceWrite)
	var want bytes.Buffer
	for i := range 100_000 {
		piece := []byte{byte(i), byte(i >> 8), byte(i >> 16)}
		want.Write(piece)
		if _, err := out.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(out.Flush(), b.end()); err != nil || !bytes.Equal(to.Bytes(), want.Bytes()) {
		t.Errorf("got %d bytes and the error %v, want %d bytes", to.Len(), err, want.Len())
	}
}

// TestBackgroundWaits: at the end, more may come than the buffer holds.
func TestBackgroundWaits(t *testing.T) {
	hang := &hanging{release: make(chan struct{})}
	b := newBackground(hang)
	b.wait()
	go close(hang.release)
	piece := make([]byte, maxTraceWrite)
	for range 3 * maxTraceWait / maxTraceWrite {
		if _, err := b.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.end(); err != nil || hang.written != 3*maxTraceWait {
		t.Errorf("got %d bytes and the error %v, want %d", hang.written, err, 3*maxTraceWait)
	}
}

func TestBackgroundOfADiskThatHangs(t *testing.T) {
	hang := &hanging{release: make(chan struct{})}
	b := newBackground(hang)
	out := bufio.NewWriterSize(b, maxTraceWrite)
	piece := make([]byte, maxTraceWrite)
	var err error
	for range 2*maxTraceWait/maxTraceWrite + 4 { // the goroutine takes once what waits
		if _, err = out.Write(piece); err != nil {
			break
		}
	}
	if !errors.Is(err, errTraceBehind) {
		t.Errorf("got the error %v, want %v", err, errTraceBehind)
	}
	close(hang.release)
	if err := errors.Join(out.Flush(), b.end()); !errors.Is(err, errTraceBehind) {
		t.Errorf("got the error %v at the end, want %v", err, errTraceBehind)
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

// TestJournals: a recording that fails does not end the trace.
func TestJournals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.pftrace")
	files, err := openOutputs("", "", path)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Discard()
	to := files.Live(failing{})
	for i := range 3 {
		e := recording.Entry{Source: "cpu", Sample: &sample.Sample{
			At: sample.Now(), Cores: []sample.Core{{Name: "cpu0", User: time.Duration(i) * time.Second}},
		}}
		if err := to.Write(&e); err != nil {
			t.Errorf("got the error %v, want it from the recording's owner alone", err)
		}
	}
	if err := files.Trace.save(nil, nil); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if track := pftrace.Decode(t, data).Of("CPU", "cores at work"); track == nil || len(track.Values) != 2 {
		t.Errorf("got %+v, want two values", track)
	}
}

type failing struct{}

func (failing) Write(*recording.Entry) error { return errors.New("no space left on device") }

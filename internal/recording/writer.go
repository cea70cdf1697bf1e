package recording

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// ErrFull says that a recording has reached the size that can be read again.
var ErrFull = fmt.Errorf("the recording holds %d GiB, which is the most: begin another", mostBytes>>30)

// flushEvery is how much a crash of this program may lose, on the readings' own clock.
const flushEvery = time.Second

// Writer makes a recording. It keeps one line and the compressor's window in memory, and is safe for concurrent use.
type Writer struct {
	mu      sync.Mutex
	zip     *gzip.Writer
	line    bytes.Buffer
	flushed time.Duration // Stamp.Mono of the reading after which the last flush came
	size    int64         // of all lines
	closed  bool
}

// NewWriter begins a recording in w, which stays the caller's to close. The header's Format is set here.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	h.Format = Format
	out := &Writer{zip: gzip.NewWriter(w)}
	if err := out.put(h); err != nil {
		return nil, err
	}
	return out, out.flush()
}

// Write adds an entry. A reading that holds nothing, as that of a source that failed, is left out. Once a second what was
// written so far is handed to the file, so that a crash of this program loses no more than that. After an error of the
// file every Write gives an error.
func (w *Writer) Write(e *Entry) error {
	if e.Sample != nil && empty(e.Sample) {
		return nil
	}
	if err := e.check(); err != nil {
		return fmt.Errorf("an entry cannot be recorded: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errors.New("the recording is closed")
	}
	if err := w.put(e); err != nil {
		return err
	}
	if e.Sample == nil {
		return nil
	}
	if e.Sample.At.Mono-w.flushed < flushEvery { // also of readings of the past
		return nil
	}
	w.flushed = e.Sample.At.Mono
	return w.flush()
}

func empty(s *sample.Sample) bool {
	devices := len(s.Disks) + len(s.Pressures) + len(s.Cores) + len(s.Jobs) + len(s.Processes) + len(s.GPUs) + len(s.Drives)
	return devices == 0 || checkStamp(s.At) != nil
}

// put writes one line, whole or not at all as far as the reader is concerned.
func (w *Writer) put(v any) error {
	w.line.Reset()
	encoder := json.NewEncoder(&w.line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("a reading cannot be written as JSON: %w", err)
	}
	if err := checkLine(w.line.Bytes()); err != nil {
		return err
	}
	if w.size+int64(w.line.Len()) > mostBytes {
		return ErrFull
	}
	w.size += int64(w.line.Len())
	if _, err := w.zip.Write(w.line.Bytes()); err != nil {
		return fmt.Errorf("the recording cannot be written, look at the disk it goes to: %w", err)
	}
	return nil
}

func (w *Writer) flush() error {
	if err := w.zip.Flush(); err != nil {
		return fmt.Errorf("the recording cannot be written, look at the disk it goes to: %w", err)
	}
	return nil
}

// Close ends the recording. Without it a reader gives every reading up to the last flush and says that the rest is
// missing. It may be called again.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	if err := w.zip.Close(); err != nil {
		return fmt.Errorf("the recording cannot be written to its end, look at the disk it goes to: %w", err)
	}
	return nil
}

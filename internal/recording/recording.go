// Package recording writes readings, and the windows that began and ended between them, to a file, and reads them
// again, so that the windows of one machine can be reported on another. docs/internals/recording-format.md describes
// the file: gzip, with one line of JSON per entry.
package recording

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Format is the version of the file format that is written, and the newest one that is read.
const Format = 1

// Bounds of what is written and read.
const (
	maxLine   = 16 << 20 // bytes of one line
	maxBytes  = 16 << 30 // of all lines, uncompressed: three days of an ordinary machine at ten readings a second
	maxCommas = 1 << 18  // in one line: each may cost two hundred bytes of memory, as in a list of empty disks
)

// Header is the first line of a recording: where and how it was made.
type Header struct {
	Format   int           `json:"stallspan_recording"` // set by NewWriter
	Host     string        `json:"host,omitempty"`
	Kernel   string        `json:"kernel,omitempty"`
	Boot     time.Time     `json:"boot,omitzero"`      // when the machine's counters began
	Origin   time.Duration `json:"origin,omitempty"`   // CLOCK_MONOTONIC at Stamp.Mono 0; 0 where it is not known
	Interval time.Duration `json:"interval,omitempty"` // between two readings of a source
	Version  string        `json:"version,omitempty"`  // of the program that wrote it
}

// ThisMachine returns the header of a new recording of this machine. What cannot be read stays empty.
func ThisMachine(boot time.Time, interval time.Duration, version string) Header {
	h := Header{Boot: boot, Origin: sample.Origin(), Interval: interval, Version: version}
	h.Host, _ = os.Hostname()
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		h.Kernel = fmt.Sprintf("%s %s %s", runtime.GOOS, strings.TrimSpace(string(release)), runtime.GOARCH)
	}
	return h
}

// ErrFull means that a recording has the maximum size of a Reader.
var ErrFull = fmt.Errorf("the recording has the maximum size of %d GiB: begin another", maxBytes>>30)

// flushEvery bounds what a crash of this program loses, on the clock of the readings.
const flushEvery = time.Second

// Writer writes a recording. It holds one line and the window of the compressor in memory, and is safe for concurrent
// use.
type Writer struct {
	mu      sync.Mutex
	zip     *gzip.Writer
	line    bytes.Buffer
	flushed time.Duration // Stamp.Mono of the reading before the last flush
	size    int64         // of all lines
	closed  bool
}

// NewWriter begins a recording in w, which the caller closes. It sets the Format of the header.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	h.Format = Format
	out := &Writer{zip: gzip.NewWriter(w)}
	if err := out.put(h); err != nil {
		return nil, err
	}
	return out, out.flush()
}

// Write adds an entry. It leaves out empty readings, like those of a source that failed. It flushes once a second, so
// that a crash of this program loses no more than that. After an error of the file, every Write returns an error.
// Entries after Close are ignored: a monitor may outlive its recording.
func (w *Writer) Write(e *Entry) error {
	if e.Sample != nil && (e.Sample.Empty() || checkStamp(e.Sample.At) != nil) {
		return nil
	}
	if err := e.check(); err != nil {
		return fmt.Errorf("an entry cannot be recorded: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	if err := w.put(e); err != nil {
		return err
	}
	if e.Sample == nil || e.Sample.At.Mono-w.flushed < flushEvery { // also for readings of the past
		return nil
	}
	w.flushed = e.Sample.At.Mono
	return w.flush()
}

// put writes one line. The reader sees it either whole or not at all.
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
	if w.size+int64(w.line.Len()) > maxBytes {
		return ErrFull
	}
	w.size += int64(w.line.Len())
	_, err := w.zip.Write(w.line.Bytes())
	return broken(err)
}

func (w *Writer) flush() error { return broken(w.zip.Flush()) }

// Close ends the recording. Without it, a Reader returns every entry up to the last flush, and then ErrCut. Close may
// be called again.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	if err := w.zip.Close(); err != nil {
		return fmt.Errorf("the recording cannot be written to its end, check its disk: %w", err)
	}
	return nil
}

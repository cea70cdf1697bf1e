package reports

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/heir"
	"github.com/stallspan/stallspan/agent/internal/perfetto"
	"github.com/stallspan/stallspan/agent/internal/version"
	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// traceFile is the file of --perfetto, which grows while a command runs.
type traceFile struct {
	*ReportFile
	path  string // of the flag
	out   flusher
	trace *perfetto.Trace // nil before begin and live, and without a file
}

// flusher is a writer with a buffer.
type flusher interface {
	io.Writer
	Flush() error
}

func openTrace(path string) (*traceFile, error) {
	file, err := OpenOutput("--perfetto", path)
	return &traceFile{ReportFile: file, path: path}, err
}

// Write is of io.Writer. It also writes to pipes.
func (f *traceFile) Write(p []byte) (int, error) {
	if err := heir.WriteAll(f.file, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Begin begins the trace of a recording.
func (f *traceFile) Begin(h recording.Header) {
	if f.file != nil {
		f.out = bufio.NewWriterSize(f, maxTraceWrite)
		f.trace = perfetto.New(f.out, h)
	}
}

// live begins the trace of this machine, if one is wanted.
func (f *traceFile) live() {
	if f.file != nil {
		f.out = newBackground(f)
		f.trace = perfetto.New(f.out, recording.ThisMachine(monitor.Boot(""), config.DefaultInterval, version.Number()))
	}
}

// save completes the trace, and prints what it lacks.
func (f *traceFile) save(whole *window.Report, windows []*window.Report) error {
	if f.trace == nil {
		return nil
	}
	if b, ok := f.out.(*background); ok {
		b.wait()
	}
	left, err := f.trace.Close(whole, windows)
	if err = errors.Join(err, f.out.Flush()); err == nil {
		err = f.finish()
	}
	if err != nil {
		return fmt.Errorf("--perfetto %s could not be written: %w", f.path, Reason(err))
	}
	for _, text := range left {
		cli.Say("%s: %s", f.path, text)
	}
	return nil
}

// Discard removes a trace that was not saved.
func (f *traceFile) Discard() {
	if b, ok := f.out.(*background); ok {
		_ = b.Flush()
	}
	f.ReportFile.Discard()
}

const (
	maxTraceWait  = 16 << 20 // bytes that wait for the disk
	maxTraceWrite = 64 << 10 // bytes that are written together
)

var errTraceBehind = fmt.Errorf("its disk makes no progress, and %d MiB wait", maxTraceWait>>20)

// background writes on a goroutine of its own, so that readings never wait for a disk.
type background struct {
	to   io.Writer
	done chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	changed *sync.Cond
	waiting []byte
	patient bool // Write waits for the disk
	closed  bool
	err     error
}

func newBackground(to io.Writer) *background {
	b := &background{to: to, done: make(chan struct{})}
	b.changed = sync.NewCond(&b.mu)
	go func() {
		defer close(b.done)
		if err := sample.Protect(b.run); err != nil {
			b.fail(err)
		}
	}()
	return b
}

func (b *background) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.patient && b.err == nil && len(b.waiting)+len(p) > maxTraceWait {
		b.changed.Wait()
	}
	if b.err == nil && len(b.waiting)+len(p) > maxTraceWait {
		b.err = errTraceBehind
	}
	if b.err != nil {
		return 0, b.err
	}
	if b.waiting = append(b.waiting, p...); len(b.waiting) >= maxTraceWrite {
		b.changed.Broadcast()
	}
	return len(p), nil
}

// Flush waits until everything is written. Nothing can be written after it.
func (b *background) Flush() error {
	b.mu.Lock()
	b.closed = true
	b.changed.Broadcast()
	b.mu.Unlock()
	<-b.done
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

func (b *background) run() {
	var bytes []byte
	for {
		if bytes = b.take(bytes[:0]); len(bytes) == 0 {
			return
		}
		if _, err := b.to.Write(bytes); err != nil {
			b.fail(err)
			return
		}
	}
}

// take exchanges an empty buffer for what waits. It returns nothing at the end.
func (b *background) take(empty []byte) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.err == nil && !b.closed && len(b.waiting) < maxTraceWrite {
		b.changed.Wait()
	}
	if b.err != nil {
		return nil
	}
	full := b.waiting
	b.waiting = empty
	b.changed.Broadcast()
	return full
}

func (b *background) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	b.changed.Broadcast()
}

// wait makes Write wait for the disk from now on: the program has ended, and all its windows come at once.
func (b *background) wait() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.patient = true
}

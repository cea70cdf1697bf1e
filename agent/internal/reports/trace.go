package reports

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

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
	path  string          // of the flag
	trace *perfetto.Trace // nil before begin and live, and without a file
	out   *bufio.Writer
	disk  *background // below out, where readings must not wait; nil for none
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
		f.disk = newBackground(f)
		f.out = bufio.NewWriterSize(f.disk, maxTraceWrite)
		f.trace = perfetto.New(f.out, recording.ThisMachine(monitor.Boot(""), config.DefaultInterval, version.Number()))
	}
}

// save completes the trace, and prints what it lacks.
func (f *traceFile) save(whole *window.Report, windows []*window.Report) error {
	if f.trace == nil {
		return nil
	}
	f.disk.wait()
	left, err := f.trace.Close(whole, windows)
	if err = errors.Join(err, f.out.Flush(), f.disk.end()); err == nil {
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
	_ = f.disk.end()
	f.ReportFile.Discard()
}

const (
	maxTraceWait  = 16 << 20 // bytes that wait for the disk
	maxTraceWrite = 64 << 10 // bytes that are written together
)

var errTraceBehind = fmt.Errorf("its disk makes no progress, and %d MiB wait", maxTraceWait>>20)

// background writes on a goroutine of its own, so that readings never wait for a disk. A nil one does nothing.
type background struct {
	waiting chan []byte
	patient atomic.Bool // Write waits for the disk
	close   sync.Once
	done    chan struct{} // closed when the goroutine has ended
	err     error         // why it ended early
}

func newBackground(to io.Writer) *background {
	b := &background{waiting: make(chan []byte, maxTraceWait/maxTraceWrite), done: make(chan struct{})}
	go func() {
		defer close(b.done)
		failed := sample.Protect(func() {
			for piece := range b.waiting {
				if _, b.err = to.Write(piece); b.err != nil {
					return
				}
			}
		})
		b.err = cmp.Or(b.err, failed)
	}()
	return b
}

// Write is of io.Writer. It takes up to maxTraceWrite bytes.
func (b *background) Write(p []byte) (int, error) {
	piece := bytes.Clone(p)
	if b.patient.Load() {
		select {
		case b.waiting <- piece:
			return len(p), nil
		case <-b.done:
			return 0, b.err
		}
	}
	select {
	case b.waiting <- piece:
		return len(p), nil
	case <-b.done:
		return 0, b.err
	default:
		return 0, errTraceBehind
	}
}

// wait makes Write wait for the disk from now on: the program has ended, and all its windows come at once.
func (b *background) wait() {
	if b != nil {
		b.patient.Store(true)
	}
}

// end waits until everything is written. Nothing can be written after it.
func (b *background) end() error {
	if b == nil {
		return nil
	}
	b.close.Do(func() { close(b.waiting) })
	<-b.done
	return b.err
}

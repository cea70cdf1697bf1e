package reports

import (
	"bufio"
	"errors"
	"fmt"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/heir"
	"github.com/stallspan/stallspan/agent/internal/perfetto"
	"github.com/stallspan/stallspan/agent/internal/version"
	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/window"
)

// traceWrite is how many bytes are written together.
const traceWrite = 64 << 10

// traceFile is the file of --perfetto, which grows while a command runs.
type traceFile struct {
	*ReportFile
	path  string          // of the flag
	trace *perfetto.Trace // nil before begin and live, and without a file
	out   *bufio.Writer
	disk  *recording.Spool // below out, where readings must not wait; nil for none
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
		f.out = bufio.NewWriterSize(f, traceWrite)
		f.trace = perfetto.New(f.out, h)
	}
}

// live begins the trace of this machine, if one is wanted.
func (f *traceFile) live() {
	if f.file != nil {
		f.disk = recording.NewSpool(f)
		f.out = bufio.NewWriterSize(f.disk, traceWrite)
		f.trace = perfetto.New(f.out, recording.ThisMachine(monitor.Boot(""), config.DefaultInterval, version.Number()))
	}
}

// save completes the trace, and prints what it lacks.
func (f *traceFile) save(whole *window.Report, windows []*window.Report) error {
	if f.trace == nil {
		return nil
	}
	if f.disk != nil {
		f.disk.Wait() // the program has ended, and all its windows come at once
	}
	left, err := f.trace.Close(whole, windows)
	if err = errors.Join(err, f.out.Flush(), f.end()); err == nil {
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
	_ = f.end()
	f.ReportFile.Discard()
}

func (f *traceFile) end() error {
	if f.disk == nil {
		return nil
	}
	return f.disk.End()
}

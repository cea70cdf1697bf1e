package attach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/agent/internal/progress"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/source/procfile"
	"github.com/stallspan/stallspan/internal/windows"
)

const (
	lookEvery = 100 * time.Millisecond // whether a file has grown
	atOnce    = 1 << 20                // bytes of it that are read at a look
	block     = 4096                   // what C and Python pass on at once is a multiple of this, if they hold output back
)

var errHeldBack = errors.New("its output comes in blocks, later than it is printed: start it with python3 -u, or " +
	"stdbuf -oL, to have epochs")

// stream is a file to which a program prints. It is read from where it ended when the watch began.
type stream struct {
	file  *os.File
	name  string
	at    int64
	lines *progress.Lines
}

// openStreams opens the files that are a program's standard output and standard error. Other outputs cannot be read
// twice: why says what they are.
func openStreams(pid int, line func([]byte)) (list []*stream, why error) {
	var first os.FileInfo
	for _, number := range []string{"1", "2"} {
		path := fmt.Sprintf("%s/%d/fd/%s", procfs.DefaultMountPoint, pid, number)
		one, err := procfile.Do(procfs.DefaultMountPoint, pid, func() opened { return openAt(path) })
		switch err = errors.Join(one.err, err); {
		case err != nil && why == nil:
			why = fmt.Errorf("its output cannot be read: %w", err)
		case err != nil:
		case first != nil && os.SameFile(first, one.info):
			_ = one.file.Close()
		default:
			first = one.info
			list = append(list, &stream{file: one.file, name: one.name, at: first.Size(), lines: progress.NewLines(line)})
		}
	}
	return list, why
}

// opened is what became of an output that was to be opened.
type opened struct {
	file *os.File
	name string
	info os.FileInfo
	err  error
}

func openAt(path string) (o opened) {
	o.name, _ = os.Readlink(path)
	switch o.info, o.err = os.Stat(path); {
	case o.err != nil:
	case !o.info.Mode().IsRegular():
		o.err = fmt.Errorf("it goes to %s, not to a file", kindOf(o.name, o.info.Mode()))
	default:
		o.file, o.err = os.Open(path)
	}
	return o
}

// kindOf names what an output is that is no file.
func kindOf(target string, mode os.FileMode) string {
	switch {
	case strings.HasPrefix(target, "/dev/pts/"), strings.HasPrefix(target, "/dev/tty"):
		return "a terminal"
	case mode&os.ModeNamedPipe != 0:
		return "a pipe"
	case mode&os.ModeSocket != 0:
		return "a socket"
	}
	return output.Printable(target)
}

// read reads what is added to the streams until the watch ends. The error says why it ended before.
func read(ctx context.Context, list []*stream) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	buf := make([]byte, atOnce)
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-look.C:
		}
		for _, s := range list {
			if err := s.read(buf); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads what was added since the last look.
func (s *stream) read(buf []byte) error {
	n, _ := s.file.ReadAt(buf, s.at) // io.EOF; any other error is that of a file system that comes back or does not
	if n == 0 {
		if info, err := s.file.Stat(); err == nil && info.Size() < s.at {
			s.at = 0 // it was emptied
		}
		return nil
	}
	if end := buf[n-1]; n < len(buf) && n%block == 0 && end != '\n' && end != '\r' {
		return errHeldBack
	}
	s.at += int64(n)
	_, _ = s.lines.Write(buf[:n]) // never fails
	return nil
}

// noSpan is the span of a window that no backend sees.
type noSpan struct{}

func begin(string, time.Time, trace.SpanContext) windows.Span { return noSpan{} }

func (noSpan) End(emit.Span)                  {}
func (noSpan) Drop()                          {}
func (noSpan) SpanContext() trace.SpanContext { return trace.SpanContext{} }
func (noSpan) Exemplar() trace.SpanContext    { return trace.SpanContext{} }

package attach

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/identity/locate"
	"github.com/stallspan/stallspan/internal/progress"
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
// twice: why says what the standard output is.
func openStreams(pid int, line func([]byte)) (list []*stream, why error) {
	var first os.FileInfo
	for _, number := range []string{"1", "2"} {
		path := fmt.Sprintf("%s/%d/fd/%s", procfs.DefaultMountPoint, pid, number)
		one, err := procfile.Do(procfs.DefaultMountPoint, pid, func() opened { return openAt(path) })
		if one.piped {
			one = openContainerLog(pid, one)
		}
		switch err = errors.Join(one.err, err); {
		case err != nil && number == "1":
			why = fmt.Errorf("its standard output cannot be read: %w", err)
		case err != nil:
		case first != nil && os.SameFile(first, one.info):
			_ = one.file.Close()
		default:
			first = one.info
			lines := progress.NewLines(unwrapped(line))
			list = append(list, &stream{file: one.file, name: one.name, at: first.Size(), lines: lines})
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

	piped bool // it is a pipe
}

func openAt(path string) (o opened) {
	o.name, _ = os.Readlink(path)
	switch o.info, o.err = os.Stat(path); {
	case o.err != nil:
	case !o.info.Mode().IsRegular():
		o.piped = o.info.Mode()&os.ModeNamedPipe != 0
		o.err = fmt.Errorf("it goes to %s, not to a file", kindOf(o.name, o.info.Mode()))
	default:
		o.file, o.err = os.Open(path)
	}
	return o
}

// containerLogs are the files into which runtimes of containers write what comes through a pipe: of the kubelet, Docker
// and Podman, with its driver k8s-file.
var containerLogs = []string{
	"/var/log/containers/*-%s.log",
	"/var/lib/docker/containers/%[1]s/%[1]s-json.log",
	"/var/lib/containers/storage/overlay-containers/%s/userdata/ctr.log",
}

// openContainerLog opens the log of a container whose process prints to a pipe.
func openContainerLog(pid int, pipe opened) opened {
	groups, _ := os.ReadFile(fmt.Sprintf("%s/%d/cgroup", procfs.DefaultMountPoint, pid)) // without it, no container
	id := ""
	for name := range strings.FieldsFuncSeq(string(groups), func(r rune) bool { return r == '/' || r == '\n' }) {
		id = cmp.Or(locate.ContainerID(name), id)
	}
	if id == "" {
		return pipe
	}
	for _, pattern := range containerLogs {
		found, _ := filepath.Glob(fmt.Sprintf(pattern, id)) // fails only with a bad pattern
		for _, path := range found {
			if o := openAt(path); o.err == nil {
				o.name = path
				return o
			}
		}
	}
	pipe.err = fmt.Errorf("%w, which the runtime of container %.12s reads, and whose log cannot be read here: run as "+
		"root on the host, with a log driver that writes files", pipe.err, id)
	return pipe
}

// unwrapped passes on what Docker wrote into its log, {"log":"Epoch 1\n",...}, and other lines as they are.
func unwrapped(line func([]byte)) func([]byte) {
	inner := progress.NewLines(line)
	return func(text []byte) {
		var docker struct {
			Log string `json:"log"`
		}
		if bytes.HasPrefix(text, []byte(`{"log":"`)) && json.Unmarshal(text, &docker) == nil {
			text = []byte(docker.Log)
		}
		_, _ = inner.Write(text) // never fails
		inner.Close()
	}
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

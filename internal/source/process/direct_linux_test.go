package process

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// tearing is a Reader after whose answer something happens, before the source reads on.
type tearing struct {
	*Direct
	then func()
}

func (r *tearing) Bytes(of []Key, into []Bytes) error {
	err := r.Direct.Bytes(of, into)
	if then := r.then; then != nil && len(of) > 1 {
		r.then = nil
		then()
	}
	return err
}

// A process may end after the reader was asked for the bytes of all, and before their times are read.
func TestCountersThroughAReader(t *testing.T) {
	if exists("/dev/shm") {
		t.Setenv("TMPDIR", "/dev/shm")
	}
	for seed := range uint64(20) {
		for _, lazy := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				randomLife(t, seed, lazy, func(s *Source, k *kernel) func(func()) {
					r := &tearing{Direct: NewDirect(filepath.Join(k.root, "proc"))}
					s.WithReader(r)
					return func(then func()) { r.then = then }
				})
			})
		}
	}
}

// A source that asks a reader finds the same as one that reads itself.
func TestReaderFindsTheSame(t *testing.T) {
	big := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(big, make([]byte, 8*megabyte), 0o600); err != nil {
		t.Fatal(err)
	}
	shell := startShell(t, &syscall.SysProcAttr{})
	shell.do("cat " + big + " >/dev/null") // before the job is followed
	wait, goOn := fifo(t, "wait")
	d := NewDirect("/proc")
	var jobs []sample.Job
	own, asks := New(""), New("").WithReader(d)
	for _, source := range []*Source{own, asks} {
		defer source.Close()
		if err := source.Add("sh", shell.Process.Pid, Options{}); err != nil {
			t.Fatal(err)
		}
	}
	shell.do("cat " + big + " >/dev/null; (read x <" + wait + ") & exec 5<" + big)
	for _, source := range []*Source{own, asks} {
		job := lookedAt(t, source)
		jobs = append(jobs, job)
	}
	goOn()
	a, b := jobs[0], jobs[1]
	if a.ReadChars != b.ReadChars || a.ReadBytes != b.ReadBytes || a.WriteBytes != b.WriteBytes || !b.HasIO ||
		a.Processes != b.Processes || len(a.Mounts) != len(b.Mounts) || len(b.Mounts) == 0 {
		t.Errorf("got %+v, want %+v", b, a)
	}
	between(t, "read", b.ReadChars, 8*megabyte, 9*megabyte)
}

// failing is a Reader that does not answer.
type failing struct{ *Direct }

func (failing) Bytes([]Key, []Bytes) error { return os.ErrDeadlineExceeded }

// late is a Reader that does not answer at first, as while a helper is started again.
type late struct {
	*Direct
	answers bool
}

func (l *late) Bytes(of []Key, into []Bytes) error {
	if !l.answers {
		return syscall.EPIPE
	}
	return l.Direct.Bytes(of, into)
}

// What a process had read before its bytes could be read for the first time is not of the job.
func TestReaderAnswersLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := tree{t, t.TempDir()}
		k.put(100, 1, 5, 'S', counts{cpuTicks: 70, readBytes: 8 << 40, readChars: 9 << 40}, counts{})
		k.children(100)
		r := &late{Direct: NewDirect(filepath.Join(k.root, "proc"))}
		source := New(k.root).WithReader(r)
		defer source.Close()
		if err := source.Add("job", 100, Options{}); err != nil {
			t.Fatal(err)
		}
		var first sample.Sample
		if err := source.Read(&first); err == nil || first.Jobs[0].HasIO {
			t.Fatalf("got %v and %+v, want an error and no bytes", err, first.Jobs[0])
		}
		r.answers = true
		for _, more := range []uint64{0, 1000} {
			k.put(100, 1, 5, 'S', counts{cpuTicks: 70, readBytes: 8<<40 + more, readChars: 9<<40 + more}, counts{})
			time.Sleep(2 * time.Second)
			if got := read(t, source).Jobs[0]; !got.HasIO || got.ReadBytes != more || got.ReadChars != more {
				t.Errorf("got %+v, want %d bytes", got, more)
			}
			time.Sleep(2 * time.Second)
			_ = read(t, source)
		}
	})
}

// Without answers the bytes are not known, and the error says why, once.
func TestReaderFails(t *testing.T) {
	shell := startShell(t, &syscall.SysProcAttr{})
	source := New("").WithReader(failing{NewDirect("/proc")})
	defer source.Close()
	if err := source.Add("sh", shell.Process.Pid, Options{}); err != nil {
		t.Fatal(err)
	}
	var got sample.Sample
	err := source.Read(&got)
	if err == nil || !strings.Contains(err.Error(), os.ErrDeadlineExceeded.Error()) || got.Jobs[0].HasIO ||
		got.Jobs[0].Processes != 1 {
		t.Errorf("got %v, %+v; want the reader's error, and no bytes", err, got.Jobs)
	}
	source.WithReader(nil)
	source.lookNow()
	if got := read(t, source).Jobs[0]; !got.HasIO {
		t.Errorf("got %+v, want bytes after the next scan", got)
	}
}

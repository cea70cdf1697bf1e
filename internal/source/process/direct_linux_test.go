package process

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

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
					t.Cleanup(r.Close)
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
	defer d.Close()
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
		job.CPUTime, job.SystemTime, job.LeaderTime, job.LeaderReady, job.LeaderSystem, job.Leaders = 0, 0, 0, 0, 0, 0
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

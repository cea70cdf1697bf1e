package baseline

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// failing is a file on a disk that fails.
type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 1, f.err }

// A file that cannot be read this time is not one that is damaged.
func TestUnreadIsNotDamaged(t *testing.T) {
	a := access{path: "x.db", write: true, broken: func(d *damage) { t.Errorf("set aside: %v", d) }}
	for _, cause := range []error{syscall.EIO, syscall.ESTALE, syscall.ENOMEM} {
		err := a.judge(verify(failing{&os.PathError{Op: "read", Path: "x.db", Err: cause}}, 8192))
		var bad *damage
		if errors.As(err, &bad) || !errors.Is(err, cause) {
			t.Errorf("%v: %v", cause, err)
		}
	}
	path := filepath.Join(t.TempDir(), "short.db")
	if err := os.WriteFile(path, grown(t)[:5000], 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	told := 0
	a.broken = func(*damage) { told++ }
	if err := a.judge(verify(file, 8192)); told != 1 || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("told %d times: %v", told, err)
	}
}

// pageFault is what a page of the mapping that could not be had is told as.
type pageFault struct{ error }

func (pageFault) Addr() uintptr { return 1 << 40 }

// A page that could not be had of a file that is whole is no damage. What bbolt itself finds wrong is.
func TestPageFault(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baseline.db")
	if err := os.WriteFile(path, grown(t), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cause any
		want  bool // damage
	}{{pageFault{errors.New("fault")}, false}, {"assertion failed", true}, {errors.New("index out of range"), true}} {
		told := 0
		a := access{path: path, write: true, until: time.Now().Add(5 * time.Second), broken: func(*damage) { told++ }}
		err := a.do(func(*bbolt.Tx) error { panic(c.cause) })
		var bad *damage
		if err == nil || errors.As(err, &bad) != c.want || (told > 0) != c.want {
			t.Errorf("%v: %v, told %d times", c.cause, err, told)
		}
	}
}

// What could not be read is tried again, though nobody has written the file meanwhile.
func TestReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baseline.db")
	learned(t, path, 5, "epoch/x")
	other, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if err := lock(other, true, time.Now()); err != nil {
		t.Fatal(err)
	}
	told := 0
	b := &Book{path: path, tell: func(error) { told++ }, known: records{}}
	b.refresh(time.Millisecond)
	if told != 1 || !b.changed() {
		t.Errorf("told %d times, to be tried again: %v", told, b.changed())
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	b.refresh(time.Minute)
	if _, known := b.Usual("epoch/x"); !known || told != 1 || b.changed() {
		t.Errorf("known %v, told %d times, to be read again: %v", known, told, b.changed())
	}
}

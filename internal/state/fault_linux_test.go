package state

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stallspan/stallspan/test/fault"
)

func init() { fault.OnFirstThread(actAs) }

// A fault at any system call leaves the old file or the new one.
func TestFaults(t *testing.T) {
	for name, prepare := range map[string]func(path string) error{
		"first": func(string) error { return nil },
		"old":   func(path string) error { f, _ := open(path); return f.add("n", 7) },
		"cut":   func(path string) error { return os.WriteFile(path, []byte(`{"version":3,"counts":{"a"`), 0o600) },
	} {
		t.Run(name, func(t *testing.T) { testFaults(t, name, prepare) })
	}
}

func testFaults(t *testing.T, name string, prepare func(path string) error) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "state", "counts.json")
	before := map[string]int{"old": 7}[name]
	fault.Each(t, fault.Program{
		Folder: folder,
		Start:  func() *exec.Cmd { return other("once", path) },
		Reset: func(t *testing.T) {
			parent := filepath.Dir(path)
			if err := errors.Join(os.RemoveAll(parent), os.MkdirAll(parent, 0o700), prepare(path)); err != nil {
				t.Fatal(err)
			}
		},
		State: func() string {
			f, _ := open(path)
			f.Report = nil
			all, err := f.Load()
			switch {
			case all["n"] == before+1:
				return fault.New
			case err == nil && all["n"] == before, name == "cut" && errors.As(err, new(*Damage)):
				return fault.Old
			case err != nil:
				return err.Error()
			}
			return "with another value"
		},
		After: func(t *testing.T) {
			f, _ := open(path)
			if err := f.add("n", 1); err != nil {
				t.Errorf("the next program: %v", err)
			}
			if all, err := f.Load(); err != nil || all["n"] <= before {
				t.Errorf("the next program: got %v, %v; want more than %d", all, err, before)
			}
		},
	})
}

package baseline

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stallspan/stallspan/test/fault"
)

func init() { fault.OnFirstThread(actAs) }

// A fault at any system call leaves the old baselines or the new ones.
func TestFaults(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "state", fileName)
	fault.Each(t, fault.Program{
		Folder: folder,
		Start:  func() *exec.Cmd { return other(t, "once", path) },
		Reset: func(t *testing.T) {
			if err := os.RemoveAll(filepath.Dir(path)); err != nil {
				t.Fatal(err)
			}
			learned(t, path, 3, "epoch/before")
		},
		State: func() string {
			all, err := List(path)
			switch {
			case err != nil:
				return err.Error()
			case len(all) == 1 && all[0].Key == "epoch/before":
				return fault.Old
			case len(all) == 2 && all[0].Key == "epoch/before" && all[1].Key == "epoch/fault":
				return fault.New
			}
			return fmt.Sprint("with ", all)
		},
		After: func(t *testing.T) {
			learned(t, path, 1, "epoch/after")
			if err := lists(path, "epoch/before", "epoch/after"); err != nil {
				t.Errorf("the next program: %v", err)
			}
		},
	})
}

// lists returns an error unless the file has these keys.
func lists(path string, keys ...Key) error {
	all, err := List(path)
	found := 0
	for _, e := range all {
		for _, key := range keys {
			if e.Key == key {
				found++
			}
		}
	}
	if err == nil && found != len(keys) {
		err = errors.New("it has " + fmt.Sprint(all))
	}
	return err
}

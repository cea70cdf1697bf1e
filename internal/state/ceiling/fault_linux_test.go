package ceiling

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stallspan/stallspan/test/fault"
)

// storeOnce makes a copy of the test program store a measurement in the file that it names.
const storeOnce = "STALLSPAN_TEST_STORE_ONCE"

func init() { fault.OnFirstThread(storeOnce) }

func TestMain(m *testing.M) {
	if path := os.Getenv(storeOnce); path != "" {
		if err := Store(path, measurement("sdb")); err != nil {
			fmt.Println(err)
		}
		return
	}
	m.Run()
}

// A fault at any system call leaves the old measurements or the new ones.
func TestFaults(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "state", "ceilings.json")
	fault.Each(t, fault.Program{
		Folder: folder,
		Start:  func() *exec.Cmd { return fault.Copy(storeOnce, path) },
		Reset: func(t *testing.T) {
			if err := os.RemoveAll(filepath.Dir(path)); err != nil {
				t.Fatal(err)
			}
			if err := Store(path, measurement("sda")); err != nil {
				t.Fatal(err)
			}
		},
		State: func() string {
			all, err := Load(path)
			switch {
			case err != nil:
				return err.Error()
			case len(all) == 1 && all[0] == measurement("sda"):
				return fault.Old
			case len(all) == 2 && all[0] == measurement("sda") && all[1] == measurement("sdb"):
				return fault.New
			}
			return fmt.Sprint("with ", all)
		},
		After: func(t *testing.T) {
			if err := Store(path, measurement("sdc")); err != nil {
				t.Errorf("the next program: %v", err)
			}
			if all, err := Load(path); err != nil || len(all) < 2 || all[0] != measurement("sda") {
				t.Errorf("the next program: got %v, %v; want sda and sdc", all, err)
			}
		},
	})
}

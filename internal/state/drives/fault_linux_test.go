package drives

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fault"
)

func init() { fault.OnFirstThread(updateOnce) }

// A fault at any system call leaves the old history or the new one.
func TestFaults(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "state", "drives.json")
	fault.Each(t, fault.Program{
		Folder: folder,
		Start:  func() *exec.Cmd { return fault.Copy(updateOnce, path) },
		Reset: func(t *testing.T) {
			if err := os.RemoveAll(filepath.Dir(path)); err != nil {
				t.Fatal(err)
			}
			newHistory(t, path, "boot").Round([]sample.Drive{disk("sda", nil)}, noon)
		},
		State: func() string {
			all, err := newFile(path, nil).Load()
			switch ids := strings.Join(slices.Sorted(maps.Keys(all)), " "); {
			case err != nil:
				return err.Error()
			case ids == "naa.sda":
				return fault.Old
			case ids == "naa.sda naa.sdb":
				return fault.New
			default:
				return "with " + ids
			}
		},
		After: func(t *testing.T) {
			newHistory(t, path, "boot").Round([]sample.Drive{disk("sda", nil), disk("sdc", nil)}, noon.Add(2*time.Hour))
			if all, err := newFile(path, nil).Load(); err != nil || all["naa.sda"] == nil || all["naa.sdc"] == nil {
				t.Errorf("the next program: got %v, %v; want sda and sdc", all, err)
			}
		},
	})
}

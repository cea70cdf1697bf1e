package recording

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/test/fault"
)

func init() { fault.OnFirstThread(recordOnce) }

// readings returns the numbers of the readings in all files, the oldest first.
func readings(path string) (numbers []int, err error) {
	for i := faultKeep - 1; i >= 0; i-- {
		text, err := os.ReadFile((&series{path: path}).name(i))
		if os.IsNotExist(err) || err == nil && len(text) == 0 {
			continue
		}
		if err != nil {
			return nil, err
		}
		samples, _ := all(text) // up to where it is cut
		for _, s := range samples {
			for _, gpu := range s.GPUs {
				var n int
				if _, err := fmt.Sscanf(gpu.ID, "%d-", &n); err != nil {
					return nil, err
				}
				numbers = append(numbers, n)
			}
		}
	}
	return numbers, nil
}

// A fault at any system call of a rotation loses only what a rotation drops, which is the oldest file.
func TestFaults(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "r.gz")
	newest := []int{6, 7, 8} // of the recording before
	fault.Each(t, fault.Program{
		Folder: folder,
		Warns:  true,
		Start:  func() *exec.Cmd { return fault.Copy(recordOnce, path) },
		Reset: func(t *testing.T) {
			for n := range faultKeep {
				if err := os.WriteFile((&series{path: path}).name(faultKeep-1-n), partOf(n), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		},
		State: func() string {
			got, err := readings(path)
			if err != nil {
				return err.Error()
			}
			if slices.Equal(got, append(slices.Clone(newest), 9, 10, 11, 12, 13, 14)) {
				return fault.New
			}
			for i := 1; i < len(got); i++ {
				if got[i] != got[i-1]+1 {
					return fmt.Sprint("with a gap: ", got)
				}
			}
			if !strings.Contains(fmt.Sprint(got), strings.Trim(fmt.Sprint(newest), "[]")) {
				return fmt.Sprint("without the newest part: ", got)
			}
			return fault.Old
		},
		After: func(t *testing.T) {
			before, _ := readings(path)
			p, err := Create(path, Header{ID: "next"}, Rotation{Keep: faultKeep}, nil)
			if err != nil {
				t.Fatalf("the next recording: %v", err)
			}
			if err := cmp.Or(p.Write(&numbered(99)[0]), p.Close()); err != nil {
				t.Errorf("the next recording: %v", err)
			}
			got, err := readings(path)
			if len(got) < 2 || got[len(got)-1] != 99 || got[len(got)-2] != before[len(before)-1] {
				t.Errorf("the next recording: got %v, %v; want 99 after %v", got, err, before)
			}
		},
	})
}

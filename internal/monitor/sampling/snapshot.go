package sampling

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// gpusChanged reports whether GPUs came, went, or changed in what can be read of them.
func gpusChanged(old, now []sample.GPU) bool {
	return !slices.EqualFunc(old, now, func(a, b sample.GPU) bool {
		return a.ID == b.ID && a.Status == b.Status && (a.Has^b.Has)&sample.LacksBusy == 0
	})
}

func (s *state) gpuIDs() []string {
	ids := s.history.IDs(history.GPUBusyTime)
	slices.Sort(ids)
	return ids
}

// Boot returns the start of the machine below root, from the line "btime" of /proc/stat, to the second. It returns the
// zero time if there is no such line.
func Boot(root string) time.Time {
	file, err := os.Open(filepath.Join("/", root, "proc/stat"))
	if err != nil {
		return time.Time{}
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20) // the line of interrupts is long
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "btime "); ok {
			if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
				return time.Unix(seconds, 0)
			}
		}
	}
	return time.Time{}
}

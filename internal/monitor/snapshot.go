package monitor

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// learn keeps a reading as the newest of its kind. m.mu is held.
func (m *Monitor) learn(s *sample.Sample) {
	if len(s.GPUs) > 0 {
		same := func(a, b sample.GPU) bool {
			return a.ID == b.ID && a.Status == b.Status && (a.Has^b.Has)&sample.LacksBusy == 0
		}
		m.stale = m.stale || !slices.EqualFunc(m.latest.GPUs.GPUs, s.GPUs, same)
	}
	if s.At.Mono > m.newest.Mono {
		m.newest = s.At
	}
	m.latest.Learn(s)
	if len(s.Disks) > 0 {
		m.kinds.keep(s.Disks)
	}
	m.remember(s.Jobs)
	if s.GPUProcessesRead {
		m.hold(s.GPUProcesses)
	}
}

// Collect is a copy of the newest readings, with the last ones of processes that ended since Collect was called before.
func (m *Monitor) Collect() sample.Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.latest.Clone()
	now.Ceilings = m.ceilings.All()
	m.latest.Forget()
	return now
}

// Boot reads when the machine below root started, from the line "btime" of /proc/stat, in seconds; the zero time where
// it is not told.
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

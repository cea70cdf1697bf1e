package monitor

import (
	"cmp"
	"errors"
	"fmt"
)

// Sight is how much of a machine is watched.
type Sight struct{ GPUs, Disks, Cores int }

// Sight counts what was there at the newest readings: disks without their partitions and what is stacked on them.
func (m *Monitor) Sight() (s Sight) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.latest.Disks.Disks {
		if m.latest.Disks.Disks[i].Leaf {
			s.Disks++
		}
	}
	s.GPUs, s.Cores = len(m.latest.GPUs.GPUs), len(m.latest.Cores.Cores)
	return s
}

// Blind says why nothing at all is watched, or is nil. setting is what the config calls the folder that stands for "/".
func (m *Monitor) Blind(setting string) error {
	if m.Sight() != (Sight{}) {
		return nil
	}
	why := cmp.Or(append(m.Problems(), errors.New("no source answers"))...)
	return fmt.Errorf("nothing can be watched here, look at %s: %w", setting, why)
}

func (s Sight) String() string {
	return Count(s.GPUs, "GPU") + ", " + Count(s.Disks, "disk") + " and " + Count(s.Cores, "CPU core")
}

// Count is a number of things in words: "no disk", "1 disk", "2 disks".
func Count(n int, what string) string {
	switch n {
	case 0:
		return "no " + what
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

package sampling

import (
	"cmp"
	"errors"
	"fmt"
)

// Inventory counts the devices of a machine.
type Inventory struct{ GPUs, Disks, Cores int }

// Inventory counts the devices of the newest readings. Partitions, and disks that are stacked on others, do not count.
func (r *Readings) Inventory() (n Inventory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	latest := &r.now.latest
	for i := range latest.Disks.Disks {
		if latest.Disks.Disks[i].Leaf {
			n.Disks++
		}
	}
	n.GPUs, n.Cores = len(latest.GPUs.GPUs), len(latest.Cores.Cores)
	return n
}

// CheckSources returns an error if no device at all could be read. setting names the config key of the folder that
// stands for "/".
func (r *Readings) CheckSources(setting string) error {
	if r.Inventory() != (Inventory{}) {
		return nil
	}
	why := cmp.Or(append(r.problems.All(), errors.New("no source returned a reading"))...)
	return fmt.Errorf("no device can be read, check %s: %w", setting, why)
}

func (n Inventory) String() string {
	return Count(n.GPUs, "GPU") + ", " + Count(n.Disks, "disk") + " and " + Count(n.Cores, "CPU core")
}

// Count returns a number of things in words: "no disk", "1 disk", "2 disks".
func Count(n int, what string) string {
	switch n {
	case 0:
		return "no " + what
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

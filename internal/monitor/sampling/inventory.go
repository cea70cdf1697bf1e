package sampling

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
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

// GPUs returns the GPUs of the newest reading.
func (r *Readings) GPUs() []sample.GPU {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.now.latest.GPUs.GPUs)
}

// Disks returns the names of the disks of the newest reading, without partitions and disks that are stacked on others.
func (r *Readings) Disks() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	latest := &r.now.latest
	for i := range latest.Disks.Disks {
		if d := &latest.Disks.Disks[i]; d.Leaf {
			names = append(names, d.Name)
		}
	}
	return names
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

// maxListedGPUs bounds the GPUs in an error of CheckGPUs.
const maxListedGPUs = 16

// CheckGPUs returns an error for the first ID that no GPU of this machine has or had, except where none is read: then
// there is no driver, or it does not answer.
func (r *Readings) CheckGPUs(ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	known := r.history.Known(history.GPUBusyTime)
	r.mu.Lock()
	for i := range r.now.latest.GPUs.GPUs { // also one that the history has no room for
		known = append(known, r.now.latest.GPUs.GPUs[i].ID)
	}
	r.mu.Unlock()
	slices.Sort(known)
	known = slices.Compact(known)
	for _, id := range ids {
		if len(known) == 0 || slices.Contains(known, id) {
			continue
		}
		list, more := known, ""
		if len(known) > maxListedGPUs {
			list, more = known[:maxListedGPUs], fmt.Sprintf(" and %d more", len(known)-maxListedGPUs)
		}
		return fmt.Errorf("this machine has no GPU %.60q: name one of %s%s", id, strings.Join(list, ", "), more)
	}
	return nil
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

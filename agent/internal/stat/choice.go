package stat

import (
	"slices"

	"github.com/stallspan/stallspan/internal/sample"
)

// choice is the devices that stat shows.
type choice struct {
	names     []string // of disks; nil for all
	all       bool     // ALL
	skipIdle  bool     // -z
	onlyDisks bool     // -d
	table     bool     // the output is for a person: stacked devices show from their first I/O on

	active map[string]bool // stacked devices that had I/O
}

// missing returns the first name that is not among the disks, or "".
func (c *choice) missing(disks []sample.Disk) string {
	for _, name := range c.names {
		if !slices.ContainsFunc(disks, func(d sample.Disk) bool { return d.Name == name }) {
			return name
		}
	}
	return ""
}

// apply removes what is not shown.
func (c *choice) apply(r *Rates) {
	if c.onlyDisks {
		r.GPUs = nil
	}
	r.Disks = slices.DeleteFunc(r.Disks, func(d Disk) bool { return !c.shows(&d) })
}

func (c *choice) shows(d *Disk) bool {
	idle := d.Idle()
	switch {
	case len(c.names) > 0 && !c.all && !slices.Contains(c.names, d.Name), c.skipIdle && idle:
		return false
	case !c.table || d.Leaf || c.all || len(c.names) > 0:
		return true
	}
	if !idle {
		if c.active == nil {
			c.active = map[string]bool{}
		}
		c.active[d.Name] = true // as many as the machine has devices
	}
	return c.active[d.Name]
}

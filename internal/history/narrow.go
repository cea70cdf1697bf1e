package history

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A machine may have more devices than there is room for with full rings. Then columns become narrow: a tenth of the
// rows of the two finest tiers. With the default tiers that is a minute of readings every 100 ms and twelve minutes of
// one a second. Windows that are announced have readings of their own and lose nothing by it.

// narrow is, in place of a number of tiers, that of narrow columns.
const narrow = 0

const (
	tenth       = 10
	narrowTiers = 2
)

// tierCount returns how many tiers of all a group is stored on.
func tierCount(tiers int, k kind, all int) int {
	switch {
	case tiers != narrow:
		return tiers
	case k.brief(): // as small as that already
		return 1
	}
	return min(narrowTiers, all)
}

// rowsOf returns how many values a column has on a tier of so many rows, if it is stored on so many tiers.
func (k kind) rowsOf(tier, tiers int) int {
	if tiers == narrow && !k.brief() && tier%tenth == 0 {
		return tier / tenth
	}
	return k.rows(tier)
}

// shrink takes the older rows of the largest group, so that there is more room for one of a kind. Of equally large ones
// it takes those of the device that has done least. It reports false if all are narrow.
func (h *History) shrink(k kind) bool {
	var from *axis
	var found groupKey
	var size int
	for i := range h.axes {
		for key, g := range h.axes[i].groups {
			if !key.kind.shrinks() || k == kindDisk && key.kind != kindDisk || g.tiers == narrow {
				continue
			}
			bytes := h.size(key.kind, g.tiers)
			if from == nil || cmp.Or(cmp.Compare(bytes, size), -g.compareDone(from.groups[found])) > 0 {
				from, found, size = &h.axes[i], key, bytes
			}
		}
	}
	if from == nil {
		return false
	}
	g := from.groups[found]
	h.charge(found.kind, g.tiers, -1)
	if g.tiers > 1 {
		g.tiers = 1
		for i := range g.columns {
			g.columns[i].tiers = slices.Clone(g.columns[i].tiers[:1])
		}
	} else {
		g.tiers = narrow
		g.narrow(from)
	}
	h.charge(found.kind, g.tiers, 1)
	return true
}

// shrinks reports whether there may be many devices of a kind, so that each may have to do with fewer rows.
func (k kind) shrinks() bool {
	switch k {
	case kindDisks, kindHost, kindHostNow, kindJobNow, kindLayer, kindNone:
		return false
	}
	return !k.ofMount()
}

// compareDone compares how much two devices have done.
func (g *group) compareDone(other *group) int {
	sum := func(g *group) (sum float64) {
		for i := range g.columns {
			sum += g.columns[i].value
		}
		return sum
	}
	return cmp.Compare(sum(g), sum(other))
}

// narrow makes the columns on the finest tier narrow ones, with the rows that they have.
func (g *group) narrow(a *axis) {
	fresh := make([][]rows, len(g.columns))
	for i := range tierCount(narrow, g.key.kind, len(a.tiers)) {
		for c, r := range newRows(len(g.columns), g.key.kind.rowsOf(len(a.tiers[i].times), narrow)) {
			fresh[c] = append(fresh[c], r)
		}
	}
	for c := range g.columns {
		g.columns[c].narrow(a, fresh[c])
	}
}

func (c *column) narrow(a *axis, fresh []rows) {
	for i := range fresh {
		t, r := &a.tiers[i], &fresh[i]
		r.narrow = true
		for r.from = t.next; r.from > t.first() && t.at(r.from-1) >= c.since; {
			r.from--
		}
		for n := max(r.from, t.next-r.size); n < t.next; n++ {
			if m := t.at(n); c.tiers[0].covers(&a.tiers[0], m) {
				r.put(t.index(n), c.tiers[0].level(&a.tiers[0], m).value)
			} else {
				r.kept = n + 1
			}
		}
	}
	c.tiers = fresh
}

// ErrFull is the error for devices that do not fit into MaxBytes.
var ErrFull = errors.New("the history has no room")

// refused are the devices without room.
type refused struct {
	count int                   // of attempts
	known map[groupKey]struct{} // since something was dropped
	err   error                 // with the names of named devices
	named int
}

// Bounds of the names of refused devices.
const (
	maxRefused = 4096
	maxNamed   = 8
)

func (r *refused) add(key groupKey) {
	r.count++
	if r.known == nil {
		r.known = map[groupKey]struct{}{}
	}
	if len(r.known) < maxRefused {
		r.known[key] = struct{}{}
	}
}

// still reports whether a device was refused before, and nothing was dropped since.
func (r *refused) still(key groupKey) bool {
	_, known := r.known[key]
	if known {
		r.count++
	}
	return known
}

// since returns an error with names if more was refused than before.
func (r *refused) since(before int) error {
	if r.count == before {
		return nil
	}
	if r.err == nil || r.named != len(r.known) {
		r.err, r.named = r.describe(), len(r.known)
	}
	return r.err
}

func (r *refused) describe() error {
	distinct := map[string]struct{}{} // a device may have several groups of columns
	for key := range r.known {
		distinct[key.forPeople()] = struct{}{}
	}
	names := slices.Sorted(maps.Keys(distinct))
	text := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("%w for %s: reports go without them", ErrFull, text)
}

func (k groupKey) forPeople() string {
	switch k.kind {
	case kindDisk:
		return "disk " + k.id
	case kindGPU, kindNone:
		return "GPU " + k.id
	case kindJob, kindJobNow:
		return "job " + k.id
	case kindIO, kindCPUPressure:
		return "the pressure of " + k.id
	case kindMountRead, kindMountWrite, kindMountOther, kindMountWaiting:
		return "the mount " + k.id
	}
	return "a ledger" // whose id is not for people
}

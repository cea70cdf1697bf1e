package compare

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stallspan/stallspan/internal/explain"
)

// DiskPair is the work of one disk in both windows, for all programs. A or B is absent if it did nothing.
type DiskPair struct {
	Name string   `json:"name"`
	A    *DiskUse `json:"a,omitempty"`
	B    *DiskUse `json:"b,omitempty"`
}

// DiskUse is the work of one disk. The awaits are nil without operations.
type DiskUse struct {
	ReadBytes  uint64   `json:"read_bytes"`
	ReadAwait  *float64 `json:"read_await_s,omitempty"`
	WriteBytes uint64   `json:"write_bytes"`
	WriteAwait *float64 `json:"write_await_s,omitempty"`
}

// maxDisks are named in sentences. The JSON has all.
const maxDisks = 3

// disks compares the disks if storage is among the reasons, sorted by the bytes moved.
func (p *Pair) disks(a, b []explain.Disk) {
	because := p.reasons()
	if !slices.ContainsFunc(because, func(part Part) bool { return part.Part == Storage }) {
		return
	}
	at := map[string]int{}
	use := func(d *explain.Disk) (*DiskPair, *DiskUse) {
		i, known := at[d.Name]
		if !known {
			i = len(p.Disks)
			at[d.Name] = i
			p.Disks = append(p.Disks, DiskPair{Name: d.Name})
		}
		return &p.Disks[i], &DiskUse{d.ReadBytes, d.ReadAwait, d.WriteBytes, d.WriteAwait}
	}
	for i := range a {
		both, used := use(&a[i])
		both.A = used
	}
	for i := range b {
		both, used := use(&b[i])
		both.B = used
	}
	slices.SortStableFunc(p.Disks, func(x, y DiskPair) int { return cmp.Compare(y.moved(), x.moved()) })
	for i := range p.Disks[:min(maxDisks, len(p.Disks))] {
		p.Notes = append(p.Notes, p.Disks[i].sentence())
	}
}

// moved is the bytes of both windows. It is a float because a sum of four may exceed a uint64.
func (d *DiskPair) moved() float64 { return d.read() + d.written() }

func (d *DiskPair) read() float64 { return float64(d.A.or().ReadBytes) + float64(d.B.or().ReadBytes) }

func (d *DiskPair) written() float64 {
	return float64(d.A.or().WriteBytes) + float64(d.B.or().WriteBytes)
}

// or is the work of a disk that did nothing, in place of nil.
func (u *DiskUse) or() *DiskUse { return cmp.Or(u, &DiskUse{}) }

// sentence describes reads or writes, whichever moved more bytes.
func (d *DiskPair) sentence() string {
	a, b := d.A.or(), d.B.or()
	if d.written() > d.read() {
		return fmt.Sprintf("%s wrote %s in A and %s in B.", d.Name, amount(a.WriteBytes, a.WriteAwait, "write"),
			amount(b.WriteBytes, b.WriteAwait, "write"))
	}
	return fmt.Sprintf("%s read %s in A and %s in B.", d.Name, amount(a.ReadBytes, a.ReadAwait, "read"),
		amount(b.ReadBytes, b.ReadAwait, "read"))
}

func amount(bytes uint64, await *float64, operation string) string {
	switch {
	case bytes == 0:
		return "nothing"
	case await == nil:
		return size(bytes)
	}
	return fmt.Sprintf("%s (a %s took %s)", size(bytes), operation, explain.Duration(*await))
}

func size(bytes uint64) string {
	v := float64(bytes)
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if v < 999.5 { // three digits, then the next unit
			return fmt.Sprintf("%.3g %s", v, unit)
		}
		v /= 1024
	}
	return fmt.Sprintf("%.1f TiB", v)
}

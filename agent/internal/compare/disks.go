package compare

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stallspan/stallspan/internal/window"
)

// DiskPair is what one disk did in both windows, for anyone; A or B is absent where it did nothing.
type DiskPair struct {
	Name string   `json:"name"`
	A    *DiskUse `json:"a,omitempty"`
	B    *DiskUse `json:"b,omitempty"`
}

// DiskUse is the work of one disk. The awaits are nil where there was no operation.
type DiskUse struct {
	ReadBytes  uint64   `json:"read_bytes"`
	ReadAwait  *float64 `json:"read_await_s,omitempty"`
	WriteBytes uint64   `json:"write_bytes"`
	WriteAwait *float64 `json:"write_await_s,omitempty"`
}

// mostDisks are named in words; the JSON has them all.
const mostDisks = 3

// disks sets the disks side by side where waiting for storage is among the reasons, those that moved most in front.
func (p *Pair) disks(a, b []Disk) {
	because := p.reasons()
	if !slices.ContainsFunc(because, func(part Part) bool { return part.Part == Storage }) {
		return
	}
	at := map[string]int{}
	use := func(d *Disk) (*DiskPair, *DiskUse) {
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
	for i := range p.Disks[:min(mostDisks, len(p.Disks))] {
		p.Notes = append(p.Notes, p.Disks[i].sentence())
	}
}

// moved is the bytes of both windows, as a float as a sum of four can be too large for a uint64.
func (d *DiskPair) moved() float64 {
	return d.A.read() + d.A.written() + d.B.read() + d.B.written()
}

func (u *DiskUse) read() float64 {
	if u == nil {
		return 0
	}
	return float64(u.ReadBytes)
}

func (u *DiskUse) written() float64 {
	if u == nil {
		return 0
	}
	return float64(u.WriteBytes)
}

// sentence tells of reading or of writing, whichever moved more.
func (d *DiskPair) sentence() string {
	verb, text := "read", (*DiskUse).reading
	if d.A.written()+d.B.written() > d.A.read()+d.B.read() {
		verb, text = "wrote", (*DiskUse).writing
	}
	return fmt.Sprintf("%s %s %s in A and %s in B.", d.Name, verb, text(d.A), text(d.B))
}

func (u *DiskUse) reading() string {
	if u == nil || u.ReadBytes == 0 {
		return "nothing"
	}
	return amount(u.ReadBytes, u.ReadAwait)
}

func (u *DiskUse) writing() string {
	if u == nil || u.WriteBytes == 0 {
		return "nothing"
	}
	return amount(u.WriteBytes, u.WriteAwait)
}

func amount(bytes uint64, await *float64) string {
	if await == nil {
		return size(bytes)
	}
	return fmt.Sprintf("%s (await %s)", size(bytes), window.Short(*await))
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

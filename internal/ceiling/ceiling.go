// Package ceiling learns what each disk can do, from what it was seen to do: the highest throughput over about a second.
// What nobody has asked of a disk it cannot have shown, so a ceiling is what was seen so far and no more. What stallspan
// bench has measured of a disk counts as seen: the package keeps it in a file, by the identity of the disk.
package ceiling

import (
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Over what stretch of time throughput is measured.
const (
	second  = 950 * time.Millisecond // at least: readings come a little early or late
	longest = 2100 * time.Millisecond
	apart   = 95 * time.Millisecond // between two readings that are kept
	kept    = 24                    // readings of a disk, so that they cover longest
	away    = 10                    // readings without a disk, after which another one may have its name
)

// mostDisks bounds what is learned of. No machine has more.
const mostDisks = 1024

// fastest is faster than any device, in bytes a second: a counter that grows like that is broken.
const fastest = 1 << 40

// Learner learns from readings of disks. The zero value is ready. It is not safe for concurrent use.
type Learner struct {
	disks map[string]*disk
	known map[string]sample.Ceiling // what was measured, by the names of the disks
	told  []sample.Ceiling          // what All gave; nil when that is out of date
	at    time.Duration             // of the newest reading
	last  int                       // how many readings there were
}

type disk struct {
	best    sample.Ceiling
	seen    int           // the number of the reading that it was in last
	reset   time.Duration // Disk.Reset of its readings
	marks   [kept]mark
	n, next int // marks that are there, and where the next one goes
}

type mark struct {
	at          time.Duration
	read, write uint64
}

// Learn takes a reading of all disks, of which it looks at those that stand on no other. A reading that is no newer than
// the one before is passed over. A disk whose counters fell, or that was away, may be another device: it begins anew.
func (l *Learner) Learn(s *sample.Sample) {
	if len(s.Disks) == 0 || s.At.Mono <= l.at {
		return
	}
	l.at = s.At.Mono
	l.last++
	for i := range s.Disks {
		d := &s.Disks[i]
		if !d.Leaf {
			continue
		}
		known := l.disks[d.Name]
		if known == nil {
			if known = l.begin(d); known == nil {
				continue
			}
		}
		if l.last-known.seen > away || known.reset != d.Reset.Mono {
			*known = disk{best: sample.Ceiling{Disk: known.best.Disk}, reset: d.Reset.Mono}
			delete(l.known, d.Name)
			l.told = nil
		}
		known.seen = l.last
		if known.learn(mark{l.at, d.ReadBytes, d.WriteBytes}) {
			l.told = nil
		}
	}
}

// begin makes room for a disk; it is nil where there is none.
func (l *Learner) begin(of *sample.Disk) *disk {
	if l.disks == nil {
		l.disks = map[string]*disk{}
	}
	if len(l.disks) >= mostDisks {
		for other, d := range l.disks {
			if l.last-d.seen > away {
				delete(l.disks, other)
				delete(l.known, other)
				l.told = nil
			}
		}
		if len(l.disks) >= mostDisks {
			return nil
		}
	}
	d := &disk{best: sample.Ceiling{Disk: of.Name}, seen: l.last, reset: of.Reset.Mono}
	l.disks[of.Name] = d
	return d
}

func (d *disk) newest() *mark { return &d.marks[(d.next+kept-1)%kept] }

// learn says whether now is the end of the busiest second so far.
func (d *disk) learn(now mark) (more bool) {
	if d.n > 0 && now.at-d.newest().at < apart {
		return false
	}
	for i := 1; i <= d.n; i++ { // from the newest back to the first that is a second old
		before := d.marks[(d.next+kept-i)%kept]
		length := now.at - before.at
		if length < second {
			continue
		}
		if length <= longest {
			more = d.reach(now, before, length.Seconds())
		}
		break
	}
	d.marks[d.next] = now
	d.next, d.n = (d.next+1)%kept, min(d.n+1, kept)
	return more
}

func (d *disk) reach(now, before mark, seconds float64) (more bool) {
	for _, way := range [...]struct {
		best  *float64
		moved uint64
	}{{&d.best.Read, now.read - before.read}, {&d.best.Write, now.write - before.write}} {
		if speed := float64(way.moved) / seconds; speed > *way.best && speed < fastest {
			*way.best, more = speed, true
		}
	}
	return more
}

// Know takes over what was measured of the disks that are there, in place of all that was taken over before. It counts as
// seen: a ceiling is never under it. A disk that is replaced under its name loses it with what was learned.
func (l *Learner) Know(measured []sample.Ceiling) {
	l.known = make(map[string]sample.Ceiling, len(measured))
	for _, c := range measured[:min(len(measured), mostDisks)] {
		l.known[c.Disk] = c
	}
	l.told = nil
}

// All is what was learned so far, by the names of the disks. It must not be changed, and does not change.
func (l *Learner) All() []sample.Ceiling {
	if l.told == nil {
		for name, d := range l.disks {
			c, known := d.best, l.known[name]
			c.Read, c.Write, c.ReadAwait = max(c.Read, known.Read), max(c.Write, known.Write), known.ReadAwait
			if c.Read > 0 || c.Write > 0 {
				l.told = append(l.told, c)
			}
		}
		slices.SortFunc(l.told, func(a, b sample.Ceiling) int { return strings.Compare(a.Disk, b.Disk) })
	}
	return l.told
}

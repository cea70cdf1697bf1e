// Package ceiling keeps the ceiling of each disk: the highest throughput that it reached over about a second, or that
// stallspan bench measured. A ceiling is a lower bound: a disk may be faster than any load so far.
package ceiling

import (
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Throughput is measured between two readings that are about a second apart.
const (
	minInterval = 950 * time.Millisecond // readings may be a little early or late
	maxInterval = 2100 * time.Millisecond
	minSpacing  = 95 * time.Millisecond // between two stored readings
	maxStored   = 24                    // readings of a disk, enough for maxInterval
	maxAbsences = 10                    // readings without a disk, after which its name may belong to another one
)

// maxDisks bounds the disks of a Learner.
const maxDisks = 1024

// maxThroughput is above that of any device, in bytes/s. A counter that grows faster is broken.
const maxThroughput = 1 << 40

// Learner learns ceilings from disk readings. The zero value is ready. It is not safe for concurrent use.
type Learner struct {
	disks    map[string]*disk
	measured map[string]sample.Ceiling // by disk name
	all      []sample.Ceiling          // cached result of All; nil if it is out of date
	at       time.Duration             // Stamp.Mono of the newest reading
	readings int                       // readings so far
}

type disk struct {
	best    sample.Ceiling
	newest  int           // number of the last reading that contained the disk
	reset   time.Duration // Stamp.Mono of Disk.Reset
	stored  [maxStored]reading
	n, next int // stored readings, and the place of the next one
}

type reading struct {
	at          time.Duration
	read, write uint64        // bytes
	reading     time.Duration // sum over reads
}

// fullQueue is the number of reads in flight from which the disk decides how fast it reads, and not a program that asks
// for one after the other.
const fullQueue = 2

// Learn takes a reading of all disks and uses the leaves. It ignores a reading that is not newer than the last one. A
// disk that was absent, or has restarted counters, may be another device: what was learned of it is dropped.
func (l *Learner) Learn(s *sample.Sample) {
	if len(s.Disks) == 0 || s.At.Mono <= l.at {
		return
	}
	l.at = s.At.Mono
	l.readings++
	for i := range s.Disks {
		now := &s.Disks[i]
		if !now.Leaf {
			continue
		}
		d := l.disks[now.Name]
		if d == nil {
			if d = l.add(now); d == nil {
				continue
			}
		}
		if l.readings-d.newest > maxAbsences || d.reset != now.Reset.Mono {
			*d = disk{best: sample.Ceiling{Disk: now.Name}, reset: now.Reset.Mono}
			delete(l.measured, now.Name)
			l.all = nil
		}
		d.newest = l.readings
		if d.learn(reading{l.at, now.ReadBytes, now.WriteBytes, now.ReadTicks}) {
			l.all = nil
		}
	}
}

// add returns a new disk, or nil if there is no room.
func (l *Learner) add(of *sample.Disk) *disk {
	if l.disks == nil {
		l.disks = map[string]*disk{}
	}
	if len(l.disks) >= maxDisks {
		for name, d := range l.disks {
			if l.readings-d.newest > maxAbsences {
				delete(l.disks, name)
				delete(l.measured, name)
				l.all = nil
			}
		}
		if len(l.disks) >= maxDisks {
			return nil
		}
	}
	d := &disk{best: sample.Ceiling{Disk: of.Name}, newest: l.readings, reset: of.Reset.Mono}
	l.disks[of.Name] = d
	return d
}

// learn adds a reading. It reports whether the ceiling rose.
func (d *disk) learn(now reading) (rose bool) {
	if d.n > 0 && now.at-d.before(1).at < minSpacing {
		return false
	}
	for i := 1; i <= d.n; i++ { // from the newest to the first that is old enough
		before := d.before(i)
		interval := now.at - before.at
		if interval < minInterval {
			continue
		}
		if interval <= maxInterval {
			rose = raise(&d.best.Read, now.read-before.read, interval)
			rose = raise(&d.best.Write, now.write-before.write, interval) || rose
			if now.reading-before.reading >= fullQueue*interval {
				rose = raise(&d.best.Full, now.read-before.read, interval) || rose
			}
		}
		break
	}
	d.stored[d.next] = now
	d.next, d.n = (d.next+1)%maxStored, min(d.n+1, maxStored)
	return rose
}

// before returns the stored reading that is i places before the next one.
func (d *disk) before(i int) *reading { return &d.stored[(d.next+maxStored-i)%maxStored] }

func raise(best *float64, moved uint64, interval time.Duration) bool {
	throughput := float64(moved) / interval.Seconds()
	if throughput <= *best || throughput >= maxThroughput {
		return false
	}
	*best = throughput
	return true
}

// Know replaces the measurements of the disks that exist. A ceiling is at least as high as the measurement. A disk that
// is replaced under its name loses its measurement.
func (l *Learner) Know(measured []sample.Ceiling) {
	l.measured = make(map[string]sample.Ceiling, len(measured))
	for _, c := range measured[:min(len(measured), maxDisks)] {
		l.measured[c.Disk] = c
	}
	l.all = nil
}

// All returns the ceilings, sorted by disk. The slice is never changed, by the Learner or by callers.
func (l *Learner) All() []sample.Ceiling {
	if l.all == nil {
		for name, d := range l.disks {
			c, m := d.best, l.measured[name]
			c.Read, c.Write, c.ReadAwait = max(c.Read, m.Read), max(c.Write, m.Write), m.ReadAwait
			c.Full = max(c.Full, m.Read)
			if c.Read > 0 || c.Write > 0 {
				l.all = append(l.all, c)
			}
		}
		slices.SortFunc(l.all, func(a, b sample.Ceiling) int { return strings.Compare(a.Disk, b.Disk) })
	}
	return l.all
}

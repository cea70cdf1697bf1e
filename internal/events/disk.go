package events

import (
	"fmt"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// When a disk has as much to do as it can. Each alone says little: a device that serves operations in parallel has a deep
// queue and nobody waits, one that has never done more may yet be able to, and an operation takes longer when it is larger.
const (
	deepQueue   = 2.0 // operations under way, in the mean
	nearCeiling = 0.8 // share of the highest throughput, or of the most operations, that was ever seen of it
	longAwait   = 2.0 // times as long as an operation takes it at its best, as was seen or stallspan bench has measured
)

// saturationOver is the time over which the queue is taken, and best is that over which a disk shows what it can do.
const (
	saturationOver = time.Minute
	best           = saturationOver / 12
	enough         = 20 // operations within best, without which their mean says nothing
)

// disk is what is remembered of one disk.
type disk struct {
	counts    stretch[sample.Disk]
	seen      bool
	most      float64 // operations a second, over best
	leastWait float64 // seconds an operation, over best; 0 for none seen yet
	stuck     bool    // that was told of it last
}

// busy is what a disk did over a while.
type busy struct {
	queue, operations, await float64 // mean; a second; seconds
	read, write              float64 // bytes a second
	stuck                    bool    // something is under way, and nothing was completed
}

func (w *Watch) saturation(s *sample.Sample, ceilings []sample.Ceiling) {
	at := s.At.Mono
	for _, d := range w.disks {
		d.seen = false
	}
	for i := range s.Disks {
		now := &s.Disks[i]
		if !now.Leaf {
			continue
		}
		d := w.disks[now.Name]
		if d == nil {
			if len(w.disks) >= most {
				continue
			}
			d = &disk{}
			w.disks[now.Name] = d
		}
		d.seen = true
		score, did := d.look(at, now, ceilings)
		if t, changed := w.full.Look(now.Name, w.now.Mono, score); changed {
			w.saySaturated(t, did)
		}
	}
	for _, t := range w.full.Rest(w.now.Mono) {
		w.saySaturated(t, busy{})
	}
	for name, d := range w.disks {
		if !d.seen {
			delete(w.disks, name)
		}
	}
}

// look gives how near the disk was to all that it can do over the last minute: 1 and more is saturated. It is NaN while
// that is not known.
func (d *disk) look(at time.Duration, now *sample.Disk, ceilings []sample.Ceiling) (score float64, did busy) {
	if d.counts.n > 0 && !now.Continues(&d.counts.newest().value) {
		*d = disk{seen: true} // another device may have the name now
	}
	if d.counts.due(at, saturationOver) {
		if d.counts.n > 0 {
			last := d.counts.newest()
			d.learn(did.of(&last.value, now, at-last.at), at-last.at)
		}
		d.counts.add(at, *now)
	}
	before := d.counts.before(at, saturationOver)
	if before == nil {
		return unknown, busy{}
	}
	did = busy{}
	did.of(&before.value, now, at-before.at)
	return d.score(&did, ceilingOf(ceilings, now.Name)), did
}

func (d *disk) learn(did *busy, over time.Duration) {
	if over > 2*best || did.operations*over.Seconds() < enough {
		return
	}
	d.most = max(d.most, did.operations)
	if d.leastWait == 0 || did.await < d.leastWait {
		d.leastWait = did.await
	}
}

func (d *disk) score(did *busy, c sample.Ceiling) float64 {
	if did.stuck {
		return 1
	}
	share := 0.0
	if c.Read > 0 {
		share += did.read / c.Read
	}
	if c.Write > 0 {
		share += did.write / c.Write
	}
	if d.most > 0 {
		share = max(share, did.operations/d.most)
	}
	least := d.leastWait
	if measured := c.ReadAwait.Seconds(); measured > 0 && (least == 0 || measured < least) {
		least = measured
	}
	wait := 0.0
	if least > 0 {
		wait = did.await / least
	}
	return min(did.queue/deepQueue, share/nearCeiling, wait/longAwait)
}

// of fills b with what a disk did between two readings, and gives it.
func (b *busy) of(from, to *sample.Disk, over time.Duration) *busy {
	d, ok := to.Since(from, over)
	if !ok {
		return b
	}
	seconds, n := over.Seconds(), d.Reads+d.Writes
	b.operations = float64(n) / seconds
	b.queue = d.QueueDepth()
	b.read, b.write = float64(d.ReadBytes)/seconds, float64(d.WriteBytes)/seconds
	b.await, _ = sample.Await(d.ReadTime+d.WriteTime, n)
	if b.stuck = n == 0 && from.InFlight > 0 && to.InFlight > 0; b.stuck {
		b.queue = float64(to.InFlight) // time is counted when an operation completes
	}
	return b
}

func ceilingOf(all []sample.Ceiling, name string) sample.Ceiling {
	if i := slices.IndexFunc(all, func(c sample.Ceiling) bool { return c.Disk == name }); i >= 0 {
		return all[i]
	}
	return sample.Ceiling{}
}

func (w *Watch) saySaturated(t told[string], did busy) {
	e := Event{Kind: DiskSaturated, Disk: t.Key, Value: did.queue, Limit: deepQueue, Measure: !t.Gone}
	if d := w.disks[t.Key]; d != nil {
		if !resolved(t) {
			d.stuck = did.stuck
		}
		e.Severe = d.stuck
	}
	switch {
	case t.Gone:
		e.Says = t.Key + " had as much to do as it can, and is not there any more"
	case resolved(t):
		e.Says = t.Key + " keeps up again"
	case did.stuck:
		e.Says = fmt.Sprintf("%s has completed nothing for a minute, with %.0f operations under way: look at the kernel's log", t.Key, did.queue)
	default:
		e.Says = fmt.Sprintf("%s had as much to do as it can for a minute: %.1f operations under way, %.0f a second, %.1f ms each; start nothing more that reads from it",
			t.Key, did.queue, did.operations, 1000*did.await)
	}
	say(w, t, e)
}

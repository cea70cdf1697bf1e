package alert

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// A disk is saturated when all three hold. One alone is weak evidence: a device that serves operations in parallel has
// a deep queue without delay, a disk that never did more may have a higher ceiling, and larger operations take longer.
const (
	deepQueue   = 2.0 // operations in flight, mean
	nearCeiling = 0.8 // share of the highest throughput or of the most operations a second that the disk has shown
	longAwait   = 2.0 // times the shortest mean await that was observed, or measured by stallspan bench
)

const (
	saturationPeriod = time.Minute           // over which a disk is judged
	bestPeriod       = saturationPeriod / 12 // over which its best values are taken
	minOperations    = 20                    // within bestPeriod; with fewer, a mean is noise
)

// disk is the state of one disk.
type disk struct {
	readings      lookback[sample.Disk]
	present       bool
	maxOperations float64 // a second, over bestPeriod
	minAwait      float64 // seconds an operation, over bestPeriod; 0 if unknown
	stuck         bool    // the last event reported it as stuck
}

// load is what a disk did over a period.
type load struct {
	queue, operations, await float64 // mean in flight; a second; seconds. NaN if unknown
	read, write              float64 // bytes a second
	stuck                    bool    // operations are in flight, and none completed
}

func (w *Watcher) evaluateDisks(s *sample.Sample, ceilings []sample.Ceiling) {
	at := s.At.Mono
	for _, d := range w.disks {
		d.present = false
	}
	for i := range s.Disks {
		now := &s.Disks[i]
		if !now.Leaf {
			continue
		}
		d := w.disks[now.Name]
		if d == nil {
			if len(w.disks) >= maxDevices {
				continue
			}
			d = &disk{}
			w.disks[now.Name] = d
		}
		d.present = true
		score, load := d.saturation(at, now, ceilings)
		if t, changed := w.saturated.evaluate(now.Name, w.now.Mono, score); changed {
			w.emitSaturated(t, load)
		}
	}
	for _, t := range w.saturated.endRound(w.now.Mono) {
		w.emitSaturated(t, load{})
	}
	maps.DeleteFunc(w.disks, func(_ string, d *disk) bool { return !d.present })
}

// saturation returns how close the disk was to its limits over the last minute: 1 or more is saturated, NaN is unknown.
func (d *disk) saturation(at time.Duration, now *sample.Disk, ceilings []sample.Ceiling) (score float64, l load) {
	if d.readings.n > 0 && !now.Continues(&d.readings.newest().value) {
		*d = disk{present: true} // another device may have this name now
	}
	if d.readings.due(at, saturationPeriod) {
		if d.readings.n > 0 {
			last := d.readings.newest()
			d.learn(loadBetween(&last.value, now, at-last.at), at-last.at)
		}
		d.readings.add(at, *now)
	}
	before := d.readings.before(at, saturationPeriod)
	if before == nil {
		return unknown, load{}
	}
	l = loadBetween(&before.value, now, at-before.at)
	return d.score(&l, ceilingOf(ceilings, now.Name)), l
}

func (d *disk) learn(l load, period time.Duration) {
	if period > 2*bestPeriod || l.operations*period.Seconds() < minOperations {
		return
	}
	d.maxOperations = max(d.maxOperations, l.operations)
	if d.minAwait == 0 && !math.IsNaN(l.await) || l.await < d.minAwait {
		d.minAwait = l.await
	}
}

func (d *disk) score(l *load, c sample.Ceiling) float64 {
	if l.stuck {
		return 1
	}
	share := 0.0
	if c.Read > 0 {
		share += l.read / c.Read
	}
	if c.Write > 0 {
		share += l.write / c.Write
	}
	if d.maxOperations > 0 {
		share = max(share, l.operations/d.maxOperations)
	}
	minAwait := d.minAwait
	if measured := c.ReadAwait.Seconds(); measured > 0 && (minAwait == 0 || measured < minAwait) {
		minAwait = measured
	}
	slowdown := 0.0
	if minAwait > 0 {
		slowdown = l.await / minAwait
	}
	return min(l.queue/deepQueue, share/nearCeiling, slowdown/longAwait)
}

func loadBetween(from, to *sample.Disk, period time.Duration) (l load) {
	d, ok := to.Since(from, period)
	if !ok {
		return load{}
	}
	n := d.ReadIOs + d.WriteIOs
	l.operations = float64(n) / period.Seconds()
	l.read, l.write = float64(d.ReadBytes)/period.Seconds(), float64(d.WriteBytes)/period.Seconds()
	l.stuck = d.Stuck()
	l.queue, ok = d.QueueDepth()
	l.await, _ = sample.Await(d.ReadTicks+d.WriteTicks, n)
	if !ok || d.Has&sample.LacksTimes != 0 {
		l.queue, l.await = unknown, unknown
	}
	return l
}

func ceilingOf(all []sample.Ceiling, name string) sample.Ceiling {
	if i := slices.IndexFunc(all, func(c sample.Ceiling) bool { return c.Disk == name }); i >= 0 {
		return all[i]
	}
	return sample.Ceiling{}
}

func (w *Watcher) emitSaturated(t transition[string], l load) {
	e := Event{Kind: DiskSaturated, Disk: t.key, Value: l.queue, Limit: deepQueue, HasValue: !t.removed}
	if d := w.disks[t.key]; d != nil {
		if !t.resolved {
			d.stuck = l.stuck
		}
		e.Severe = d.stuck
	}
	switch {
	case t.removed:
		e.Message = t.key + " was saturated, and has been removed"
	case t.resolved:
		e.Message = t.key + " is no longer saturated"
	case l.stuck:
		e.Message = fmt.Sprintf("%s completed no operation for a minute, with %.0f in flight: read the kernel log",
			t.key, l.queue)
	default:
		e.Message = fmt.Sprintf("%s was saturated for a minute: %.1f operations in flight, %.0f a second, %.1f ms each; "+
			"start no other program that reads from it", t.key, l.queue, l.operations, 1000*l.await)
	}
	emit(w, t, e)
}

// evaluateDrives detects failing and vanished drives. Drives are read every ten minutes; between two readings the list
// stays the same.
func (w *Watcher) evaluateDrives(drives []sample.Drive) {
	at := w.now.Mono
	for i := range drives {
		d := &drives[i]
		key := cmp.Or(d.ID, d.Device)
		if _, known := w.drives[key]; !known && len(w.drives) >= maxDevices {
			continue
		}
		w.drives[key] = *d
		if t, changed := w.failing.evaluate(key, at, failing(d.Status)); changed {
			w.emitDrive(DiskFailing, t)
		}
		// One that cannot be read is present.
		if t, changed := w.vanished.evaluate(key, at, oneIf(d.Status == sample.DriveVanished)); changed {
			w.emitDrive(DiskVanished, t)
		}
	}
	if len(drives) == 0 {
		return // drives are not read, or not yet
	}
	for _, t := range w.failing.endRound(at) {
		w.emitDrive(DiskFailing, t)
	}
	for _, t := range w.vanished.endRound(at) {
		w.emitDrive(DiskVanished, t)
	}
	maps.DeleteFunc(w.drives, func(key string, _ sample.Drive) bool { return !w.failing.has(key) && !w.vanished.has(key) })
}

// failing is 1 for a drive that should be replaced.
func failing(s sample.DriveStatus) float64 {
	switch s {
	case sample.DriveFailing, sample.DriveFailed:
		return 1
	case sample.DriveOK, sample.DriveDegraded:
		return 0
	}
	return unknown
}

func (w *Watcher) emitDrive(kind Kind, t transition[string]) {
	d := w.drives[t.key]
	e := Event{Kind: kind, Drive: &d, Disk: d.Device, Severe: true}
	name := d.Device
	if d.Model != "" {
		name += " (" + d.Model + ")"
	}
	switch {
	case t.removed:
		e.Message = name + " is no longer monitored"
	case t.resolved && kind == DiskVanished:
		e.Message = name + " is back"
	case t.resolved:
		e.Message = name + " no longer needs to be replaced"
	case kind == DiskVanished:
		e.Message = name + " has disappeared from the machine: check its cable, its slot and the kernel log"
	default:
		e.Message = name + " is failing"
		if d.Finding != "" {
			e.Message = name + ": " + d.Finding
		}
		if d.Remedy != "" {
			e.Message += " " + d.Remedy
		}
	}
	emit(w, t, e)
}

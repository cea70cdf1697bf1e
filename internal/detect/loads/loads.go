// Package loads detects model loads and checkpoints, by the files of models that a job reads and writes. See
// docs/adr/0058-find-loads-by-the-files-of-models.md.
package loads

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
)

// Names of phases, as in the registry.
const (
	Download = "download"
	Read     = "read"
	ToDevice = "host_to_device"
	Compile  = "compile"
	WarmUp   = "warm_up"
)

// Bounds, and what separates a load from other work.
const (
	maxFiles   = 1024 // of a job that are remembered
	maxGroups  = 64   // of files that are read or written
	maxTouched = 32   // looks of a process for which it is kept what it touched: three seconds

	minSize     = 1 << 20  // bytes of a file with weights
	minBlob     = 32 << 20 // of a file whose name may be that of other data: vocabularies are smaller
	minCovered  = 0.5      // share of the files that a load reads
	minCopied   = 0.5      // share of what was read of fewer, by which memory of the GPU grows if it is a rank's part
	minHeld     = 0.25     // share of what was read that has to be in memory, where no process of it drives a GPU
	whole       = 0.9      // share of the files from which on a pause is the end
	header      = 0.05     // share of the files that is no more than a look at what they hold
	rewound     = 0.5      // share of a file from which a position has to go back for a second load
	repeated    = 2        // passes of a file from which on the same bytes may have been read again
	manyFiles   = 24       // files without numbers of parts: a data set
	minSaved    = 4 << 20  // bytes of a checkpoint
	minProgress = 64 << 10 // bytes between two looks that are more than noise
	unmoved     = 2 << 20  // bytes per second by calls that leave the position, above which they count

	closedFor = time.Second             // after the last file was closed, before the next one of the same model
	closedFew = 20 * time.Second        // the same while parts are missing
	pause     = 1500 * time.Millisecond // without progress, of files that stay open or mapped
	abandoned = 20 * time.Second        // without progress, of files that were read in part
	fresh     = 5 * time.Second         // after an open or progress, in which looks are frequent
	late      = 2 * time.Second         // between open and first progress; from there on the load begins with the progress
	atOnce    = 500 * time.Millisecond  // after a look that saw a file open, in which reading begins that follows the open
	lateCall  = 20 * time.Second        // the same to the first byte of a file that is open for reading
	lateTouch = time.Second             // and to that of a mapping
	serving   = 4 * time.Second         // after the last byte, for a server to listen or GPU memory to grow
	flat      = 2500 * time.Millisecond // without growth of GPU memory: the driver is serving once a second
	warmUp    = 2 * time.Minute         // after the last byte, for a server with a GPU to listen
	compiling = 30 * time.Minute        // the same while it compiles
	quiet     = 15 * time.Second        // without a compiled file, after which it compiles no longer
	downloads = 5 * time.Minute         // between the download of a file and the load of its model
	fetched   = 3 * time.Second         // after the last write, in which a read makes it a download
)

// Detector finds the loads and checkpoints of one job.
type Detector struct {
	job      string
	looked   bool
	counted  [3]float64       // levels of the quantities at the look before
	readAt   time.Duration    // the newest reading of them then
	wroteNow float64          // bytes that the job wrote since the look before
	living   map[int]*program // processes of this look, by PID
	drivers  int              // how many of them hold memory of a GPU
	driven   bool             // one has done so
	files    map[string]*file
	reads    map[string]*transfer
	writes   map[string]*transfer
	pending  []*pending
	saved    []*transfer // checkpoints that may turn out to be downloads
	stored   map[string]stored
	listens  int // the newest number of sockets that listen; -1 before
	gpu      gpuMemory
	compile  interval // of the newest compilation
	out      []detect.Found
}

// program is a process, as the newest look saw it.
type program struct {
	detect.Process
	touched []point // its memory of files, in each of the last looks
	seen    time.Duration
}

type interval struct{ start, end time.Duration }

// New returns a Detector for a job.
func New(job string) detect.Detector {
	return &Detector{
		job: job, living: map[int]*program{}, files: map[string]*file{}, reads: map[string]*transfer{},
		writes: map[string]*transfer{}, stored: map[string]stored{}, listens: -1,
	}
}

// Look implements detect.Detector.
func (d *Detector) Look(f *detect.Facts) []detect.Found {
	d.out = nil
	grew := d.counters(f)
	d.wroteNow = grew[2]
	mapped := d.growth(f)
	d.learn(f)
	d.gpu.look(f)
	d.progress(f, grew, mapped)
	over := d.looked && len(f.Processes) == 0 // the job has ended, and is still listed: nothing follows any more
	d.finishReads(f, over)
	d.finishWrites(f, over)
	d.resolve(f, over)
	d.forget(f.At)
	if f.Listening >= 0 {
		d.listens = f.Listening
	}
	if read, ok := f.Past.Reading(detect.ReadChars); ok {
		d.readAt = min(read, f.At)
	}
	d.looked = true
	return d.out
}

// Close implements detect.Detector.
func (d *Detector) Close(f *detect.Facts) []detect.Found {
	d.out = nil
	if !f.Stopping { // the files stay open otherwise
		for _, one := range d.files {
			d.endHandles(one, f)
		}
	}
	d.finishReads(f, true)
	d.finishWrites(f, true)
	if f.Stopping {
		for _, p := range d.pending {
			p.found.Unfinished = true
		}
	}
	d.resolve(f, true)
	return d.out
}

// Busy implements detect.Detector.
func (d *Detector) Busy() bool {
	now := time.Duration(0)
	for _, one := range d.files {
		now = max(now, one.seen)
	}
	recent := func(t *transfer) bool {
		return now-max(t.last, t.open.end, t.closed.end) < fresh
	}
	ends := func(p *pending) bool { return p.until-p.readEnd <= 2*serving }
	return anyOf(d.reads, recent) || anyOf(d.writes, recent) || slices.ContainsFunc(d.pending, ends)
}

// counters returns the growth of the quantities since the look before.
func (d *Detector) counters(f *detect.Facts) (grew [3]float64) {
	for i, q := range [...]detect.Quantity{detect.ReadChars, detect.ReadBytes, detect.WriteBytes} {
		level, ok := f.Past.Level(q, f.At)
		if !ok {
			continue
		}
		if d.looked {
			grew[i] = max(0, level-d.counted[i])
		}
		d.counted[i] = level
	}
	return grew
}

// growth takes over what is known of processes, and returns by how much the memory of files grew in each.
func (d *Detector) growth(f *detect.Facts) map[int]float64 {
	grew := make(map[int]float64, len(f.Processes))
	d.drivers = 0
	for i := range f.Processes {
		p := &f.Processes[i]
		one := d.living[p.PID]
		if one == nil {
			one = &program{}
			d.living[p.PID] = one
		}
		if one.Memory > 0 && p.Memory > one.Memory {
			grew[p.PID] = float64(p.Memory - one.Memory)
		}
		one.Process, one.seen = *p, f.At
		one.touched = note(one.touched, f.At, float64(p.Memory))
		if p.Drives {
			d.drivers++
			d.driven = true
		}
	}
	maps.DeleteFunc(d.living, func(_ int, p *program) bool { return p.seen != f.At })
	return grew
}

// process returns what is known of one; the zero value for one that is not alive.
func (d *Detector) process(pid int) program {
	if p := d.living[pid]; p != nil {
		return *p
	}
	return program{}
}

// note adds a look to those at a process.
func note(all []point, at time.Duration, memory float64) []point {
	if memory == 0 {
		return all // it is unknown
	}
	if len(all) == maxTouched {
		all = append(all[:0], all[1:]...)
	}
	return append(all, point{at, memory})
}

// touchedSince returns by how much the memory of files grew in a process from a look on, up to the one before this one.
// What was given back and touched again counts once.
func (d *Detector) touchedSince(pid int, from time.Duration) (bytes float64) {
	all := d.process(pid).touched
	lowest := math.Inf(1)
	for _, p := range all[:max(0, len(all)-1)] {
		if p.at >= from {
			lowest = min(lowest, p.bytes)
			bytes = max(bytes, p.bytes-lowest)
		}
	}
	return bytes
}

// Package loads detects model loads and checkpoints, by the files of models that a job reads and writes. See
// docs/adr/0058-find-loads-by-the-files-of-models.md.
package loads

import (
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/source/modelfile"
	"github.com/stallspan/stallspan/internal/window"
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
	maxFiles  = 1024 // of a job that are remembered
	maxGroups = 64   // of files that are read or written

	minSize     = 1 << 20  // bytes of a file with weights
	minBlob     = 32 << 20 // of a file whose name may be that of other data: vocabularies are smaller
	minCovered  = 0.5      // share of the files that a load reads
	whole       = 0.9      // share of the files from which on a pause is the end
	header      = 0.05     // share of the files that is no more than a look at what they hold
	rewound     = 0.5      // share of a file from which a position has to go back for a second load
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
	serving   = 4 * time.Second         // after the last byte, for a server to listen or GPU memory to grow
	flat      = 2500 * time.Millisecond // without growth of GPU memory: the driver is serving once a second
	warmUp    = 2 * time.Minute         // after the last byte, for a server with a GPU to listen
	compiling = 30 * time.Minute        // the same while it compiles
	quiet     = 15 * time.Second        // without a compiled file, after which it compiles no longer
	downloads = 30 * time.Second        // between the download of a file and its load
	fetched   = 3 * time.Second         // after a write, in which a read makes it a download
)

// Detector finds the loads and checkpoints of one job.
type Detector struct {
	job     string
	looked  bool
	counted [3]float64 // levels of the quantities at the look before
	memory  map[int]int64
	lasts   map[int]time.Duration // by process: see lastOf
	files   map[string]*file
	reads   map[string]*transfer
	writes  map[string]*transfer
	pending []*pending
	saved   []*transfer // checkpoints that may turn out to be downloads
	listens int         // the newest number of sockets that listen; -1 before
	gpu     gpuMemory
	compile interval // of the newest compilation
	out     []detect.Found
}

type interval struct{ start, end time.Duration }

// gpuMemory follows the memory in use on the job's GPUs.
type gpuMemory struct {
	used  uint64
	since time.Duration // the look before it grew first, in the present growth
	grew  time.Duration // the last look that saw it grow
}

// handle is a file descriptor of a process.
type handle struct{ pid, fd int }

// position is that of a file descriptor in a look.
type position struct {
	at   int64
	seen time.Duration
}

// file is a file of a model.
type file struct {
	path    string
	key     detect.FileKey
	size    int64
	parts   int
	handles map[handle]position   // open for reading
	writers map[handle]position   // open for writing
	mapped  map[int]time.Duration // by process that has mapped it, the last look that saw it
	seen    time.Duration         // the last look that saw it open or mapped
	since   interval              // in which it was opened
	closed  interval              // in which it was closed
	written interval              // by this job
	moved   float64               // bytes by which its positions moved in this look
	done    bool                  // a load of it has ended, and it was not opened again since
}

func (f *file) active() bool { return len(f.handles) > 0 || len(f.mapped) > 0 }

// transfer is the reading or writing of the files of one model.
type transfer struct {
	key       string
	files     []*file
	parts     int
	ahead     float64  // bytes that its files' positions were at in the job's first look
	open      interval // in which the first file was opened
	began     interval // in which the first byte moved, if it was later
	moved     bool
	sums      [3]float64    // bytes: by calls, from storage, touched in mappings
	last      time.Duration // when the newest byte moved
	closed    interval      // in which the last file was closed
	points    []point       // the first ones, for the rate
	newest    point
	processes map[int]int // looks by process
	saidAt    time.Duration
	bytes     float64
}

type point struct {
	at    time.Duration
	bytes float64
}

// pending is a load whose bytes are read: what follows may belong to it.
type pending struct {
	found   detect.Found
	readEnd time.Duration
	until   time.Duration
	listens int
	device  interval
}

// New returns a Detector for a job.
func New(job string) detect.Detector {
	return &Detector{
		job: job, memory: map[int]int64{}, files: map[string]*file{}, reads: map[string]*transfer{},
		writes: map[string]*transfer{}, listens: -1,
	}
}

// Look implements detect.Detector.
func (d *Detector) Look(f *detect.Facts) []detect.Found {
	d.out = nil
	grew := d.counters(f)
	mapped := d.growth(f)
	d.learn(f)
	d.devices(f)
	d.progress(f, grew, mapped)
	over := d.looked && len(f.Processes) == 0 // the job has ended, and is still listed: nothing follows any more
	d.finishReads(f, over)
	d.finishWrites(f, over)
	d.resolve(f, over)
	d.forget(f.At)
	if f.Listening >= 0 {
		d.listens = f.Listening
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
	for _, t := range d.reads {
		if recent(t) {
			return true
		}
	}
	for _, t := range d.writes {
		if recent(t) {
			return true
		}
	}
	return slices.ContainsFunc(d.pending, func(p *pending) bool { return p.until-p.readEnd <= 2*serving })
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

// growth returns by how much the memory of files grew in each process.
func (d *Detector) growth(f *detect.Facts) map[int]float64 {
	grew := make(map[int]float64, len(f.Processes))
	memory, lasts := make(map[int]int64, len(f.Processes)), make(map[int]time.Duration, len(f.Processes))
	for i := range f.Processes {
		p := &f.Processes[i]
		memory[p.PID], lasts[p.PID] = p.Memory, p.Last
		if before, known := d.memory[p.PID]; known && p.Memory > before {
			grew[p.PID] = float64(p.Memory - before)
		}
	}
	d.memory, d.lasts = memory, lasts
	return grew
}

// devices follows the memory of GPUs, and compilations.
func (d *Detector) devices(f *detect.Facts) {
	grown := f.GPUMemory > d.gpu.used+d.gpu.used/256+(1<<20)
	if grown && d.gpu.used > 0 || d.gpu.used == 0 && f.GPUMemory > 0 {
		if f.At-d.gpu.grew > flat {
			d.gpu.since = f.Last
		}
		d.gpu.grew = f.At
	}
	d.gpu.used = f.GPUMemory
}

// isWeights reports whether a file may be one with weights.
func isWeights(name string, size int64) bool {
	if modelfile.IsBlob(name) {
		return size >= minBlob
	}
	return modelfile.Is(name) && size >= minSize
}

// isMapped reports whether a file of a look is a mapped blob with weights: vocabularies are read, and not mapped.
func isMapped(x *detect.File) bool {
	return x.Mapped > 0 && x.Size >= minSize && modelfile.IsBlob(x.Path)
}

// learn takes over which files are open or mapped.
func (d *Detector) learn(f *detect.Facts) {
	for _, one := range d.files {
		one.moved = 0
	}
	for i := range f.Events {
		d.event(&f.Events[i])
	}
	for i := range f.Files {
		x := &f.Files[i]
		if modelfile.IsCompiled(x.Path) {
			if x.Write {
				if f.At-d.compile.end > quiet {
					d.compile.start = f.Last
				}
				d.compile.end = f.At
			}
			continue
		}
		partial := modelfile.IsPartial(x.Path)
		known := partial || isWeights(x.Path, x.Size) || isMapped(x) || d.files[x.Path] != nil
		if !known && (!x.Write || !modelfile.Is(x.Path) && !modelfile.IsBlob(x.Path)) {
			continue
		}
		one := d.file(x.Path)
		if one == nil {
			continue
		}
		one.key = x.Key
		d.saw(one, x, f)
	}
	for _, one := range d.files {
		d.endHandles(one, f)
	}
}

// event takes over an exact time. The file itself is learned from the look, or from its size if it is closed already.
func (d *Detector) event(e *detect.Event) {
	if !isWeights(e.Path, e.Size) && (!e.Write || !modelfile.Is(e.Path)) {
		return
	}
	one := d.file(e.Path)
	if one == nil {
		return
	}
	at := interval{e.At, e.At}
	switch {
	case !e.Close:
		if !one.active() && len(one.writers) == 0 {
			one.since = at
		}
		one.size = max(one.size, e.Size)
	case e.Write:
		if len(one.writers) == 0 {
			d.join(d.writes, "w:"+path.Dir(one.path), one, e.PID)
		}
		one.size = max(one.size, e.Size)
		one.closed, one.written.end = at, e.At
		if one.written.start == 0 {
			one.written.start = one.since.start
		}
	default:
		if !one.active() {
			key, _ := keyOf(one.path)
			d.join(d.reads, key, one, e.PID)
		}
		one.size = max(one.size, e.Size)
		one.closed = at
	}
}

// file returns what is known of a file, or nil if there are too many.
func (d *Detector) file(name string) *file {
	one := d.files[name]
	if one == nil {
		if len(d.files) >= maxFiles {
			return nil
		}
		one = &file{path: name, handles: map[handle]position{}, writers: map[handle]position{},
			mapped: map[int]time.Duration{}}
		_, one.parts = keyOf(name)
		d.files[name] = one
	}
	return one
}

// saw takes over an open file of a look.
func (d *Detector) saw(one *file, x *detect.File, f *detect.Facts) {
	opened := func() {
		if one.since.end <= f.Last || one.since.start != one.since.end { // no event said when
			one.since = interval{d.lastOf(x.PID, f), f.At}
			for i := range f.Processes {
				if p := &f.Processes[i]; p.PID == x.PID {
					one.since.start = min(max(one.since.start, p.Started), f.At)
					if !d.looked && p.Started > 0 { // it may have been opened before the job was followed
						one.since.start = min(p.Started, f.Last)
					}
				}
			}
		}
	}
	one.seen = f.At
	one.size = max(one.size, x.Size)
	switch {
	case x.Write:
		h := handle{x.PID, x.FD}
		if len(one.writers) == 0 {
			opened()
			one.written.start = one.since.start
		}
		one.writers[h] = position{x.Size, f.At}
		one.size = x.Size
		one.written.end = f.At
		if !modelfile.IsPartial(one.path) || !strings.HasSuffix(one.path, ".incomplete") {
			d.join(d.writes, "w:"+path.Dir(one.path), one, x.PID)
		}
	case modelfile.IsPartial(one.path):
	case x.FD >= 0:
		h := handle{x.PID, x.FD}
		old, known := one.handles[h]
		before := old.at
		if !one.active() {
			opened()
			one.done = false
		}
		again := known && float64(before) > rewound*float64(one.size) && float64(x.Offset) < 0.1*float64(one.size)
		if again {
			d.again(one, f)
		}
		moved := max(x.Offset-before, before-x.Offset)
		if !known || again {
			moved = x.Offset
		}
		one.moved += float64(moved)
		one.handles[h] = position{x.Offset, f.At}
		if one.done && (!known || moved > 0) { // it stayed open after its load
			one.done, one.since = false, interval{f.Last, f.At}
		}
		d.joinRead(one, x.PID)
	default:
		if !one.active() {
			opened()
			one.done = false
		}
		one.mapped[x.PID] = f.At
		d.joinRead(one, x.PID)
	}
	if x.FD >= 0 && x.Mapped > 0 && !x.Write {
		one.mapped[x.PID] = f.At
	}
}

// again ends a load whose file is read from its start again.
func (d *Detector) again(one *file, f *detect.Facts) {
	key, _ := keyOf(one.path)
	t := d.reads[key]
	if t == nil || t.covered() < whole*t.size() {
		return
	}
	d.endRead(t, f, true, false)
	one.since, one.done = interval{f.Last, f.At}, false
}

func (d *Detector) joinRead(one *file, pid int) {
	if one.done {
		return // it stays open or mapped after its load
	}
	key, _ := keyOf(one.path)
	d.join(d.reads, key, one, pid)
}

// join adds a file to a transfer, which begins with its first file.
func (d *Detector) join(all map[string]*transfer, key string, one *file, pid int) {
	t := all[key]
	if t == nil {
		if len(all) >= maxGroups {
			return
		}
		t = &transfer{key: key, open: one.since, processes: map[int]int{}}
		all[key] = t
	}
	if !slices.Contains(t.files, one) {
		t.files = append(t.files, one)
		if one.since.start < t.open.start {
			t.open = one.since
		}
	}
	t.parts = max(t.parts, one.parts)
	t.processes[pid]++
}

// endHandles drops what a look does not show any more.
func (d *Detector) endHandles(one *file, f *detect.Facts) {
	was, wrote := one.active(), len(one.writers) > 0
	if !was && !wrote {
		return
	}
	last := f.Last
	gone := func(pid int, seen time.Duration) bool {
		if seen == f.At {
			return false
		}
		last = min(last, d.lastOf(pid, f))
		return true
	}
	maps.DeleteFunc(one.handles, func(h handle, x position) bool { return gone(h.pid, x.seen) })
	maps.DeleteFunc(one.writers, func(h handle, x position) bool { return gone(h.pid, x.seen) })
	maps.DeleteFunc(one.mapped, func(pid int, seen time.Duration) bool { return gone(pid, seen) })
	if was && !one.active() || wrote && len(one.writers) == 0 {
		if one.closed.end <= f.Last || one.closed.start != one.closed.end { // no event said when
			one.closed = interval{last, f.At}
		}
	}
}

// lastOf returns up to when it is known what a process had open before this look.
func (d *Detector) lastOf(pid int, f *detect.Facts) time.Duration {
	if last := d.lasts[pid]; last > 0 {
		return min(last, f.Last)
	}
	return f.Last
}

// forget drops files that were not open for long.
func (d *Detector) forget(now time.Duration) {
	for name, one := range d.files {
		if !one.active() && len(one.writers) == 0 && now-max(one.seen, one.closed.end) > time.Minute {
			used := func(t *transfer) bool { return slices.Contains(t.files, one) }
			if !anyOf(d.reads, used) && !anyOf(d.writes, used) {
				delete(d.files, name)
			}
		}
	}
}

func anyOf(all map[string]*transfer, match func(*transfer) bool) bool {
	for _, t := range all {
		if match(t) {
			return true
		}
	}
	return false
}

func (t *transfer) size() (bytes float64) {
	for _, one := range t.files {
		bytes += float64(one.size)
	}
	return bytes
}

// covered is how many bytes were read, by the way that shows most: a read call shows in the first, a mapping in the
// third, and both in the second if the bytes were not in memory.
func (t *transfer) covered() float64 {
	return min(max(t.sums[0], t.sums[1], t.sums[2]), t.size()*float64(max(1, len(t.processes))))
}

// process returns the one that was seen most.
func (t *transfer) process() (pid int) {
	most := 0
	for p, n := range t.processes {
		if n > most || n == most && p < pid {
			pid, most = p, n
		}
	}
	return pid
}

func (t *transfer) active() bool {
	return slices.ContainsFunc(t.files, (*file).active)
}

// path returns the file, or the folder of several.
func (t *transfer) path() string {
	if len(t.files) == 1 {
		return t.files[0].path
	}
	return path.Dir(t.files[0].path)
}

// found returns a window of the transfer.
func (t *transfer) found(kind window.Kind, job string) detect.Found {
	return detect.Found{
		Kind: kind, Job: job, PID: t.process(), Path: clean(t.path()), Bytes: uint64(t.covered()),
	}
}

package window

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// Layer is a device that is stacked on others: see sample.Disk.
type Layer struct {
	Name string
	On   []string // whole devices directly below; empty if unknown, or with a file in memory
}

// Device is what a window waited for when it waited for storage.
type Device struct {
	SlowDevice *SlowDevice // the one that explains the wait for storage; nil without such a wait, or if none does
	NoDevice   bool        // there was a wait for storage, and no device of this machine explains it

	most float64 // how many times faster the device can serve the window, at most; 0 if unknown
}

// SlowDevice is the device in whose queue the window waited for storage.
type SlowDevice struct {
	DiskUse           // zero for a limited device without I/O of its own
	Layer   bool      // it is stacked on others, which are faster
	Below   []DiskUse // of a layer: the devices directly below with I/O in the window
	Limit   *Limited  // what held the I/O back before it reached the device; nil unless it explains the waiting
}

// Limited is a limit of a cgroup that a window reached.
type Limited struct {
	sample.Limit
	Kind sample.LimitKind // the one that it reached
}

// stack is the devices of a window, with its job's part of what they did.
type stack struct {
	*view
	*Facts

	wait  float64 // seconds that are to be explained
	read  jobPart // the job's share of what a device reads
	write jobPart
}

// jobPart is how much the job moved, if that is known.
type jobPart struct {
	bytes float64
	known bool
}

// of returns the job's share of bytes.
func (p jobPart) of(bytes float64) float64 {
	if !p.known || bytes <= p.bytes {
		return 1
	}
	return p.bytes / bytes
}

// longestWait is how long a job can have waited for storage, where that was estimated from the pressure of others too:
// all operations of its devices, with the kernel's work and a hypervisor's for them. The time that a limit of a cgroup
// or a file server takes is in no device's operations.
func (v *view) longestWait(r *Report, l *Ledger) (most time.Duration, known bool) {
	target := &v.machine.Target
	own := l.Evidence.Followed() || target.Own || target.Job == ""
	elsewhere := target.Remote || len(r.Mounts)+len(v.machine.Limits)+len(r.reset) > 0
	if !l.Split || own || elsewhere {
		return 0, false
	}
	s := newStack(v, r, 0)
	devices := s.top()
	if s.read.bytes+s.write.bytes == 0 {
		devices = v.machine.Leaves // it may have waited for what others read
	}
	if !s.read.known || len(devices) == 0 || !s.timed(devices) {
		return 0, false
	}
	return seconds(s.level(devices).seconds() / explained * float64(len(r.ledgers()))), true
}

// blame is the third stage. It finds the device that explains the wait for storage.
func blame(v *view, r *Report) (d Device) {
	wait := r.Storage / time.Duration(len(r.ledgers()))
	remote := len(r.Mounts) > 0 && len(r.Disks) == 0
	if !r.Split || remote || v.Duration() <= 0 || wait.Seconds() < Thresholds.Stall*v.Duration().Seconds() {
		return d
	}
	s := newStack(v, r, wait)
	top := s.top()
	best := s.candidates(top)[0]
	switch {
	case best.score >= enough:
		d.SlowDevice = s.device(best.device)
		d.SlowDevice.Limit = best.limit
		if best.limit != nil {
			d.most = v.Duration().Seconds() / best.took
		} else if d.SlowDevice.NearCeiling() {
			d.most = 1 / d.SlowDevice.ReadCeilingRatio
		}
	case s.timed(top):
		d.NoDevice = best.device != "" || len(r.Mounts) == 0
	}
	return d
}

func newStack(v *view, r *Report, wait time.Duration) *stack {
	s := &stack{view: v, Facts: &r.Facts, wait: wait.Seconds()}
	s.read.bytes, s.read.known = v.fetched()
	stored, known := v.between(history.JobWriteBytes, v.machine.Target.Job)
	s.write = jobPart{stored.Value, known && s.read.known}
	return s
}

// use returns what a disk or layer did in the window.
func (s *stack) use(device string) DiskUse {
	if i := slices.IndexFunc(s.Disks, func(d DiskUse) bool { return d.Name == device }); i >= 0 {
		return s.Disks[i]
	}
	return s.layers[device]
}

func (s *stack) isLayer(device string) bool {
	return slices.ContainsFunc(s.machine.Layers, func(l Layer) bool { return l.Name == device })
}

// on returns the devices directly below a device.
func (v *view) on(device string) []string {
	if i := slices.IndexFunc(v.machine.Layers, func(l Layer) bool { return l.Name == device }); i >= 0 {
		return v.machine.Layers[i].On
	}
	return nil
}

// maxStack bounds the depth of a stack, which in a recording may be a cycle.
const maxStack = 32

// below lists a device and all below it.
func (v *view) below(device string) (all []string) {
	all = []string{device}
	for i := 0; i < len(all) && i < maxStack; i++ {
		for _, next := range v.on(all[i]) {
			if !slices.Contains(all, next) {
				all = append(all, next)
			}
		}
	}
	return all
}

// open lists the devices on which the job has had files open, and those below; empty if they are not known. A device
// that is read without a file system is not among them.
func (v *view) open() (all []string) {
	for _, device := range slices.Concat(v.machine.Devices...) {
		all = append(all, v.below(device)...)
	}
	return all
}

// level is what devices side by side did.
type level struct{ read, written, reading, writing float64 } // bytes and seconds

// level sums over devices. The flushes of a device count like writes, and writes only where the job wrote.
func (s *stack) level(devices []string) (l level) {
	for _, name := range devices {
		d := s.use(name)
		l.read, l.written = l.read+float64(d.ReadBytes), l.written+float64(d.WriteBytes)
		l.reading += d.ReadTime.Seconds()
		if !s.write.known || s.write.bytes > 0 {
			l.writing += max(d.WriteTime.Seconds(), d.QueueDepth*s.Duration().Seconds()-d.ReadTime.Seconds())
		}
	}
	return l
}

// timed reports whether it is known, for all of the window, how long the operations of devices took. Without a device,
// the job may have used one whose operations are not counted.
func (s *stack) timed(devices []string) bool {
	if len(devices) == 0 {
		devices = slices.Concat(slices.Concat(s.machine.Devices...), slices.Collect(maps.Keys(s.machine.Lacks)))
	}
	return !slices.ContainsFunc(devices, func(d string) bool {
		use := s.use(d)
		counted := s.isLayer(d) || slices.Contains(s.machine.Leaves, d)
		return (use.Lacks|s.machine.Lacks[d])&sample.LacksTimes != 0 || use.Partial || !counted
	})
}

// seconds is the time of all operations, of any process: a job also waits for those of others.
func (l level) seconds() float64 { return l.reading + l.writing }

// of is the part of it that the devices above had done. They may share a disk with other stacks.
func (l level) of(above level) float64 {
	return l.reading*jobPart{above.read, true}.of(l.read) + l.writing*jobPart{above.written, true}.of(l.written)
}

// top returns the devices that the window's files lie on: those under its path; or else, of the devices on which the
// job has had files open, or of all, the one that moved about what the job did.
func (s *stack) top() []string {
	candidates := s.places()
	tops := slices.DeleteFunc(slices.Clone(candidates), func(device string) bool {
		return slices.ContainsFunc(candidates, func(above string) bool {
			return above != device && slices.Contains(s.below(above), device)
		})
	})
	if len(tops) < 2 || len(s.Seen.Under) > 0 {
		return tops
	}
	// Several stacks moved as much as the job, or more: its own is the one that moved most nearly the same.
	nearest := slices.DeleteFunc(slices.Clone(tops), s.isLayer)
	for _, top := range tops {
		if of := s.together(top); s.isLayer(top) && (len(nearest) == 0 || s.excess(of) < s.excess(nearest)) {
			nearest = of
		}
	}
	return nearest
}

// excess returns how far devices moved more or less than the job.
func (s *stack) excess(devices []string) float64 {
	l := s.level(devices)
	return math.Abs(l.read-s.read.bytes) + math.Abs(l.written-s.write.bytes)
}

// places lists the devices on which the window's files may lie, one above another, too.
func (s *stack) places() (names []string) {
	if len(s.Seen.Under) > 0 {
		for _, layer := range s.machine.Layers {
			if slices.Contains(s.Seen.Above, layer.Name) {
				names = append(names, layer.Name)
			}
		}
		return append(names, s.Seen.Under...)
	}
	open := s.open()
	for _, layer := range s.machine.Layers {
		use, used := s.layers[layer.Name]
		if used && s.moved(layer.Name) && (len(open) == 0 || slices.Contains(open, layer.Name) || s.movedTheSame(&use)) {
			names = append(names, layer.Name)
		}
	}
	leaves := s.From
	for i := range s.Disks {
		if name := s.Disks[i].Name; len(s.From) == 0 && (s.moved(name) || !s.read.known) {
			leaves = append(leaves, name)
		}
	}
	return append(names, s.inUse(leaves)...)
}

// together lists the devices of the job's file system that is on a device, or the device alone.
func (s *stack) together(device string) []string {
	for _, devices := range s.machine.Devices {
		if slices.Contains(devices, device) {
			return devices
		}
	}
	return []string{device}
}

// moved reports whether a device, together with the others of its file system, moved about what the job did.
func (s *stack) moved(device string) bool {
	l := s.level(s.together(device))
	reads := s.read.bytes > 0 && l.read >= halfBytes*s.read.bytes
	writes := s.write.bytes > 0 && l.written >= halfBytes*s.write.bytes
	return s.read.known && (reads || writes)
}

// movedTheSame reports whether a device moved what the job did and nothing else. A device that is read without a file
// system is on no mount.
func (s *stack) movedTheSame(d *DiskUse) bool {
	done := s.read.bytes + s.write.bytes
	return s.read.known && done > 0 && math.Abs(float64(d.ReadBytes+d.WriteBytes)-done) <= same*done
}

// descend returns the lowest device that explains the wait, and how long its operations took. Of several side by side
// it returns the one that took longest, with the time of all.
func (s *stack) descend(devices []string) (lowest string, seconds float64) {
	if len(devices) == 0 {
		return "", 0
	}
	here := s.level(devices)
	seconds = here.seconds()
	for range maxStack {
		lowest = s.longest(devices)
		var next []string
		for _, device := range devices {
			next = append(next, s.on(device)...)
		}
		slices.Sort(next)
		next = slices.Compact(next)
		below := s.level(next)
		took := below.of(here)
		if (took < explained*seconds || took < unexplained*s.wait) && (s.timed(devices) || len(next) == 0) {
			break
		}
		devices, here, seconds = next, below, took
	}
	return lowest, seconds
}

func (s *stack) longest(devices []string) string {
	return slices.MaxFunc(devices, func(x, y string) int {
		a, b := s.use(x), s.use(y)
		return cmp.Or(cmp.Compare(a.ReadTime+a.WriteTime, b.ReadTime+b.WriteTime), strings.Compare(y, x))
	})
}

func (s *stack) device(name string) *SlowDevice {
	device := &SlowDevice{DiskUse: s.use(name), Layer: s.isLayer(name)}
	device.Name = name
	for _, below := range s.on(name) {
		if use := s.use(below); use.Name != "" {
			device.Below = append(device.Below, use)
		}
	}
	return device
}

// least returns how long the job's I/O on a device takes at least under a limit, and which of its values decides.
func (s *stack) least(limit *sample.Limit) (seconds float64, kind sample.LimitKind) {
	d := s.use(limit.Device)
	read, written := s.read.of(float64(d.ReadBytes)), s.write.of(float64(d.WriteBytes))
	for _, x := range [...]struct {
		kind sample.LimitKind
		done float64
	}{
		{sample.ReadBytesLimit, float64(d.ReadBytes) * read},
		{sample.ReadsLimit, float64(d.ReadOperations) * read},
		{sample.WriteBytesLimit, float64(d.WriteBytes) * written},
		{sample.WritesLimit, float64(d.WriteOperations) * written},
	} {
		allowed := *limit.Value(x.kind)
		if took := x.done / float64(max(allowed, 1)); allowed > 0 && took > seconds {
			seconds, kind = took, x.kind
		}
	}
	return seconds, kind
}

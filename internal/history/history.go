// Package history stores readings in bounded memory and answers one question: how much did a quantity grow between two
// times?
//
// Every source has its own time axis, and every quantity on it is a cumulative column: a kernel counter, or a time
// integral. Values are never averaged. Old rows are thinned, not merged, so that a difference over a long interval is
// as exact as over a short one. Only its ends lie on a wider grid, and the bounds of Between show how wide.
package history

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Tier is a grid of rows: at most one row per Period, and the newest Rows of them.
type Tier struct {
	Period time.Duration
	Rows   int
}

// DefaultTiers returns tiers for ten readings a second over ten minutes, one a second over an hour, and one every ten
// seconds over a day.
func DefaultTiers() []Tier {
	return []Tier{
		{Period: 0, Rows: 6_000},
		{Period: time.Second, Rows: 3_600},
		{Period: 10 * time.Second, Rows: 8_640},
	}
}

// DefaultMaxBytes bounds the rows of a History. With the default tiers there is room for 24 disks, 16 GPUs and 80 jobs,
// each in a cgroup of its own and followed by the scheduler. A machine with a job and eight disks needs a tenth of it.
const DefaultMaxBytes = 176 << 20

// Config bounds a History.
type Config struct {
	Tiers    []Tier // finest first; the first stores every reading
	MaxBytes int    // of rows, with full rings
}

// History holds the columns. It is safe for concurrent use.
type History struct {
	config Config

	mu          sync.RWMutex // guards the fields below
	axes        [axisCount]axis
	totals      totals
	branches    map[string]bool // disks with I/O that were not leaves at the last reading
	clock       clock
	bytes       int // of all rows
	diskBytes   int // part of bytes, for disks and layers
	idle        map[string]idleLayer
	pasts       map[string]*past    // of candidates
	details     map[string]*details // by GPU
	detailBytes int                 // part of bytes, for details
	latencies   latencyRows
	nextSlot    uint32
	refused     refused
}

// New returns an empty history. It allocates memory for a device at its first reading.
func New(config Config) (*History, error) {
	if len(config.Tiers) == 0 {
		config.Tiers = DefaultTiers()
	}
	config.MaxBytes = cmp.Or(config.MaxBytes, DefaultMaxBytes)
	for i, t := range config.Tiers {
		if t.Rows < 2 || t.Period < 0 || (i > 0 && t.Period <= config.Tiers[i-1].Period) {
			return nil, fmt.Errorf("history: tier %d: a tier needs two rows and a longer period than the one before it", i)
		}
	}
	h := &History{
		config: config, branches: map[string]bool{}, pasts: map[string]*past{}, details: map[string]*details{},
		refused: refused{known: map[groupKey]struct{}{}},
	}
	for _, t := range config.Tiers {
		h.bytes += int(mountAxis) * 8 * t.Rows // row times of all other axes, used or not
	}
	for i := range h.axes {
		h.axes[i].groups = map[groupKey]*group{}
	}
	return h, nil
}

// Append adds one reading. It ignores a reading that is not later than the last one of its axis: the rows of an axis
// are strictly ordered. ErrFull means that devices were left out and the others were stored.
func (h *History) Append(s *sample.Sample) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(s.GPUs) == 0 { // their stamps come from the driver
		h.clock.note(s.At)
	}
	before := h.refused.count
	for id := range h.axes {
		a := &h.axes[id]
		if !contains(axisID(id), s) || (a.used && s.At.Mono <= a.last) {
			continue
		}
		h.openAxis(a)
		if axisID(id) == processAxis {
			h.recallJobs(s) // before their past is dropped, because they are no candidates any more
			h.learnCandidates(s)
		}
		h.each(axisID(id), s, func(key groupKey, values [maxColumns]float64, reset time.Duration) {
			h.advance(a, key, values, reset, s.At.Mono)
		})
		h.totals.advance(axisID(id), s)
		if axisID(id) == gpuAxis {
			a.notePeriods(s.GPUs)
		}
		if axisID(id) == diskAxis {
			h.noteBranches(s.Disks)
		}
		h.commit(a, s.At.Mono)
	}
	h.detail(s)
	if len(s.Latencies) > 0 {
		h.latencies.append(s)
	}
	return h.refused.since(before)
}

// notePeriods stores how far apart the samples are from which the busy time of GPUs is interpolated.
func (a *axis) notePeriods(gpus []sample.GPU) {
	for i := range gpus {
		if g := a.groups[groupKey{kindGPU, gpus[i].ID}]; g != nil {
			g.period = gpus[i].Period
			g.averages = g.averages || gpus[i].Has&sample.AveragesBusy != 0
		}
	}
}

// SamplePeriod returns how far apart the samples are from which the busy time of a GPU is interpolated: 0 if each row
// is a reading.
func (h *History) SamplePeriod(gpu string) time.Duration {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if _, g := h.find(GPUBusyTime, gpu); g != nil {
		return g.period
	}
	return 0
}

// AveragesBusy reports whether the busy time of a GPU is from averages: see sample.AveragesBusy.
func (h *History) AveragesBusy(gpu string) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	_, g := h.find(GPUBusyTime, gpu)
	return g != nil && g.averages
}

// advance adds a device's reading to its columns. reset is when its counters restarted last.
func (h *History) advance(a *axis, key groupKey, values [maxColumns]float64, reset, at time.Duration) {
	if key.kind == kindLayer && !h.movedLayer(a, key, values, reset, at) {
		return
	}
	g := h.group(a, key, reset, at)
	if g == nil {
		return
	}
	g.seen = true
	for i := range g.columns {
		g.columns[i].advance(key.kind, values[i], reset != g.reset, at)
	}
	g.reset = reset
}

// openAxis allocates the rings of row times.
func (h *History) openAxis(a *axis) {
	if a.used {
		return
	}
	a.used = true
	tiers := h.config.Tiers
	if a == &h.axes[mountAxis] { // most machines have none, and these have columns on the finest tier only
		tiers = tiers[:1]
		h.bytes += 8 * tiers[0].Rows
	}
	a.tiers = make([]tier, len(tiers))
	for i, t := range tiers {
		a.tiers[i] = tier{period: t.Period, times: make([]time.Duration, t.Rows)}
	}
}

// group returns the columns of one device and creates them if needed. With little room left it uses the finest tier
// only. Without room it evicts devices that are gone. It returns nil if that is not enough.
func (h *History) group(a *axis, key groupKey, reset, at time.Duration) *group {
	if g := a.find(key); g != nil {
		return g
	}
	if key.kind == kindNone || h.refused.still(key) {
		return nil
	}
	tiers := len(h.config.Tiers)
	if key.kind.is(fine) || !h.room(key.kind, tiers) {
		tiers = 1
	}
	for !h.room(key.kind, tiers) {
		if key.kind == kindPeer || key.kind == kindMemory {
			return nil // no verdict lacks room because of these: reports have the others
		}
		if !h.evict() {
			h.refused.add(key)
			return nil
		}
	}
	return h.open(a, key, tiers, reset, at)
}

// open adds the columns of one device.
func (h *History) open(a *axis, key groupKey, tiers int, reset, at time.Duration) *group {
	g := newGroup(a, key, tiers, h.nextSlot, at)
	g.reset = reset
	h.nextSlot += uint32(len(g.columns))
	h.charge(key.kind, tiers, 1)
	a.add(g)
	if key.kind.is(counted) {
		for i := range g.columns {
			g.columns[i].whole = true
		}
	}
	if key.kind == kindPeer || key.kind == kindDisk && a.next() > 0 && h.refused.count == 0 && !h.branches[key.id] {
		// The device is new since the last reading, or had no I/O by then: it has counted from zero.
		for i := range g.columns {
			g.columns[i].begun, g.columns[i].whole = true, true
		}
	}
	return g
}

// noteBranches stores which disks are not leaves now. If one becomes a leaf, it has not counted from zero.
func (h *History) noteBranches(disks []sample.Disk) {
	clear(h.branches)
	for i := range disks {
		if d := &disks[i]; !d.Leaf && d.ReadIOs+d.WriteIOs+d.DiscardIOs > 0 {
			h.branches[d.Name] = true
		}
	}
}

// room reports whether another device fits.
func (h *History) room(k kind, tiers int) bool {
	size, limit := h.size(k, tiers), float64(h.config.MaxBytes)
	share, disks := 1.0, diskShare
	if tiers > 1 {
		share, disks = fullShare, diskFullShare
	}
	return float64(h.bytes+size) <= share*limit && (!k.ofDisk() || float64(h.diskBytes+size) <= disks*limit)
}

// charge accounts for the memory of new columns (sign 1) or dropped columns (sign -1).
func (h *History) charge(k kind, tiers, sign int) {
	h.bytes += sign * h.size(k, tiers)
	if k.ofDisk() {
		h.diskBytes += sign * h.size(k, tiers)
	}
}

func (h *History) size(k kind, tiers int) int {
	rows := 0
	for _, t := range h.config.Tiers[:tiers] {
		rows += k.rows(t.Rows)
	}
	return 8 * rows * k.columns()
}

// evict drops the device that has been gone longest.
func (h *History) evict() bool {
	var from *axis
	var oldest groupKey
	var since time.Duration
	for i := range h.axes {
		for key, g := range h.axes[i].groups {
			if g.gone && (from == nil || g.goneSince < since) {
				from, oldest, since = &h.axes[i], key, g.goneSince
			}
		}
	}
	if from == nil {
		return false
	}
	h.forget(from, oldest)
	return true
}

func (h *History) forget(a *axis, key groupKey) {
	h.charge(key.kind, a.groups[key].tiers, -1)
	a.remove(key)
	clear(h.refused.known)
}

// commit writes the values of all columns as a row. A device that is missing in the reading keeps its value, so that
// columns stay aligned. It counts as gone, and is dropped when its last row is older than the horizon.
func (h *History) commit(a *axis, at time.Duration) {
	for i := len(a.order) - 1; i >= 0; i-- { // from the end, because groups may go
		g := a.order[i]
		switch {
		case g.seen:
			g.seen, g.gone = false, false
		case !g.gone:
			g.gone, g.goneSince = true, at
			for i := range g.columns {
				g.columns[i].noteReset(at)
			}
		case at-g.goneSince > h.horizon(g.tiers):
			h.forget(a, g.key)
		}
	}
	a.turn = 0
	a.append(at)
}

// horizon returns how far back the first tiers reach.
func (h *History) horizon(tiers int) time.Duration {
	last := h.config.Tiers[tiers-1]
	return max(last.Period, 100*time.Millisecond) * time.Duration(last.Rows)
}

// Bytes returns the memory of all rows with full rings.
func (h *History) Bytes() int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.bytes
}

// IDs returns the present devices that have s, in no order.
func (h *History) IDs(s Series) []string {
	return h.ids(s, func(g *group) bool { return !g.gone })
}

// Known returns all devices that have s, including those that are gone, in no order.
func (h *History) Known(s Series) []string {
	return h.ids(s, func(*group) bool { return true })
}

// Gone returns when a device went that has not returned. ok is false while it is there.
func (h *History) Gone(key Key) (since time.Duration, ok bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	_, g := h.find(key.Series, key.ID)
	if g == nil || !g.gone {
		return 0, false
	}
	return g.goneSince, true
}

// Left returns the devices with s that went at or after a time and have not returned, sorted.
func (h *History) Left(s Series, since time.Duration) []string {
	ids := h.ids(s, func(g *group) bool { return g.gone && g.goneSince >= since })
	slices.Sort(ids)
	return ids
}

func (h *History) ids(s Series, match func(*group) bool) []string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	var ids []string
	for key, g := range h.axes[s.kind().axis()].groups {
		if key.kind == s.kind() && match(g) {
			ids = append(ids, key.id)
		}
	}
	return ids
}

// Spacing returns the time between the two newest rows on the axis of s; 0 if there are fewer.
func (h *History) Spacing(s Series) time.Duration {
	h.mu.RLock()
	defer h.mu.RUnlock()
	a := &h.axes[s.kind().axis()]
	if !a.used || a.next() < 2 {
		return 0
	}
	t := &a.tiers[0]
	return t.newest() - t.at(t.next-2)
}

// Last returns the time of the newest row on the axis of s.
func (h *History) Last(s Series) (time.Duration, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	a := &h.axes[s.kind().axis()]
	return a.last, a.used
}

package alert

import (
	"fmt"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// sensor is a temperature sensor of a GPU.
type sensor struct {
	gpu    string
	memory bool
}

// gpu is the state of one GPU.
type gpu struct {
	sample.GPU   // as last listed
	throttleTime lookback[[len(throttleReasons)]float64]
	xids         []xid
	present      bool
	reportedLost bool // the active event reports the GPU as lost, rather than not answering
}

func (w *Watcher) evaluateGPUs(s *sample.Sample) {
	at := w.now.Mono
	for _, g := range w.gpus {
		g.present = false
	}
	for i := range s.GPUs {
		g := w.gpu(&s.GPUs[i])
		if g == nil {
			continue
		}
		w.evaluateLost(g)
		w.evaluateReleased(g)
		var detail *sample.GPUDetail
		if k := slices.IndexFunc(s.GPUDetails, func(d sample.GPUDetail) bool { return d.GPU == g.ID }); k >= 0 {
			detail = &s.GPUDetails[k]
			w.evaluateXIDs(g, detail)
		}
		w.evaluateTemperatures(&g.GPU, detail)
		w.evaluateClocks(g, detail)
	}
	for _, t := range w.hot.endRound(at) {
		w.emitHot(&w.lookUp(t.key.gpu).GPU, t, 0, 0)
	}
	for _, t := range w.throttled.endRound(at) {
		w.emitThrottled(&w.lookUp(t.key).GPU, t, 0, "")
	}
	for _, t := range w.xids.endRound(at) {
		w.emitXID(t)
	}
	for _, t := range w.lost.endRound(at) {
		emit(w, t, Event{Kind: GPULost, GPU: &w.lookUp(t.key).GPU, Message: t.key + " is no longer listed"})
	}
	for _, t := range w.released.endRound(at) {
		emit(w, t, Event{Kind: GPUReleased, GPU: &w.lookUp(t.key).GPU, Message: t.key + " is no longer listed"})
	}
	for id, g := range w.gpus {
		// XID counts are kept, or a GPU that comes and goes would report the same XIDs again.
		if !g.present && len(g.xids) == 0 && !w.lost.active(id) && !w.throttled.active(id) &&
			!w.hot.active(sensor{id, false}) && !w.hot.active(sensor{id, true}) {
			delete(w.gpus, id)
		}
	}
}

// gpu returns the state of a listed GPU, or nil if there is no room for it.
func (w *Watcher) gpu(now *sample.GPU) *gpu {
	g := w.gpus[now.ID]
	if g == nil {
		if len(w.gpus) >= maxDevices {
			return nil
		}
		g = &gpu{}
		w.gpus[now.ID] = g
	}
	g.GPU, g.present = *now, true
	return g
}

// lookUp returns the state of a GPU that may have been forgotten.
func (w *Watcher) lookUp(id string) *gpu {
	if g := w.gpus[id]; g != nil {
		return g
	}
	return &gpu{GPU: sample.GPU{ID: id}}
}

// evaluateLost detects a GPU that cannot be read. If a GPU that did not answer turns out to be lost, that is a second
// event, because an operator must act on it.
func (w *Watcher) evaluateLost(g *gpu) {
	away := oneIf(g.Status != sample.GPUWorks)
	if !g.Status.IsKnown() {
		away = unknown
	}
	t, changed := w.lost.evaluate(g.ID, w.now.Mono, away)
	lost := g.Status == sample.GPULost
	if !changed {
		if !lost || g.reportedLost || !w.lost.active(g.ID) {
			return
		}
		t = transition[string]{key: g.ID, edge: w.now.Mono}
	}
	g.reportedLost = lost
	e := Event{Kind: GPULost, GPU: new(g.GPU), Severe: true, Lost: lost}
	switch g.Status {
	case sample.GPUWorks:
		e.Message = g.ID + " can be read again"
	case sample.GPUHung:
		e.Message = g.ID + " cannot be read: its driver does not answer; look for Xid and NVRM in the kernel log"
	default:
		e.Message = g.ID + " cannot be read: its driver reports it as lost; look for Xid and NVRM in the kernel log"
	}
	emit(w, t, e)
}

// evaluateReleased detects that this program has let go of a GPU.
func (w *Watcher) evaluateReleased(g *gpu) {
	t, changed := w.released.evaluate(g.ID, w.now.Mono, oneIf(g.Status == sample.GPUReleased))
	if !changed {
		return
	}
	e := Event{Kind: GPUReleased, GPU: new(g.GPU), Message: g.ID + " is released: no file of its driver is open here"}
	if g.Status != sample.GPUReleased {
		e.Message = g.ID + " is not released any more"
	}
	emit(w, t, e)
}

// evaluateTemperatures compares the temperatures of GPU and memory with their slowdown temperatures. Memory without a
// reported limit is not judged.
func (w *Watcher) evaluateTemperatures(g *sample.GPU, d *sample.GPUDetail) {
	chip, memory, limit, memoryLimit := unknown, unknown, float64(defaultSlowdown), 0.0
	if g.Status == sample.GPUWorks && g.Has&sample.HasTemperature != 0 {
		chip = g.Temperature
	}
	if d != nil {
		if v, ok := d.Values.Get(sample.GPUSlowdownAt); ok && v > 0 && v <= maxTemperature {
			limit = v
		}
		if v, ok := d.Values.Get(sample.GPUMemorySlowdownAt); ok && v > 0 && v <= maxTemperature {
			memoryLimit = v
		}
		if v, ok := d.Values.Get(sample.GPUTemperatureMemory); ok && g.Status == sample.GPUWorks {
			memory = v
		}
	}
	w.evaluateTemperature(g, false, chip, limit)
	switch {
	case memoryLimit > 0:
		w.evaluateTemperature(g, true, memory, memoryLimit)
	case w.hot.has(sensor{g.ID, true}): // the limit is unknown for now, for example because the GPU hangs
		w.evaluateTemperature(g, true, unknown, unknown)
	}
}

func (w *Watcher) evaluateTemperature(g *sample.GPU, memory bool, now, limit float64) {
	if !(now > 0 && now <= maxTemperature) {
		now = unknown
	}
	if t, changed := w.hot.evaluate(sensor{g.ID, memory}, w.now.Mono, now-limit); changed {
		w.emitHot(g, t, now, limit-hotMargin)
	}
}

func (w *Watcher) emitHot(g *sample.GPU, t transition[sensor], now, limit float64) {
	e := Event{Kind: GPUHot, GPU: new(*g), Memory: t.key.memory, Value: now, Limit: limit, HasValue: !t.removed}
	name := g.ID
	if t.key.memory {
		name = "the memory of " + g.ID
	}
	switch {
	case t.removed:
		e.Message = name + " was hot, and is no longer listed"
	case t.resolved:
		e.Message = fmt.Sprintf("%s has cooled down to %.0f C", name, now)
	default:
		why := fmt.Sprintf("and slows down at %.0f C", limit+hotMargin)
		if limit+hotMargin == defaultSlowdown { // if the GPU reports this limit, the sentence is true, too
			why = fmt.Sprintf("and %.0f C is too hot for most GPUs", limit)
		}
		e.Message = fmt.Sprintf("%s is at %.0f C, %s: check its fans, the air flow and its neighbors", name, now, why)
	}
	emit(w, t, e)
}

// throttlePeriod is the time over which the share with reduced clocks is taken.
const throttlePeriod = 30 * time.Second

// evaluateClocks takes the share of the last 30 s with reduced clocks, by the reason with the largest share.
func (w *Watcher) evaluateClocks(g *gpu, d *sample.GPUDetail) {
	share, reason := unknown, ""
	var now [len(throttleReasons)]float64
	supported := false
	if d != nil && g.Status == sample.GPUWorks {
		for i, q := range throttleReasons {
			v, ok := d.Values.Get(q)
			now[i], supported = v, supported || ok
		}
	}
	if !supported {
		g.throttleTime.reset()
	} else {
		for i := range now {
			if g.throttleTime.n > 0 && now[i] < g.throttleTime.newest().value[i] {
				g.throttleTime.reset() // the driver was reloaded
			}
		}
		if before := g.throttleTime.before(d.At, throttlePeriod); before != nil {
			share = 0
			for i := range now {
				if s := (now[i] - before.value[i]) / (d.At - before.at).Seconds(); s > share || reason == "" {
					share, reason = min(1, s), throttleReasons[i].String()
				}
			}
		}
		if g.throttleTime.due(d.At, throttlePeriod) {
			g.throttleTime.add(d.At, now)
		}
	}
	if t, changed := w.throttled.evaluate(g.ID, w.now.Mono, share); changed {
		w.emitThrottled(&g.GPU, t, share, reason)
	}
}

// reasonText has the throttle reasons as part of a sentence.
var reasonText = map[string]string{
	sample.GPUThrottledThermal.String():    "to stay below the maximum operating temperature",
	sample.GPUThrottledHWThermal.String():  "by the hardware's thermal protection",
	sample.GPUThrottledPowerBrake.String(): "by the power brake signal of the power supply",
}

func (w *Watcher) emitThrottled(g *sample.GPU, t transition[string], share float64, reason string) {
	e := Event{
		Kind: GPUThrottled, GPU: new(*g), Reason: reason,
		Value: share, Limit: LimitsOf[GPUThrottled].Raise, HasValue: !t.removed,
	}
	switch {
	case t.removed:
		e.Message = g.ID + " was throttled, and is no longer listed"
	case t.resolved:
		e.Message, e.Reason = g.ID+" is no longer throttled", ""
	default:
		e.Message = fmt.Sprintf("the clocks of %s were reduced for %.0f %% of the last 30 s, %s",
			g.ID, 100*share, reasonText[reason])
	}
	emit(w, t, e)
}

// xidKey is one XID code of one GPU.
type xidKey struct {
	gpu  string
	code int
}

// xid is the state of one XID code of one GPU.
type xid struct {
	code  int
	seen  uint64 // the count of the last evaluation
	fresh uint64 // XIDs since the last event
	total uint64 // XIDs of the active condition, up to its first event
}

// maxXIDs bounds the codes of one GPU. NVIDIA's table has fewer than two hundred.
const maxXIDs = 256

// xid returns the state of a code, or nil if there is no room for it.
func (g *gpu) xid(code int) *xid {
	i := slices.IndexFunc(g.xids, func(x xid) bool { return x.code == code })
	if i < 0 {
		if len(g.xids) >= maxXIDs {
			return nil
		}
		g.xids = append(g.xids, xid{code: code})
		i = len(g.xids) - 1
	}
	return &g.xids[i]
}

// evaluateXIDs detects new XIDs. An XID that comes within MinInterval of its code's last event is reported after it.
func (w *Watcher) evaluateXIDs(g *gpu, d *sample.GPUDetail) {
	for i := range d.XIDs {
		now := &d.XIDs[i]
		x := g.xid(now.Code)
		if x == nil {
			continue
		}
		if now.Count < x.seen {
			x.seen = 0 // the counter restarted
		}
		added := now.Count - x.seen
		x.seen, x.fresh = now.Count, x.fresh+added
		key, value := xidKey{g.ID, now.Code}, 0.0
		active := w.xids.active(key)
		if added > 0 || !active && x.fresh > 0 {
			value = 1
		}
		if !active && value == 0 {
			continue // the group has no room for every code that was ever reported
		}
		if t, changed := w.xids.evaluate(key, w.now.Mono, value); changed {
			w.emitXID(t)
		}
	}
}

func (w *Watcher) emitXID(t transition[xidKey]) {
	g := w.lookUp(t.key.gpu)
	x := g.xid(t.key.code)
	if x == nil {
		return
	}
	e := Event{
		Kind: GPUError, GPU: new(g.GPU), Code: x.code, Count: x.fresh,
		Severe: !slices.Contains(applicationXIDs[:], x.code),
	}
	if t.resolved {
		x.total += x.fresh
		e.Message = fmt.Sprintf("%s has not reported XID %d for %.0f min",
			g.ID, x.code, LimitsOf[GPUError].ClearAfter.Minutes())
		if x.total > 1 {
			e.Message += fmt.Sprintf(", after %d of them", x.total)
		}
		x.total = 0
	} else {
		x.total = x.fresh
		e.Message = fmt.Sprintf("%s has reported XID %d", g.ID, x.code)
		if x.fresh > 1 {
			e.Message += fmt.Sprintf(" %d times", x.fresh)
		}
		if e.Severe {
			e.Message += ": look it up in NVIDIA's table of XID errors, and read the kernel log"
		} else {
			e.Message += ", which is usually caused by a program on the GPU"
		}
	}
	x.fresh = 0
	emit(w, t, e)
}

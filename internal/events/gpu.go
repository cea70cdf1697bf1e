package events

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/condition"
	"github.com/stallspan/stallspan/internal/sample"
)

// sensor is where in a GPU a temperature is taken.
type sensor struct {
	gpu    string
	memory bool
}

// card is what is remembered of one GPU.
type card struct {
	gpu     sample.GPU // as it was last listed
	clocks  stretch[[len(throttled)]float64]
	xids    []xid
	present bool
	gone    bool // the event that holds says that the GPU is gone, rather than not answering
}

func (w *Watch) gpus(s *sample.Sample) {
	at := w.now.Mono
	for _, c := range w.cards {
		c.present = false
	}
	for i := range s.GPUs {
		g := &s.GPUs[i]
		c := w.card(g)
		if c == nil {
			continue
		}
		w.reach(c, g)
		var detail *sample.GPUDetail
		if k := slices.IndexFunc(s.GPUDetails, func(d sample.GPUDetail) bool { return d.GPU == g.ID }); k >= 0 {
			detail = &s.GPUDetails[k]
			w.errors(c, detail)
		}
		w.temperatures(g, detail)
		w.clocks(c, detail)
	}
	for _, t := range w.hot.Rest(at) {
		w.sayHot(&w.known(t.Key.gpu).gpu, t, 0, 0)
	}
	for _, t := range w.throttle.Rest(at) {
		w.sayThrottled(&w.known(t.Key).gpu, t, 0, "")
	}
	for _, t := range w.wrong.Rest(at) {
		w.sayError(t)
	}
	for _, t := range w.lost.Rest(at) {
		say(w, t, Event{Kind: GPULost, GPU: &w.known(t.Key).gpu, Says: t.Key + " is not listed any more"})
	}
	for id, c := range w.cards {
		// Errors that were seen are remembered, or a GPU that comes and goes would tell them again and again.
		if !c.present && len(c.xids) == 0 && !w.lost.Raised(id) && !w.throttle.Raised(id) && !w.hot.Raised(sensor{id, false}) && !w.hot.Raised(sensor{id, true}) {
			delete(w.cards, id)
		}
	}
}

// card is what is remembered of a GPU; nil where there is no room for it.
func (w *Watch) card(g *sample.GPU) *card {
	c := w.cards[g.ID]
	if c == nil {
		if len(w.cards) >= most {
			return nil
		}
		c = &card{}
		w.cards[g.ID] = c
	}
	c.gpu, c.present = *g, true
	return c
}

// known is a GPU that may be gone.
func (w *Watch) known(id string) *card {
	if c := w.cards[id]; c != nil {
		return c
	}
	return &card{gpu: sample.GPU{ID: id}}
}

// reach sees whether the GPU can be read. That one which did not answer is gone is told, too: somebody has to act on it.
func (w *Watch) reach(c *card, g *sample.GPU) {
	value := 0.0
	if g.Status != sample.GPUWorks {
		value = 1
	}
	t, changed := w.lost.Look(g.ID, w.now.Mono, value)
	lost := g.Status == sample.GPULost
	if !changed {
		if !lost || c.gone || !w.lost.Raised(g.ID) {
			return
		}
		t = told[string]{Key: g.ID, Change: condition.Raised, Edge: w.now.Mono}
	}
	c.gone = lost
	e := Event{Kind: GPULost, GPU: new(*g), Severe: true, Lost: lost}
	switch g.Status {
	case sample.GPUWorks:
		e.Says = g.ID + " can be read again"
	case sample.GPUHung:
		e.Says = g.ID + " can no longer be read: its driver does not answer; look for Xid and NVRM in the kernel's log"
	default:
		e.Says = g.ID + " can no longer be read: its driver says that it is gone; look for Xid and NVRM in the kernel's log"
	}
	say(w, t, e)
}

// temperatures sees how far chip and memory are from slowing down. Memory that tells no limit has none.
func (w *Watch) temperatures(g *sample.GPU, d *sample.GPUDetail) {
	chip, memory, limit, memoryLimit := math.NaN(), math.NaN(), float64(usualSlowdown), 0.0
	if g.Status == sample.GPUWorks && g.Has&sample.HasTemperature != 0 {
		chip = g.Temperature
	}
	if d != nil {
		if v, told := d.Values.Get(sample.GPUSlowdownAt); told && v > 0 && v <= hottest {
			limit = v
		}
		if v, told := d.Values.Get(sample.GPUMemorySlowdownAt); told && v > 0 && v <= hottest {
			memoryLimit = v
		}
		if v, told := d.Values.Get(sample.GPUTemperatureMemory); told && g.Status == sample.GPUWorks {
			memory = v
		}
	}
	w.temperature(g, false, chip, limit)
	switch {
	case memoryLimit > 0:
		w.temperature(g, true, memory, memoryLimit)
	case w.hot.Has(sensor{g.ID, true}): // the limit is not known for now, as of a GPU that hangs
		w.temperature(g, true, unknown, unknown)
	}
}

func (w *Watch) temperature(g *sample.GPU, memory bool, now, limit float64) {
	if !(now > 0 && now <= hottest) {
		now = math.NaN()
	}
	if t, changed := w.hot.Look(sensor{g.ID, memory}, w.now.Mono, now-limit); changed {
		w.sayHot(g, t, now, limit-hotMargin)
	}
}

func (w *Watch) sayHot(g *sample.GPU, t told[sensor], now, limit float64) {
	where, e := "", Event{Kind: GPUHot, GPU: new(*g), Memory: t.Key.memory, Value: now, Limit: limit, Measure: !t.Gone}
	if t.Key.memory {
		where = "the memory of "
	}
	switch {
	case t.Gone:
		e.Says = where + g.ID + " was hot, and is not listed any more"
	case resolved(t):
		e.Says = fmt.Sprintf("%s%s has cooled down to %.0f C", where, g.ID, now)
	default:
		slows := fmt.Sprintf("and slows down at %.0f C", limit+hotMargin)
		if limit+hotMargin == usualSlowdown { // which a chip may also tell: then nothing wrong is said
			slows = fmt.Sprintf("and %.0f C is too hot for most", limit)
		}
		e.Says = fmt.Sprintf("%s%s is at %.0f C, %s: look at its fans, its air and what is beside it", where, g.ID, now, slows)
	}
	say(w, t, e)
}

// throttleOver is the time over which the share with lower clocks is taken.
const throttleOver = 30 * time.Second

// clocks sees for what share of the last 30 s the clocks were held down, by the reason that did so most.
func (w *Watch) clocks(c *card, d *sample.GPUDetail) {
	share, reason := math.NaN(), ""
	var now [len(throttled)]float64
	tells := false
	if d != nil && c.gpu.Status == sample.GPUWorks {
		for i, q := range throttled {
			v, told := d.Values.Get(q)
			now[i], tells = v, tells || told
		}
	}
	if !tells {
		c.clocks.forget()
	} else {
		if c.clocks.n > 0 && fell(c.clocks.newest().value, now) {
			c.clocks.forget() // its driver was loaded again
		}
		if before := c.clocks.before(d.At, throttleOver); before != nil {
			share = 0
			for i := range now {
				if s := (now[i] - before.value[i]) / (d.At - before.at).Seconds(); s > share || reason == "" {
					share, reason = min(1, s), throttled[i].String()
				}
			}
		}
		if c.clocks.due(d.At, throttleOver) {
			c.clocks.add(d.At, now)
		}
	}
	if t, changed := w.throttle.Look(c.gpu.ID, w.now.Mono, share); changed {
		w.sayThrottled(&c.gpu, t, share, reason)
	}
}

func fell(a, b [len(throttled)]float64) bool {
	for i := range a {
		if b[i] < a[i] {
			return true
		}
	}
	return false
}

// because says the reasons in words.
var because = map[string]string{
	sample.GPUThrottledThermal.String():    "to stay below their highest working temperature",
	sample.GPUThrottledHWThermal.String():  "by the chip's own protection from heat",
	sample.GPUThrottledPowerBrake.String(): "by the power supply's brake",
}

func (w *Watch) sayThrottled(g *sample.GPU, t told[string], share float64, reason string) {
	e := Event{Kind: GPUThrottled, GPU: new(*g), Value: share, Limit: Table[GPUThrottled].Raise, Measure: !t.Gone, Reason: reason}
	switch {
	case t.Gone:
		e.Says = g.ID + " was held back, and is not listed any more"
	case resolved(t):
		e.Says, e.Reason = g.ID+" runs at the clocks that it wants again", ""
	default:
		e.Says = fmt.Sprintf("the clocks of %s were held down for %.0f %% of the last 30 s, %s", g.ID, 100*share, because[reason])
	}
	say(w, t, e)
}

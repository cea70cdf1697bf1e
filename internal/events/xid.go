package events

import (
	"fmt"
	"slices"

	"github.com/stallspan/stallspan/internal/sample"
)

// fault is one XID code of one GPU.
type fault struct {
	gpu  string
	code int
}

// xid is what is remembered of a fault.
type xid struct {
	code int
	seen uint64 // how many the program that counts them had seen at the last look
	news uint64 // that were seen since the event before
	all  uint64 // that were seen in the condition that holds, up to its first event
}

// mostXIDs bounds the codes of one GPU. NVIDIA's table has fewer than two hundred.
const mostXIDs = 256

// xid is what is remembered of a code; nil where there is no room for it.
func (c *card) xid(code int) *xid {
	i := slices.IndexFunc(c.xids, func(x xid) bool { return x.code == code })
	if i < 0 {
		if len(c.xids) >= mostXIDs {
			return nil
		}
		c.xids = append(c.xids, xid{code: code})
		i = len(c.xids) - 1
	}
	return &c.xids[i]
}

// errors sees XIDs that are new. One that comes too soon after the last event of its code waits, and is told then.
func (w *Watch) errors(c *card, d *sample.GPUDetail) {
	for i := range d.XIDs {
		now := &d.XIDs[i]
		x := c.xid(now.Code)
		if x == nil {
			continue
		}
		if now.Count < x.seen {
			x.seen = 0 // the program that counts has begun anew
		}
		more := now.Count - x.seen
		x.seen, x.news = now.Count, x.news+more
		key, value := fault{c.gpu.ID, now.Code}, 0.0
		holds := w.wrong.Raised(key)
		if more > 0 || !holds && x.news > 0 {
			value = 1
		}
		if !holds && value == 0 {
			continue // nothing is kept of it in the group, which has not got room for all that ever was
		}
		if t, changed := w.wrong.Look(key, w.now.Mono, value); changed {
			w.sayError(t)
		}
	}
}

func (w *Watch) sayError(t told[fault]) {
	c := w.known(t.Key.gpu)
	x := c.xid(t.Key.code)
	if x == nil {
		return
	}
	e := Event{Kind: GPUError, GPU: new(c.gpu), Code: x.code, Count: x.news, Severe: !slices.Contains(ownFault[:], x.code)}
	if resolved(t) {
		x.all += x.news
		e.Says = fmt.Sprintf("%s has not reported XID %d for %.0f min", c.gpu.ID, x.code, Table[GPUError].Until.Minutes())
		if x.all > 1 {
			e.Says += fmt.Sprintf(", after %d of them", x.all)
		}
		x.all = 0
	} else {
		x.all = x.news
		e.Says = fmt.Sprintf("%s has reported XID %d", c.gpu.ID, x.code)
		if x.news > 1 {
			e.Says += fmt.Sprintf(" %d times", x.news)
		}
		if e.Severe {
			e.Says += ": look it up in NVIDIA's table of XID errors, and in the kernel's log"
		} else {
			e.Says += ", which a program on it brings about as a rule"
		}
	}
	x.news = 0
	say(w, t, e)
}

package gpu

import (
	"context"
	"fmt"
	"slices"

	"github.com/stallspan/stallspan/internal/sample"
)

const (
	mostXID  = 1000 // NVIDIA's table of XID errors ends below
	mostXIDs = 64   // kinds of them that are counted of one GPU
)

// readEvents looks for XID errors, of lost GPUs too: why a GPU fell off the bus may be told after that is found out.
func (r *run) readEvents(ctx context.Context) {
	if r.noEvents || !r.open || ctx.Err() != nil || r.events != 0 && r.began-r.events < gaugesEach {
		return
	}
	r.events = r.began
	var list []event
	var err error
	switch r.do(ctx, callLimit, func() { list, err = r.driver.events() }, func() {
		r.noEvents = false
		r.learnEvents(list, err)
	}) {
	case finished:
		r.learnEvents(list, err)
	case abandoned:
		r.noEvents = true
		if ctx.Err() == nil {
			r.notes.add("hung events", fmt.Errorf("the NVIDIA driver has not answered nvmlEventSetWait for %v: XID errors are "+
				"counted again once that call has returned", callLimit), r.began)
		}
	case refused:
	}
}

func (r *run) learnEvents(list []event, err error) {
	for _, e := range list {
		r.learnEvent(e)
	}
	switch {
	case err == nil:
	case isEnded(err):
		r.ended(err)
	case isLacking(err):
		r.noEvents = true
	case !isGone(err): // of which a reading tells more
		r.notes.add("events", fmt.Errorf("reading XID errors: %w", err), r.began)
	}
}

func (r *run) learnEvent(e event) {
	i := slices.IndexFunc(r.cards, func(c *card) bool { return c.facts.ID == e.gpu })
	if e.xid < 0 || e.xid > mostXID || i >= 0 && !r.cards[i].count(e.xid) {
		r.drop("XID", 1)
		return
	}
	if i >= 0 {
		r.tellXIDs(r.cards[i])
	}
}

// tellXIDs lets the next row tell the errors of a GPU that does not work. One that works tells them with its details.
func (r *run) tellXIDs(c *card) {
	if !c.works() && len(c.xids) > 0 {
		r.rows.detail(sample.GPUDetail{GPU: c.facts.ID, At: r.began, XIDs: c.xids})
	}
}

// count counts an XID error. It gives false where there are too many kinds of them to be true.
func (c *card) count(code int) bool {
	i, known := slices.BinarySearchFunc(c.xids, code, func(x sample.XID, code int) int { return x.Code - code })
	if !known && len(c.xids) == mostXIDs {
		return false
	}
	c.xids = slices.Clone(c.xids)
	if !known {
		c.xids = slices.Insert(c.xids, i, sample.XID{Code: code})
	}
	c.xids[i].Count++
	return true
}

// learnUse tells what asking costs, once a second.
func (r *run) learnUse() {
	if r.used != 0 && r.began-r.used < gaugesEach {
		return
	}
	r.used = r.began
	u := r.driver.use()
	r.rows.use = &sample.DriverUse{Calls: u.calls, Fields: u.fields, Dropped: r.dropped, Sessions: u.sessions}
}

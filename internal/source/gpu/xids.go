package gpu

import (
	"context"
	"fmt"
	"slices"

	"github.com/stallspan/stallspan/internal/sample"
)

const (
	maxXID  = 1000 // NVIDIA's table of XID errors ends below
	maxXIDs = 64   // kinds of them that are counted of one GPU
)

// readEvents looks for XID errors, of lost GPUs too: why a GPU fell off the bus may be told after that is found out.
func (r *run) readXIDs(ctx context.Context) {
	if r.noEvents || !r.open || ctx.Err() != nil || r.events != 0 && r.began-r.events < gaugeInterval {
		return
	}
	r.events = r.began
	var list []xidEvent
	var err error
	switch r.do(ctx, callTimeout, func() { list, err = r.driver.events() }, func() {
		r.noEvents = false
		r.applyXIDs(list, err)
	}) {
	case completed:
		r.applyXIDs(list, err)
	case timedOut:
		r.noEvents = true
		if ctx.Err() == nil {
			r.notes.add("hung events", fmt.Errorf("the NVIDIA driver has not answered nvmlEventSetWait for %v: XID errors are "+
				"counted again once that call has returned", callTimeout), r.began)
		}
	case noThread:
	}
}

func (r *run) applyXIDs(list []xidEvent, err error) {
	for _, e := range list {
		r.addXID(e)
	}
	switch {
	case err == nil:
	case isSessionEnded(err):
		r.endSession(err)
	case isUnsupported(err):
		r.noEvents = true
	case !isLost(err): // of which a reading tells more
		r.notes.add("events", fmt.Errorf("reading XID errors: %w", err), r.began)
	}
}

func (r *run) addXID(e xidEvent) {
	i := slices.IndexFunc(r.devices, func(c *deviceState) bool { return c.info.ID == e.gpu })
	if e.xid < 0 || e.xid > maxXID || i >= 0 && !r.devices[i].countXID(e.xid) {
		r.countGarbage("XID", 1)
		return
	}
	if i >= 0 {
		r.emitXIDs(r.devices[i])
	}
}

// tellXIDs lets the next row tell the errors of a GPU that does not work. One that works tells them with its details.
func (r *run) emitXIDs(c *deviceState) {
	if !c.readable() && len(c.xids) > 0 {
		r.rows.addDetail(sample.GPUDetail{GPU: c.info.ID, At: r.began, XIDs: c.xids})
	}
}

// count counts an XID error. It gives false where there are too many kinds of them to be true.
func (c *deviceState) countXID(code int) bool {
	i, known := slices.BinarySearchFunc(c.xids, code, func(x sample.XID, code int) int { return x.Code - code })
	if !known && len(c.xids) == maxXIDs {
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
func (r *run) addDriverUse() {
	if r.used != 0 && r.began-r.used < gaugeInterval {
		return
	}
	r.used = r.began
	u := r.driver.stats()
	r.rows.driverUse = &sample.DriverUse{Calls: u.calls, Fields: u.fields, Dropped: r.dropped, Sessions: u.sessions}
}

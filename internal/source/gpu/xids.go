package gpu

import (
	"context"
	"fmt"
	"slices"

	"github.com/stallspan/stallspan/internal/sample"
)

const (
	maxXID  = 1000 // above NVIDIA's table of XID errors
	maxXIDs = 64   // different codes of one GPU
)

// readXIDs reads new XID errors, also of lost GPUs: the XID may arrive after the loss was detected.
func (r *run) readXIDs(ctx context.Context) {
	if r.noXIDs || !r.open || ctx.Err() != nil || r.xidsRead != 0 && r.began-r.xidsRead < gaugeInterval {
		return
	}
	r.xidsRead = r.began
	var list []xidEvent
	var err error
	r.callDriver("nvmlEventSetWait", callTimeout, func() { list, err = r.driver.events() },
		func() { r.applyXIDs(list, err) })
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
		r.noXIDs = true
	case !isLost(err): // the next reading handles a lost GPU
		r.reports.Add("events", fmt.Errorf("reading XID errors: %w", err), r.began)
	}
}

func (r *run) addXID(e xidEvent) {
	g := r.stateOf(e.gpu)
	if e.xid < 0 || e.xid > maxXID || g != nil && !g.countXID(e.xid) {
		r.countGarbage("XID", 1)
		return
	}
	if g != nil {
		r.emitXIDs(g)
	}
}

// emitXIDs adds the XID errors of a GPU that cannot be read to the next row. Else they are part of its details.
func (r *run) emitXIDs(g *deviceState) {
	if !g.readable() && len(g.xids) > 0 {
		r.addDetail(sample.GPUDetail{GPU: g.info.ID, At: r.began, XIDs: g.xids})
	}
}

// countXID counts an XID error. It returns false if there are too many different codes to be real.
func (g *deviceState) countXID(code int) bool {
	i, known := slices.BinarySearchFunc(g.xids, code, func(x sample.XID, code int) int { return x.Code - code })
	if !known && len(g.xids) == maxXIDs {
		return false
	}
	g.xids = slices.Clone(g.xids)
	if !known {
		g.xids = slices.Insert(g.xids, i, sample.XID{Code: code})
	}
	g.xids[i].Count++
	return true
}

// addDriverUse adds the statistics of the driver's calls to the next row, once a second.
func (r *run) addDriverUse() {
	if r.maker != nvidia || r.statsSent != 0 && r.began-r.statsSent < gaugeInterval {
		return
	}
	r.statsSent = r.began
	u := r.driver.stats()
	r.driverUse = &sample.DriverUse{Calls: u.calls, Fields: u.fields, Dropped: r.dropped, Sessions: u.sessions}
}

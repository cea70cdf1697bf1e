package alert

import (
	"fmt"
	"slices"

	"github.com/stallspan/stallspan/internal/sample"
)

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

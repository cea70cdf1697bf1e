package chain

import "time"

type reasonID uint16

// reasons numbers reasons, from 1. The zero value is ready.
type reasons struct {
	ids   map[Reason]reasonID
	all   []Reason
	free  []reasonID
	most  int           // with names; the others have their kind alone
	swept time.Duration // when the unused ones were last dropped
}

// sweepPause is the shortest time between two searches for unused reasons.
const sweepPause = time.Second

// id returns the number of a reason. If there is no room for its name, it is the number of its kind.
func (r *reasons) id(why Reason) reasonID {
	if id, ok := r.ids[why]; ok {
		return id
	}
	if r.ids == nil {
		r.ids = map[Reason]reasonID{}
	}
	if why.Name != "" && r.full() {
		return r.id(Reason{Kind: why.Kind})
	}
	id := reasonID(len(r.all) + 1)
	if n := len(r.free); n > 0 {
		id, r.free = r.free[n-1], r.free[:n-1]
		r.all[id-1] = why
	} else {
		r.all = append(r.all, why)
	}
	r.ids[why] = id
	return id
}

// full reports whether there is no room for another name.
func (r *reasons) full() bool { return len(r.free) == 0 && len(r.all) >= r.most }

// sweep drops the reasons that are not in use. mark calls its argument for each number that is.
func (r *reasons) sweep(now time.Duration, mark func(use func(reasonID))) {
	r.swept = now
	used := make([]bool, len(r.all)+1)
	mark(func(id reasonID) { used[id] = true })
	for why, id := range r.ids {
		if !used[id] && why.Name != "" {
			delete(r.ids, why)
		}
	}
	r.free = r.free[:0]
	for i := range r.all {
		if id := reasonID(i + 1); r.ids[r.all[i]] != id {
			r.free = append(r.free, id)
		}
	}
}

func (r *reasons) get(id reasonID) Reason {
	if id == 0 || int(id) > len(r.all) {
		return Reason{Kind: ForEvent}
	}
	return r.all[id-1]
}

// reason returns the number of a reason.
func (t *Timeline) reason(why Reason) reasonID {
	r := &t.reasons
	if _, known := r.ids[why]; !known && why.Name != "" && r.full() && t.until >= r.swept+sweepPause {
		r.sweep(t.until, t.eachReason)
	}
	return r.id(why)
}

// eachReason calls use for the reason of each segment and each pause.
func (t *Timeline) eachReason(use func(reasonID)) {
	for _, th := range t.threads {
		use(th.pause.reason)
		use(th.found)
		for i := range th.segments {
			use(th.segments[i].reason)
		}
	}
}

package chain

import "time"

type reasonID uint16

// reasons numbers reasons, from 1. The zero value is ready.
type reasons struct {
	ids   map[Reason]reasonID
	all   []Reason
	free  []reasonID
	swept time.Duration // when the unused ones were last dropped
}

// sweepPause is the shortest time between two searches for unused reasons.
const sweepPause = time.Second

// reason returns the number of a reason. If there is no room for its name, it is the number of its kind.
func (t *Timeline) reason(why Reason) reasonID {
	r := &t.reasons
	if id, ok := r.ids[why]; ok {
		return id
	}
	if r.ids == nil {
		r.ids = map[Reason]reasonID{}
	}
	if why.Name != "" && len(r.free) == 0 && len(r.all) >= maxReasons {
		if t.until < r.swept+sweepPause {
			return t.reason(Reason{Kind: why.Kind})
		}
		t.sweep()
		return t.reason(why)
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

// sweep drops the reasons that no segment and no pause has.
func (t *Timeline) sweep() {
	r := &t.reasons
	r.swept = t.until
	used := make([]bool, len(r.all)+1)
	for _, th := range t.threads {
		used[th.pause.reason] = true
		for i := range th.segments {
			used[th.segments[i].reason] = true
		}
	}
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

// stolen is the reason of time that the hypervisor stole.
func (t *Timeline) stolen() reasonID {
	return t.reason(Reason{Kind: ForSteal, Name: "stolen by the hypervisor"})
}

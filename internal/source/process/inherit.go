package process

// What a process has read is counted by the kernel once more when it ends: whoever waits for it inherits all its
// counters. A loader's workers that read 10 GB and end would thus count twice, once as themselves and once as their
// parent, if a job's bytes were the sum over its processes with those kept that have gone. So a member that is gone
// goes on counting only until its parent, or the next member above that is still there, is seen to have inherited
// from it; from then on it is counted there, exactly, with what it did after its last reading. A member that nobody
// of the job has waited for (the first process; an orphan that init has taken over; a child of a parent that
// ignores SIGCHLD) keeps its last reading for good.
//
// Whether a parent has inherited shows in its cfaults and in its children's CPU time, which grow in no other way.
// The kernel lets a parent inherit before it takes the child out of /proc, and members are read from the oldest to
// the youngest, parents before their children: so an inheritance is seen at the reading that finds the child gone
// or at the one after, and never while the child is still being counted.

// settle decides about the members that are gone: first about those that were so at the reading before, since what
// their heirs have gained is theirs before it is anybody else's, and parents before their children.
func (j *job) settle(s *Source) {
	for _, m := range j.members {
		m.expects = false
	}
	decided := 0
	for _, last := range [...]bool{true, false} { // is this the last chance to have been inherited from
		for _, m := range j.members {
			if m.lost == 0 || m.settled {
				continue
			}
			heir, lost := j.heir(m)
			if heir != nil && lost < j.readings != last {
				continue
			}
			switch {
			case heir != nil && heir.inherit(m, &j.left):
			case heir != nil && !last:
				heir.expects = true // it may have been read just before it inherited
				continue
			default:
				j.left = j.left.plus(m.counted())
			}
			m.settled = true
			decided++
		}
	}
	if decided == 0 {
		return
	}
	kept := j.members[:0]
	for _, m := range j.members {
		if m.settled {
			s.dismiss(m)
			delete(j.byPID, m.pid)
			continue
		}
		kept = append(kept, m)
	}
	clear(j.members[len(kept):])
	j.members = kept
}

// heir is the nearest member above m that is still there, nil when there is none. lost is the reading that found
// the last of those gone through whom it would inherit.
func (j *job) heir(m *member) (heir *member, lost uint64) {
	for range j.members { // a bound, should the files describe a circle
		lost = max(lost, m.lost)
		m = j.byPID[m.parent]
		if m == nil || m.lost == 0 {
			return m, lost
		}
	}
	return nil, lost
}

// inherit moves the counting of lost from itself to h, if h has got its counters. Bytes that h cannot show are put
// to left.
func (h *member) inherit(lost *member, left *counts) bool {
	got, base := lost.now, lost.base
	var unseen counts
	if !h.hasIO {
		var bytes, bytesBase counts
		got, bytes = got.splitIO()
		base, bytesBase = base.splitIO()
		unseen = bytes.minus(bytesBase)
	}
	if !h.gain.covers(got) {
		return false
	}
	h.gain = h.gain.minus(got)
	h.base = h.base.plus(base)
	h.adopted = h.adopted.plus(got)
	*left = left.plus(unseen)
	return true
}

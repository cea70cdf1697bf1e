package process

// The kernel counts what a process has read again when the process ends: the process that waits for it inherits all its
// counters. Loader workers that read 10 GB and end would count twice, once as themselves and once as their parent, if
// a job's bytes were the sum over its processes, ended ones included. So an ended member counts only until its parent,
// or the next living member above, has inherited from it. From then on its counters are part of that member, exactly,
// with what it did after its last reading. A member that no member waits for keeps its last reading: the first process,
// an orphan of init, a child of a parent that ignores SIGCHLD.
//
// An inheritance shows in cfaults and in the CPU time of children, which grow in no other way. The kernel adds them
// before it removes the child from /proc, and members are read in the order of their age, parents before children. So
// an inheritance shows in the reading that finds the child gone or in the next one, and never while the child is still
// counted.

// resolve handles the members that are gone: first those that were gone at the previous reading, because the gains of
// their heirs belong to them first, and parents before children.
func (j *job) resolve(s *Source) {
	for _, m := range j.members {
		m.expects = false
	}
	decided := 0
	for _, last := range [...]bool{true, false} { // whether this is the last reading that can show an inheritance
		for _, m := range j.members {
			if m.lost == 0 || m.resolved {
				continue
			}
			heir, lost := j.heir(m)
			if heir != nil && lost < j.readings != last {
				continue
			}
			switch {
			case heir != nil && heir.inherit(m, &j.left):
			case heir != nil && !last:
				heir.expects = true // it may have been read just before the inheritance
				continue
			default:
				j.leave(m)
			}
			m.resolved = true
			decided++
		}
	}
	if decided == 0 {
		return
	}
	kept := j.members[:0]
	for _, m := range j.members {
		if m.resolved {
			s.dismiss(m)
			delete(j.byPID, m.pid)
			continue
		}
		kept = append(kept, m)
	}
	clear(j.members[len(kept):])
	j.members = kept
}

// heir returns the nearest living member above m, or nil. lost is the reading that found the last member between them
// gone.
func (j *job) heir(m *member) (heir *member, lost uint64) {
	for range j.members { // bounded, because the files may describe a cycle
		lost = max(lost, m.lost)
		m = j.byPID[m.parent]
		if m == nil || m.lost == 0 {
			return m, lost
		}
	}
	return nil, lost
}

// inherit moves the counters of lost to h, if h has gained as much. Bytes that h cannot show are added to left.
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

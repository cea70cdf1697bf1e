package window

import "strings"

// lacking says in words what the finding's numbers miss; "" where that is nothing.
func (r *Report) lacking() string {
	text := ""
	if torn := r.tornDisks(); len(torn) > 0 {
		its := "its"
		if len(torn) > 1 {
			its = "their"
		}
		text = "; " + strings.Join(torn, ", ") + " came or left, or " + its + " counters began again, so " + its +
			" numbers are of what was seen"
	}
	if r.unpressed && r.Verdict != GPUBound {
		text += "; this kernel tells no I/O pressure, so waiting that shows in no disk's queue may be missing"
	}
	return text
}

// waited is how long storage was waited for, between two texts. Without I/O pressure that none was seen says nothing, and is
// left out.
func (r *Report) waited(before string, s shares, after string) string {
	share := percent(s.storage)
	if r.unpressed && share == percent(0) {
		return ""
	}
	return before + share + after
}

// tornDisks are those that the window works with and that were seen for a part of it alone.
func (r *Report) tornDisks() (names []string) {
	var all uint64
	for i := range r.Disks {
		all += r.Disks[i].ReadBytes + r.Disks[i].WriteBytes
	}
	for _, name := range r.torn {
		if r.worksWith(name, all) {
			names = append(names, name)
		}
	}
	return names
}

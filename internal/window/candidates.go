package window

import (
	"cmp"
	"slices"
)

// candidate is a device that a window may have waited for.
type candidate struct {
	device string   // "" for none
	took   float64  // seconds: of its operations, or what the limit makes them take at least
	home   bool     // the job's files are there; else some of them are
	limit  *Limited // of a cgroup, that the job's operations on the device reached; nil for the device itself
	slow   bool     // of a limit: the device itself, or one below it, explains the wait
	score  int
}

// features are what speaks for a candidate. One with enough points may be named.
var features = [...]struct {
	points int
	has    func(s *stack, c *candidate) bool
}{
	{8, (*stack).holdsBack},
	{2, (*stack).isHome},
	{2, (*stack).explainsPart},
	{1, (*stack).explainsHalf},
}

// enough points are those of a device that explains half of the wait, or of the files' own that explains a part.
const enough = 3

// isHome: the job's files lie there. Programs often read libraries from a fast disk, and less data from a slow one.
func (s *stack) isHome(c *candidate) bool { return c.limit == nil && c.home }

// explainsPart: its operations took a quarter of the wait. A hypervisor or the kernel's own work may hide the rest.
func (s *stack) explainsPart(c *candidate) bool {
	return c.limit == nil && c.took >= unexplained*s.wait
}

func (s *stack) explainsHalf(c *candidate) bool { return c.limit == nil && c.took >= explained*s.wait }

// holdsBack: a limit makes the job's operations take about the whole window or, where it does other things in between,
// about its wait for storage, while the device itself took much less. Such an operation is in no device's time.
func (s *stack) holdsBack(c *candidate) bool {
	whole := s.Duration().Seconds()
	return c.limit != nil && c.took <= overLimit*whole && c.took >= atLimit*s.wait && (c.took >= atLimit*whole || !c.slow)
}

// candidates lists what the wait may be explained by, the best first: the lowest device that explains it in the stack
// of the job's files, and in that of each other file system that it used, and the limits on these.
func (s *stack) candidates(top []string) []candidate {
	home := candidate{home: true}
	home.device, home.took = s.descend(top)
	all := s.rank(append(s.elsewhere(top), home))
	for _, limit := range s.machine.Limits {
		if reached := s.reached(top); len(reached) > 0 && !slices.Contains(reached, limit.Device) {
			continue
		}
		c := candidate{device: limit.Device, limit: &Limited{Limit: limit}}
		c.took, c.limit.Kind = s.least(&limit)
		c.slow = s.explainsHalf(&all[0]) && slices.Contains(s.below(limit.Device), all[0].device)
		all = append(all, c)
	}
	return s.rank(all)
}

// rank gives each candidate its points, and sorts by these and then by time.
func (s *stack) rank(all []candidate) []candidate {
	for i := range all {
		c := &all[i]
		c.score = 0
		for _, f := range features {
			if f.has(s, c) {
				c.score += f.points
			}
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.took, a.took))
	})
	return all
}

// reached lists the devices that the job can have used; empty if unknown.
func (s *stack) reached(top []string) (all []string) {
	for _, device := range top {
		all = append(all, s.below(device)...)
	}
	if len(s.Seen.Under) == 0 {
		all = append(all, s.open()...)
	}
	return all
}

// elsewhere lists the slowest device of each other file system of the job that moved at least half of what the devices
// of the first one did not.
func (s *stack) elsewhere(top []string) (all []candidate) {
	if len(s.Seen.Under) > 0 || !s.read.known {
		return nil
	}
	first := s.level(top)
	for _, devices := range s.machine.Devices {
		if slices.ContainsFunc(devices, func(d string) bool { return slices.Contains(top, d) }) {
			continue
		}
		here := s.level(devices)
		// What reaches a device of the first through this one is counted in both.
		through := slices.ContainsFunc(devices, func(d string) bool {
			return slices.ContainsFunc(s.below(d), func(x string) bool { return slices.Contains(top, x) })
		})
		read, written := s.read.bytes-first.read, s.write.bytes-first.written
		if through {
			read, written = read+here.read, written+here.written
		}
		reads := read > same*s.read.bytes && here.read >= halfBytes*read
		writes := written > same*s.write.bytes && here.written >= halfBytes*written
		if reads || writes {
			device, took := s.descend(devices)
			all = append(all, candidate{device: device, took: took})
		}
	}
	return all
}

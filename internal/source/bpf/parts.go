package bpf

import (
	"cmp"
	"slices"
	"strings"
)

// The parts that others ask for.
const (
	Threads         = "following the scheduler"
	Disks           = "counting how long disks take"
	DiskJobs        = "how long disks take for each job"
	OpenConnections = "what open connections of other network namespaces move"

	connections = "connections that begin and end between two readings"
)

// part is programs that others do without, and what the kernel may refuse of it.
type part struct {
	what     string   // what is not known without them
	needs    []string // other parts
	programs []string
	maps     []string // that other parts do without
}

// parts are attached in this order: an operation of a disk that is seen to start is then seen to end.
var parts = []part{
	{Threads, nil, []string{"adopt", "on_switch", "on_waking", "on_fork"},
		[]string{"threads", "joining", "events", "counters", "jobs"}},
	{OpenConnections, []string{Threads, connections}, []string{"report_open"}, nil},
	{connections, []string{Threads}, []string{"on_state"}, []string{"connections"}},
	{"new names of threads", []string{Threads}, []string{"on_rename"}, nil},
	{"page faults for which a disk has to work", []string{Threads}, []string{"on_fault", "on_mapped"}, nil},
	{"the kernel's own work to fetch data", []string{Threads}, []string{"on_page", "on_bio"}, nil},
	{"pauses of the busiest threads while they last", []string{Threads}, []string{"flush"}, nil},
	{Disks, nil, []string{"on_complete"}, []string{"cells", "directory", "places", "started", "jobs"}},
	{DiskJobs, []string{Threads, Disks}, []string{"on_start", "on_insert", "on_issue"}, []string{"started"}},
}

// left are the parts that are left out, by what is not known without them. An error says why; nil for one that is not
// wanted.
type left map[string]error

// out reports whether a part is left out, or one that it needs.
func (l left) out(p *part) bool {
	_, is := l[p.what]
	return is || slices.ContainsFunc(p.needs, func(need string) bool { _, is := l[need]; return is })
}

// about returns the part that an error of the kernel is about, which names a program or a map; nil for none that is
// there.
func (l left) about(err error) *part {
	text := err.Error()
	named := func(kind string) func(string) bool {
		return func(name string) bool { return strings.Contains(text, kind+" "+name+":") }
	}
	for i := range slices.Backward(parts) { // disks for each job before disks: the map started is of both
		p := &parts[i]
		if !l.out(p) && (slices.ContainsFunc(p.programs, named("program")) || slices.ContainsFunc(p.maps, named("map"))) {
			return p
		}
	}
	return nil
}

// refusals lists the parts that are wanted and left out. Without the threads that others need, it has these alone.
func (l left) refusals() (all Refusals) {
	_, none := l[Threads]
	for i := range parts {
		p := &parts[i]
		if none && slices.Contains(p.needs, Threads) {
			continue
		}
		why := l[p.what]
		for _, need := range p.needs {
			why = cmp.Or(why, l[need])
		}
		if why != nil {
			all = append(all, Refusal{p.what, why})
		}
	}
	return all
}

// Refusal is a part that the kernel refuses, and why: "needs root, or CAP_BPF and CAP_PERFMON".
type Refusal struct {
	What string
	Why  error
}

// Refusals are all of a Tracing.
type Refusals []Refusal

// Of returns why there is no such part, in a sentence; nil if there is one.
func (r Refusals) Of(what string) error {
	for _, one := range r {
		if one.What == what {
			return &refusal{what + " " + one.Why.Error(), one.Why}
		}
	}
	return nil
}

// Only returns those of some parts.
func (r Refusals) Only(what ...string) Refusals {
	return slices.DeleteFunc(slices.Clone(r), func(one Refusal) bool { return !slices.Contains(what, one.What) })
}

// Without returns the others.
func (r Refusals) Without(what ...string) Refusals {
	return slices.DeleteFunc(slices.Clone(r), func(one Refusal) bool { return slices.Contains(what, one.What) })
}

// Causes has a text for each cause, with all parts that are refused for it: "this and that (needs root)".
func (r Refusals) Causes() (all []string) {
	var causes []string
	whats := map[string][]string{}
	for _, one := range r {
		why := one.Why.Error()
		if whats[why] == nil {
			causes = append(causes, why)
		}
		whats[why] = append(whats[why], one.What)
	}
	for _, why := range causes {
		list := whats[why]
		last := len(list) - 1
		text := list[last]
		if last > 0 {
			text = strings.Join(list[:last], ", ") + " and " + text
		}
		all = append(all, text+" ("+why+")")
	}
	return all
}

// size is how much is lacking. Without threads, nothing of them is known.
func (r Refusals) size() int {
	if r.Of(Threads) != nil {
		return len(r) + len(parts)
	}
	return len(r)
}

// everything lists all that is wanted, which is refused for one cause.
func everything(want Wanted, why error) Refusals {
	l := unwanted(want)
	for _, what := range []string{Threads, Disks} {
		if _, out := l[what]; !out {
			l[what] = why
		}
	}
	return l.refusals()
}

// unwanted are the parts that are not wanted.
func unwanted(want Wanted) left {
	l := left{}
	if !want.Threads {
		l[Threads] = nil
	}
	if !want.Disks {
		l[Disks] = nil
	}
	return l
}

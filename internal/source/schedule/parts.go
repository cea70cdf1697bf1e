//go:build linux && (amd64 || arm64)

package schedule

import (
	"slices"
	"strings"

	"github.com/cilium/ebpf"
)

// part is programs that others do without, with the map that they alone use.
type part struct {
	programs []string
	mapped   string
	lacks    string // what is not known without them
}

// LacksOpenConnections is what is not known without the program that reports them: see Supported.
const LacksOpenConnections = "what open connections of other network namespaces move"

// parts are tried in this order.
var parts = []part{
	{[]string{"report_open"}, "", LacksOpenConnections},
	{[]string{"on_state", "report_open"}, "connections", "connections that begin and end between two readings"},
	{[]string{"on_rename"}, "", "new names of threads"},
	{[]string{"on_fault", "on_mapped"}, "", "page faults for which a disk has to work"},
	{[]string{"on_page", "on_bio"}, "", "the kernel's own work to fetch data"},
	{[]string{"flush"}, "", "pauses of the busiest threads while they last"},
}

// refusedPart returns the part that an error of the kernel is about, which names a program or a map; nil for none, or
// one that was left out already.
func refusedPart(err error, spec *ebpf.CollectionSpec) *part {
	text := err.Error()
	for i := range parts {
		p := &parts[i]
		left := func(name string) bool { return spec.Programs[name] == nil }
		about := func(name string) bool { return strings.Contains(text, "program "+name+":") && !left(name) }
		if slices.ContainsFunc(p.programs, about) || p.mapped != "" && strings.Contains(text, "map "+p.mapped+":") {
			if !slices.ContainsFunc(p.programs, func(name string) bool { return !left(name) }) {
				return nil
			}
			return p
		}
	}
	return nil
}

// leaveOut removes the programs and the map of a part.
func (p *part) leaveOut(spec *ebpf.CollectionSpec) {
	for _, name := range p.programs {
		delete(spec.Programs, name)
	}
	if p.mapped != "" {
		delete(spec.Maps, p.mapped)
	}
}

// lacking lists what is not known without some parts, in their order: also what others give whose programs are all
// among theirs.
func lacking(refused []*part) (all []string) {
	var gone []string
	for _, p := range refused {
		gone = append(gone, p.programs...)
	}
	for i := range parts {
		if !slices.ContainsFunc(parts[i].programs, func(name string) bool { return !slices.Contains(gone, name) }) {
			all = append(all, parts[i].lacks)
		}
	}
	return all
}

package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"sync"

	"github.com/stallspan/stallspan/internal/source/bpf"
)

// always is the ability that no machine has. It explains tests that run on demand only.
const always = "always"

// abilities are what tests need of a machine, and the skips that the lack of each explains.
type abilities struct {
	names []string
	has   map[string]func() bool
	kinds []kind
}

// kind is a kind of skip: what it lacks, and what it says.
type kind struct {
	ability string
	pattern *regexp.Regexp
}

var row = regexp.MustCompile(`^(\S+) ([=~]) (.+)$`)

// parse reads the list. The abilities of BPF are those of the product.
func parse(text string) (*abilities, error) {
	a := &abilities{has: map[string]func() bool{always: func() bool { return false }}}
	refusals := sync.OnceValue(func() bpf.Refusals { return bpf.Supported("") })
	bpfHas := func(parts ...string) func() bool {
		return func() bool { return len(refusals().Only(parts...)) == 0 }
	}
	a.add("bpf", bpfHas(bpf.Threads))
	a.add("bpf-connections", bpfHas(bpf.Threads, bpf.OpenConnections))
	a.add("bpf-latency", bpfHas(bpf.Disks))
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		m := row.FindStringSubmatch(line)
		switch {
		case m == nil:
			return nil, fmt.Errorf("got %q, want ABILITY = COMMAND or ABILITY ~ PATTERN", line)
		case m[1] == "programs":
			for _, name := range strings.Fields(m[3]) {
				a.add(name, shell("command -v "+name))
				a.kinds = append(a.kinds, kind{name, regexp.MustCompile(`needs (root and )?` + regexp.QuoteMeta(name) + `\b`)})
			}
		case m[2] == "=":
			a.add(m[1], shell(m[3]))
		default:
			pattern, err := regexp.Compile(m[3])
			if err != nil || a.has[m[1]] == nil {
				return nil, fmt.Errorf("got %q, want an ability of a line above, and a pattern: %w", line, err)
			}
			a.kinds = append(a.kinds, kind{m[1], pattern})
		}
	}
	return a, nil
}

func (a *abilities) add(name string, probe func() bool) {
	a.names = append(a.names, name)
	a.has[name] = sync.OnceValue(probe)
}

func shell(command string) func() bool {
	return func() bool { return exec.Command("sh", "-c", command).Run() == nil }
}

// String lists what this machine has, and what it lacks.
func (a *abilities) String() string {
	lists := map[bool]string{}
	for _, name := range a.names {
		lists[a.has[name]()] += " " + name
	}
	return "this machine has:" + lists[true] + "\nit lacks:" + lists[false]
}

// explain returns the ability whose lack explains a skip. Without one, it says why the skip is not explained.
func (a *abilities) explain(skip string) (lacks, unexplained string) {
	unexplained = "no line of .ci/expected-skips is for it"
	for _, k := range a.kinds {
		if k.pattern.MatchString(skip) {
			if !a.has[k.ability]() {
				return k.ability, ""
			}
			unexplained = "this machine has " + k.ability
		}
	}
	return "", unexplained
}

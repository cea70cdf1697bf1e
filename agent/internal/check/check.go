// Package check looks at what can be measured on this machine, what cannot, and what would change that. It tries the
// real thing: each source is read once, a cgroup is made and removed, a connection is opened and closed. Nothing that
// it does stays, and nothing is sent.
package check

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/source/smart"
)

// State says how much of something there is.
type State string

const (
	Seen    State = "seen"    // all that is asked for
	Limited State = "limited" // less than there could be
	Missing State = "missing" // nothing, and something is lacking without it
	Off     State = "off"     // nobody has asked for it
)

// Area is what a finding is about.
type Area string

const (
	GPU       Area = "GPU"
	Disks     Area = "disks"
	Drives    Area = "health"
	Pressure  Area = "pressure"
	Cgroup    Area = "cgroup"
	Processes Area = "processes"
	CPU       Area = "CPU"
	Clock     Area = "clock"
	Container Area = "container"
	API       Area = "API"
	Export    Area = "export"
)

// Finding is one thing that was looked at.
type Finding struct {
	Area    Area           `json:"area"`
	What    string         `json:"what"` // which part of the area
	State   State          `json:"state"`
	Says    string         `json:"says"`              // one sentence on what was found and what follows
	Fix     string         `json:"fix,omitempty"`     // the one line that would change it; "" where nothing needs to or can
	Details map[string]any `json:"details,omitempty"` // the same as numbers and names
}

// Options say what is looked at.
type Options struct {
	Root    string         // the folder that stands for "/": "/hostfs" in a container, "" otherwise
	NVML    string         // the path of libnvidia-ml.so.1, where the loader does not find it by itself
	Drives  *smart.Options // how drives are asked for their health; nil leaves them alone. Root and Timeout are set here
	Socket  string         // where an agent would answer
	Program string         // the path of this program, for the lines that name it; "" for the name alone
	Export  []Target       // where telemetry goes; empty for nowhere
	// ExportError says why the environment's wish for telemetry cannot be followed.
	ExportError error
}

// The bounds that keep Machine under three seconds. They run side by side.
const (
	mostGPU  = 2500 * time.Millisecond // a driver that nobody keeps loaded takes a second and more a GPU to begin
	mostCall = time.Second             // a connection, and an answer over it
)

// Machine looks at everything, in less than three seconds. It gives the findings in a fixed order. A driver that hangs
// keeps a thread, and a disk that hangs a smartctl; whatever else was begun has ended when it returns.
func Machine(ctx context.Context, o Options) []Finding {
	m := &machine{Options: o, root: filepath.Join("/", o.Root)}
	looks := []func(context.Context) []Finding{
		m.gpus, m.disks, m.health, m.pressure, m.cgroup, m.processes, m.cores, m.clock, m.container, m.agent, m.export,
	}
	found := make([][]Finding, len(looks))
	var all sync.WaitGroup
	for i, look := range looks {
		all.Go(func() { found[i] = look(ctx) })
	}
	all.Wait()
	return slices.Concat(found...)
}

// machine is what is looked at. It is not changed after it was made, so that the looks may run side by side.
type machine struct {
	Options
	root string // absolute
}

func (m *machine) path(name string) string { return filepath.Join(m.root, name) }

// isHost says that the machine is not looked at through a folder.
func (m *machine) isHost() bool { return m.root == "/" }

// procFix is what brings /proc back; "" where it is there.
func (m *machine) procFix() string {
	switch {
	case exists(m.path("proc/self")):
		return ""
	case m.isHost():
		return "mount -t proc proc /proc"
	}
	return "mount the machine's /proc at " + m.path("proc")
}

// list names the first few of many.
func list(names []string) string {
	const most = 6
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and " + number(len(names)-most, "other", "others")
	}
	if len(names) > 1 {
		return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
	}
	return strings.Join(names, "")
}

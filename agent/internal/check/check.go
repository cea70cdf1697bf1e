// Package check finds out what can be measured on this machine, and how to fix the rest. It tries the real thing: it
// reads each source once, makes and removes a cgroup, opens and closes a connection. It leaves nothing behind and sends
// nothing.
package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/agent/internal/export"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/source/bpf"
	"github.com/stallspan/stallspan/internal/source/smart"
)

// State is how much of something can be read.
type State string

const (
	Seen    State = "ok"      // everything
	Limited State = "partial" // a part
	Missing State = "missing" // nothing, and the results lack it
	Off     State = "off"     // not configured
)

// Area is the subject of a finding.
type Area string

const (
	GPU       Area = "GPU"
	Disks     Area = "disks"
	Drives    Area = "health"
	Pressure  Area = "pressure"
	Cgroup    Area = "cgroup"
	Processes Area = "processes"
	Scheduler Area = "scheduler"
	CPU       Area = "CPU"
	Container Area = "container"
	API       Area = "API"
	Export    Area = "export"
)

// Finding is the result of one check.
type Finding struct {
	Area    Area           `json:"area"`
	What    string         `json:"what"` // which part of the area
	State   State          `json:"state"`
	Message string         `json:"says"`              // one sentence: the result and its consequence
	Fix     string         `json:"fix,omitempty"`     // one line that would change it; "" if it is not needed or not possible
	Details map[string]any `json:"details,omitempty"` // the same in numbers and names
}

// as returns the finding with its result, alone.
func (f Finding) as(state State, fix, message string, args ...any) []Finding {
	f.State, f.Fix, f.Message = state, fix, fmt.Sprintf(message, args...)
	return []Finding{f}
}

// Options select what is checked.
type Options struct {
	Root   string         // the folder that stands for "/": "/hostfs" in a container, "" otherwise
	NVML   string         // the path of libnvidia-ml.so.1, if the loader does not find it
	Drives *smart.Options // how to read the drives' health; nil to skip it. Root and Timeout are set here
	Socket string         // of the agent

	// Refusals lists what of BPF the kernel refuses on the machine whose files are below root. A nil function skips these
	// checks.
	Refusals func(root string) bpf.Refusals

	Export []export.Target // where telemetry goes; empty for nowhere
	// ExportError is why the OTEL_* variables cannot be used.
	ExportError error
}

// The bounds that keep Machine under three seconds. They run in parallel.
const (
	maxGPU  = 2500 * time.Millisecond // a driver that is not kept loaded takes a second or more to initialize each GPU
	maxCall = time.Second             // a connection, and an answer over it
)

// Machine checks everything in less than three seconds. It returns the findings in a fixed order. A driver that hangs
// keeps a thread, and a disk that hangs keeps a smartctl. Everything else has ended when it returns.
func Machine(ctx context.Context, o Options) []Finding {
	m := &machine{Options: o, root: filepath.Join("/", o.Root)}
	if o.Refusals != nil { // two checks ask
		refusals := sync.OnceValue(func() bpf.Refusals { return o.Refusals(o.Root) })
		m.Refusals = func(string) bpf.Refusals { return refusals() }
	}
	checks := []func(context.Context) []Finding{
		m.gpus, m.disks, m.latency, m.health, m.pressure, m.cgroup, m.processes, m.scheduler,
		m.cores, m.container, m.agent, m.export,
	}
	found := make([][]Finding, len(checks))
	var all sync.WaitGroup
	for i, check := range checks {
		all.Go(func() { found[i] = check(ctx) })
	}
	all.Wait()
	list := slices.Concat(found...)
	if slices.ContainsFunc(list, func(f Finding) bool { return f.What == agentExport }) {
		// Without a backend of its own, this shell has nothing to add.
		list = slices.DeleteFunc(list, func(f Finding) bool { return f.Area == Export && f.What == otlp && f.State == Off })
	}
	return list
}

// machine is what is checked. It does not change, so that the checks may run in parallel.
type machine struct {
	Options
	root string // absolute
}

func (m *machine) path(name string) string { return filepath.Join(m.root, name) }

// isHost reports whether Root is the machine's own "/".
func (m *machine) isHost() bool { return m.root == "/" }

// procFix mounts /proc; "" if it is mounted.
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
	const limit = 6
	if len(names) > limit {
		return strings.Join(names[:limit], ", ") + " and " + output.Count(len(names)-limit, "other")
	}
	if len(names) > 1 {
		return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
	}
	return strings.Join(names, "")
}

// reason is an error without the path and the operation, which the sentence names.
func reason(err error) string {
	var no syscall.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	case errors.As(err, &no):
		return no.Error()
	default:
		return err.Error()
	}
}

// plain are texts that a shell takes as they are.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoted is a path as a shell takes it.
func quoted(path string) string {
	if plain.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

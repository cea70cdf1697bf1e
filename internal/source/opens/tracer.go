//go:build linux && (amd64 || arm64)

package opens

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/modelfile"
	"github.com/stallspan/stallspan/internal/source/schedule"
)

// Tracer holds programs at the kernel's functions that open and close files. It is all that needs CAP_BPF and
// CAP_PERFMON: a Source only reads the memory of two of its maps. It implements Tracing.
type Tracer struct {
	mu       sync.Mutex
	programs *ebpf.Collection
	links    []io.Closer
}

// Local returns an Opener of Tracers of this process. root is where the host's files are, "" for "/".
func Local(root string) Opener {
	return func(with schedule.Tracing, o Options) (Tracing, error) {
		t, err := newTracer(root, with, values(o))
		if err != nil {
			return nil, err // not a nil *Tracer
		}
		return t, nil
	}
}

// Supported returns why opens cannot be reported here, or nil. root is where the host's files are, "" for "/".
func Supported(root string) error {
	with, err := schedule.Local(root)()
	if err != nil {
		return err
	}
	defer func() { _ = with.Close() }()
	t, err := Local(root)(with, Options{})
	if err != nil {
		return err
	}
	return t.Close()
}

func newTracer(root string, with schedule.Tracing, values map[string]any) (*Tracer, error) {
	if err := schedule.Traceable(root, "reporting opens"); err != nil {
		return nil, err
	}
	t := &Tracer{}
	if err := t.attach(with, values); err != nil {
		_ = t.Close()
		return nil, err
	}
	return t, nil
}

// The programs, by name.
const (
	onOpen  = "on_open"
	onClose = "on_close"
)

func (t *Tracer) attach(with schedule.Tracing, values map[string]any) error {
	types := btf.NewCache() // read once, for us and for the loader
	kernel, err := types.Kernel()
	if err != nil {
		return fmt.Errorf("read the kernel's types: %w", err)
	}
	spec, err := loadBpf()
	if err != nil {
		return fmt.Errorf("read the programs that report opens: %w", err)
	}
	for _, p := range spec.Programs {
		var function *btf.Func
		if err := kernel.TypeByName(p.AttachTo, &function); err != nil {
			return fmt.Errorf("reporting opens needs the kernel's function %s: %w", p.AttachTo, err)
		}
	}
	for name, value := range values {
		if err := spec.Variables[name].Set(value); err != nil {
			return fmt.Errorf("set %s of the programs that report opens: %w", name, err)
		}
	}
	shared, ok := schedule.Share(spec, with)
	if !ok {
		return errors.New("reporting opens needs the scheduler to be followed by the same process")
	}
	t.programs, err = ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: types, MapReplacements: shared})
	switch {
	case errors.Is(err, unix.EPERM):
		return errors.New("this kernel or its rules allow no BPF programs at its functions " +
			"(nothing to do unless you can change these)")
	case err != nil:
		return fmt.Errorf("the kernel refuses the programs that report opens: %w", err)
	}
	for _, ending := range modelfile.Endings() {
		var key [endingBytes]byte
		copy(key[:], ending)
		if err := t.programs.Maps["endings"].Put(key, uint8(1)); err != nil {
			return fmt.Errorf("set the endings of names of models: %w", err)
		}
	}
	// The end first: what is seen to be opened is seen to be closed.
	for _, name := range []string{onClose, onOpen} {
		l, err := link.AttachTracing(link.TracingOptions{Program: t.programs.Programs[name]})
		if err != nil {
			return fmt.Errorf("attach to the kernel's functions, which needs CONFIG_FUNCTION_TRACER and, on arm64, "+
				"Linux 6.4 or later: %w", err)
		}
		t.links = append(t.links, l)
	}
	return nil
}

// Values of others_of in bpf/opens.bpf.c.
const (
	ofNone uint32 = iota
	ofOwner
	ofAll
)

// The ids of this process. They are asked for at its start, because the filter of a helper forbids that later.
var ownUID, ownGID = uint32(os.Getuid()), uint32(os.Getgid())

// values are the constants of the programs. A user sees open files of its own processes, and root those of all.
func values(o Options) map[string]any {
	if !o.Others {
		return map[string]any{"min_size": uint64(minModel), "others_of": ofNone}
	}
	all := map[string]any{
		"min_size": uint64(MinSize), "others_of": ofOwner,
		"owner_uid": ownUID, "owner_gid": ownGID,
	}
	if listsAll() {
		all["others_of"] = ofAll
	}
	return all
}

// listsAll reports whether this process may list the open files of any process.
func listsAll() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if unix.Capget(&header, &sets[0]) != nil {
		return false
	}
	return sets[0].Effective&(1<<unix.CAP_SYS_PTRACE) != 0
}

// Memory implements Tracing.
func (t *Tracer) Memory() Memory {
	events := t.programs.Maps["events"]
	return Memory{events.FD(), t.programs.Maps["counters"].FD(), int(events.MaxEntries())}
}

// Ended returns nil: a Tracer ends with the process.
func (*Tracer) Ended() error { return nil }

// Close detaches everything.
func (t *Tracer) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.links {
		_ = l.Close() // closing a descriptor detaches
	}
	t.links = nil
	if t.programs != nil {
		t.programs.Close()
	}
	return nil
}

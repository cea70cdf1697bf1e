//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Tracer holds programs at the kernel's tracepoints. It is all that needs CAP_BPF and CAP_PERFMON: a Source only reads
// the memory of some of its maps. Its methods may be called at the same time. It implements Tracing.
type Tracer struct {
	mu        sync.Mutex
	programs  *ebpf.Collection
	links     []io.Closer
	iterators map[string]*link.Iter // by program; they are among links, too
	lacks     Refusals
	closed    bool
}

// member is the value of the map joining.
type member struct{ Slot, Generation uint32 }

// kernelJob is the value of the map jobs.
type kernelJob struct {
	Generation, _ uint32
	Loads         [2]struct{ Window, Count, Over uint64 }
}

// newTracer loads the programs of what is wanted, attaches them, and tries what following a job takes. A part that the
// kernel refuses at any of these is left out whole, and the others are loaded again without it. root is where the
// host's files are, "" for "/".
func newTracer(root string, want Wanted, o options) *Tracer {
	t := &Tracer{programs: &ebpf.Collection{}}
	if why := missing(root); why != nil {
		t.lacks = everything(want, why)
		return t
	}
	out := unwanted(want)
	if why := otherPIDs(); want.Threads && why != nil {
		out[Threads] = why
	}
	l, err := newLoader(out, o)
	if err != nil {
		t.lacks = everything(want, inWords(root, err))
		return t
	}
	for exchanges := true; ; {
		err := t.begin(l, exchanges)
		if err == nil {
			t.lacks = out.refusals()
			return t
		}
		t.release()
		p := out.about(err)
		switch {
		case exchanges && runtime.GOARCH == "arm64" && (p == nil || p.what == Threads):
			exchanges = false // before Linux 5.18 it has no such operations
		case p != nil:
			out[p.what] = inWords(root, err)
		default:
			t.lacks = everything(want, inWords(root, err))
			return t
		}
	}
}

// begin loads and attaches programs. An error names a program or a map.
func (t *Tracer) begin(l *loader, exchanges bool) error {
	programs, err := l.load(exchanges)
	if err != nil {
		return err
	}
	t.programs, t.iterators = programs, map[string]*link.Iter{}
	for i := range parts {
		for _, name := range parts[i].programs {
			if err := t.attach(name, l.spec.Programs[name]); err != nil {
				return fmt.Errorf("program %s: attach it: %w", name, err)
			}
		}
	}
	if t.iterators["adopt"] == nil {
		return nil
	}
	// A job without processes, to know now what the kernel refuses then.
	if err := t.programs.Maps["jobs"].Put(uint32(MaxJobs), kernelJob{}); err != nil {
		return fmt.Errorf("map jobs: change it: %w", err)
	}
	if err := t.join(member{}, []int{-1}); err != nil {
		return fmt.Errorf("map joining: change it: %w", err)
	}
	return nil
}

// attach attaches a program; spec is nil for one that is left out.
func (t *Tracer) attach(name string, spec *ebpf.ProgramSpec) error {
	program := t.programs.Programs[name]
	switch {
	case spec == nil:
		return nil
	case spec.AttachType != ebpf.AttachTraceIter:
		l, err := link.AttachTracing(link.TracingOptions{Program: program, AttachType: ebpf.AttachTraceRawTp})
		if err == nil {
			t.links = append(t.links, l)
		}
		return err
	}
	over := link.IterOptions{Program: program}
	if name == "report_open" {
		over.Map = t.programs.Maps["connections"]
	}
	iterator, err := link.AttachIter(over)
	if err != nil {
		return err
	}
	t.links, t.iterators[name] = append(t.links, iterator), iterator
	return iterate(iterator) // some kernels refuse no sooner
}

// Lacks implements Tracing.
func (t *Tracer) Lacks() Refusals { return t.lacks }

// Memory implements Tracing.
func (t *Tracer) Memory() (m Memory) {
	if events := t.programs.Maps["events"]; events != nil {
		m.Events, m.Counters = events.FD(), t.programs.Maps["counters"].FD()
		m.EventBytes = int(events.MaxEntries())
	}
	if cells := t.programs.Maps["cells"]; cells != nil {
		m.Cells, m.Directory, m.Disks = cells.FD(), t.programs.Maps["directory"].FD(), true
	}
	return m
}

// SetJob gives a slot a generation, which begins a job. Generation 0 ends it.
func (t *Tracer) SetJob(slot, generation uint32) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.iterators["adopt"] == nil {
		return errClosed
	}
	return t.programs.Maps["jobs"].Put(slot, kernelJob{Generation: generation})
}

// Adopt follows all threads of processes, for a job. A thread that is created meanwhile may be passed over in the first
// round, if its creator is not followed yet.
func (t *Tracer) Adopt(slot, generation uint32, pids []int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.iterators["adopt"] == nil {
		return errClosed
	}
	for some := range slices.Chunk(pids, adoptAtOnce) {
		if err := t.join(member{slot, generation}, some); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tracer) join(m member, pids []int) error {
	for _, pid := range pids {
		if err := t.programs.Maps["joining"].Put(uint32(pid), m); err != nil {
			return err
		}
	}
	defer func() {
		for _, pid := range pids {
			_ = t.programs.Maps["joining"].Delete(uint32(pid)) // it is there
		}
	}()
	for range 2 {
		if err := iterate(t.iterators["adopt"]); err != nil {
			return err
		}
	}
	return nil
}

// iterate runs a program for each thread of the machine, or each open connection.
func iterate(over *link.Iter) error {
	all, err := over.Open()
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, all)
	_ = all.Close()
	return err
}

// Report has the kernel report the open connections of other network namespaces.
func (t *Tracer) Report() error { return t.iterate("report_open") }

// Flush has the kernel report the sums of threads that pause.
func (t *Tracer) Flush() error { return t.iterate("flush") }

// iterate runs the program of an iterator, unless the Tracer is closed.
func (t *Tracer) iterate(program string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	over := t.iterators[program]
	switch {
	case t.closed:
		return errClosed
	case over == nil: // a part that the kernel refused
		return nil
	}
	return iterate(over)
}

// Ended returns nil: a Tracer ends with the process.
func (*Tracer) Ended() error { return nil }

// Close detaches everything.
func (t *Tracer) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	t.release()
	return nil
}

// release frees what begin has made.
func (t *Tracer) release() {
	for _, l := range t.links {
		_ = l.Close() // closing a descriptor detaches
	}
	t.programs.Close()
	t.programs, t.links, t.iterators = &ebpf.Collection{}, nil, nil
}

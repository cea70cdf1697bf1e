//go:build linux && (amd64 || arm64)

package schedule

import (
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
)

// Tracer holds programs at the kernel's tracepoints. It is all that needs CAP_BPF and CAP_PERFMON: a Source only reads
// the memory of two of its maps. Its methods may be called at the same time. It implements Tracing.
type Tracer struct {
	mu       sync.Mutex
	programs loaded
	lacks    []string // what is not known, as the kernel refused a part
	links    []io.Closer
	adopt    *link.Iter
	flush    *link.Iter
	report   *link.Iter
	closed   bool
}

// member is the value of the map joining.
type member struct{ Slot, Generation uint32 }

// kernelJob is the value of the map jobs.
type kernelJob struct {
	Generation, _ uint32
	Loads         [2]struct{ Window, Count, Over uint64 }
}

// newTracer loads the programs and attaches them. An error says what is missing. root is where the host's files are, ""
// for "/".
func newTracer(root string, o options) (*Tracer, error) {
	if err := missing(root); err != nil {
		return nil, err
	}
	t := &Tracer{}
	if err := t.attach(o); err != nil {
		_ = t.Close()
		return nil, InWords(root, "following the scheduler", err)
	}
	return t, nil
}

// begin loads and attaches the programs of spec. An error names a program or a map.
func (t *Tracer) begin(spec *ebpf.CollectionSpec, types *btf.Cache, faults bool) error {
	if err := t.programs.take(spec, &ebpf.CollectionOptions{Cache: types}); err != nil {
		return err
	}
	iterators := []struct {
		over *ebpf.Program
		of   *ebpf.Map
		into **link.Iter
		name string
	}{
		{t.programs.Adopt, nil, &t.adopt, "adopt"}, {t.programs.Flush, nil, &t.flush, "flush"},
		{t.programs.ReportOpen, t.programs.Connections, &t.report, "report_open"},
	}
	for _, i := range iterators {
		if i.over == nil {
			continue
		}
		iterator, err := link.AttachIter(link.IterOptions{Program: i.over, Map: i.of})
		if err == nil {
			*i.into = iterator
			err = iterate(iterator) // some kernels refuse no sooner
		}
		if err != nil {
			return fmt.Errorf("program %s: attach the iterator: %w", i.name, err)
		}
	}
	for _, p := range t.programs.traced(faults) {
		if p.Program == nil {
			continue
		}
		l, err := link.AttachTracing(link.TracingOptions{Program: p.Program, AttachType: ebpf.AttachTraceRawTp})
		if err != nil {
			return fmt.Errorf("program %s: attach to the kernel's tracepoint: %w", p.name, err)
		}
		t.links = append(t.links, l)
	}
	// A job without processes, to know now what the kernel refuses then.
	if err := t.programs.Jobs.Put(uint32(MaxJobs), kernelJob{}); err != nil {
		return fmt.Errorf("map jobs: change it: %w", err)
	}
	if err := t.join(member{}, []int{-1}); err != nil {
		return fmt.Errorf("map joining: change it: %w", err)
	}
	return nil
}

// Lacks implements Tracing.
func (t *Tracer) Lacks() []string { return t.lacks }

// Memory implements Tracing.
func (t *Tracer) Memory() Memory {
	return Memory{t.programs.Events.FD(), t.programs.Counters.FD(), int(t.programs.Events.MaxEntries())}
}

// SetJob gives a slot a generation, which begins a job. Generation 0 ends it.
func (t *Tracer) SetJob(slot, generation uint32) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errClosed
	}
	return t.programs.Jobs.Put(slot, kernelJob{Generation: generation})
}

// Adopt follows all threads of processes, for a job. A thread that is created meanwhile may be passed over in the first
// round, if its creator is not followed yet.
func (t *Tracer) Adopt(slot, generation uint32, pids []int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
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
		if err := t.programs.Joining.Put(uint32(pid), m); err != nil {
			return err
		}
	}
	defer func() {
		for _, pid := range pids {
			_ = t.programs.Joining.Delete(uint32(pid)) // it is there
		}
	}()
	for range 2 {
		if err := iterate(t.adopt); err != nil {
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
func (t *Tracer) Report() error { return t.iterate(t.report) }

// Flush has the kernel report the sums of threads that pause.
func (t *Tracer) Flush() error { return t.iterate(t.flush) }

// iterate runs the program of an iterator, unless the Tracer is closed.
func (t *Tracer) iterate(over *link.Iter) error {
	t.mu.Lock()
	defer t.mu.Unlock()
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
	for _, iterator := range []*link.Iter{t.adopt, t.flush, t.report} {
		if iterator != nil {
			_ = iterator.Close()
		}
	}
	t.programs.close()
	t.links, t.adopt, t.flush, t.report = nil, nil, nil, nil
}

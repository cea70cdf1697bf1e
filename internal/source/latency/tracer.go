//go:build linux && (amd64 || arm64)

package latency

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/schedule"
)

// Tracer holds programs at the tracepoints of the block layer. It is all that needs CAP_BPF and CAP_PERFMON: a Source
// only reads the memory of two of its maps. It implements Tracing.
type Tracer struct {
	mu       sync.Mutex
	programs *ebpf.Collection
	links    []io.Closer
	lacks    []string // what is not known, as the kernel refused a part
}

// lacksJobs is what is not known without the programs that note for which job an operation is.
const lacksJobs = "how long disks take for each job"

// Local returns an Opener of Tracers of this process. root is where the host's files are, "" for "/".
func Local(root string) Opener {
	return func(with schedule.Tracing) (Tracing, error) {
		t, err := newTracer(root, with)
		if err != nil {
			return nil, err // not a nil *Tracer
		}
		return t, nil
	}
}

func newTracer(root string, with schedule.Tracing) (*Tracer, error) {
	if err := schedule.Traceable(root, "counting how long disks take"); err != nil {
		return nil, err
	}
	t := &Tracer{}
	err := t.attach(with)
	if _, both := with.(*schedule.Tracer); err != nil && both { // jobs are a part that the others do without
		_ = t.Close()
		if t.programs = nil; t.attach(nil) == nil {
			t.lacks = []string{lacksJobs}
			return t, nil
		}
	}
	if err != nil {
		_ = t.Close()
		return nil, schedule.InWords(root, "counting how long disks take", err)
	}
	return t, nil
}

// The programs, by name, and the tracepoints' types.
const (
	onComplete = "on_complete"
	onStart    = "on_start"
	onInsert   = "on_insert"
	onIssue    = "on_issue"

	startType = "btf_trace_block_io_start" // Linux 6.5
)

func (t *Tracer) attach(with schedule.Tracing) error {
	types := btf.NewCache() // read once, for us and for the loader
	kernel, err := types.Kernel()
	if err != nil {
		return fmt.Errorf("read the kernel's types: %w", err)
	}
	if err := schedule.Fits(kernel); err != nil {
		return err
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return fmt.Errorf("read the programs that count how long disks take: %w", err)
	}
	if err := spec.Variables["bounds"].Set(kernelBounds()); err != nil {
		return fmt.Errorf("set the bounds of the buckets: %w", err)
	}
	for name, bit := range requestBits(kernel) {
		if err := spec.Variables[name].Set(bit); err != nil {
			return fmt.Errorf("set %s of the programs that count how long disks take: %w", name, err)
		}
	}
	options := ebpf.CollectionOptions{Cache: types}
	var callback *btf.Typedef
	starts := kernel.TypeByName(startType, &callback) == nil
	if options.MapReplacements, err = shareJobs(spec, with, starts); err != nil {
		return err
	}
	if t.programs, err = ebpf.NewCollectionWithOptions(spec, options); err != nil {
		return fmt.Errorf("the kernel refuses the programs that count how long disks take: %w", err)
	}
	// The ends first: an operation that is seen to start is seen to end.
	for _, name := range []string{onComplete, onStart, onInsert, onIssue} {
		p := t.programs.Programs[name]
		if p == nil {
			continue
		}
		l, err := link.AttachTracing(link.TracingOptions{Program: p, AttachType: ebpf.AttachTraceRawTp})
		if err != nil {
			return fmt.Errorf("attach to the tracepoints of block devices: %w", err)
		}
		t.links = append(t.links, l)
	}
	return nil
}

// requestBits returns the bits of a request's flags, by the programs' names for them. The kernel has them in an enum:
// Linux 6.18 in one with a name, 6.12 in one without, and those before 6.11 as macros.
func requestBits(kernel *btf.Spec) map[string]uint32 {
	bits := map[string]uint32{"io_stat": 1 << 13, "flush_seq": 1 << 4}
	names := map[string]string{"__RQF_IO_STAT": "io_stat", "__RQF_FLUSH_SEQ": "flush_seq"}
	var flags *btf.Enum
	if kernel.TypeByName("rqf_flags", &flags) != nil {
		flags = unnamed(kernel, "__RQF_IO_STAT")
	}
	if flags != nil {
		for _, v := range flags.Values {
			if name := names[v.Name]; name != "" {
				bits[name] = 1 << v.Value
			}
		}
	}
	return bits
}

// unnamed returns the enum without a name that has a value; nil for none. Looking through all types takes long, so the
// text is looked for before.
func unnamed(kernel *btf.Spec, value string) *btf.Enum {
	if text, err := os.ReadFile("/sys/kernel/btf/vmlinux"); err == nil && !bytes.Contains(text, []byte(value)) {
		return nil
	}
	for t, err := range kernel.All() {
		enum, is := t.(*btf.Enum)
		if err != nil {
			return nil
		}
		if is && slices.ContainsFunc(enum.Values, func(v btf.EnumValue) bool { return v.Name == value }) {
			return enum
		}
	}
	return nil
}

// shareJobs lets the programs look up the job of a thread in the maps of the scheduler's programs. Without these, it
// leaves out all that is for jobs.
func shareJobs(spec *ebpf.CollectionSpec, with schedule.Tracing, starts bool) (map[string]*ebpf.Map, error) {
	shared, ok := schedule.Share(spec, with)
	if !ok {
		for _, name := range []string{onStart, onInsert, onIssue} {
			delete(spec.Programs, name)
		}
		delete(spec.Maps, "threads")
		spec.Maps["started"].MaxEntries = 1
		return nil, nil
	}
	if starts {
		delete(spec.Programs, onInsert)
		delete(spec.Programs, onIssue)
	} else {
		delete(spec.Programs, onStart)
	}
	if err := spec.Variables["with_jobs"].Set(uint32(1)); err != nil {
		return nil, err
	}
	return shared, nil
}

// kernelBounds are the bounds of the buckets in ns, and then some that no time exceeds.
func kernelBounds() (all [bounds]uint64) {
	for i := range all {
		all[i] = math.MaxInt64
		if i < buckets {
			all[i] = uint64(sample.LatencyBound(i))
		}
	}
	return all
}

// Lacks implements Tracing.
func (t *Tracer) Lacks() []string { return t.lacks }

// Memory implements Tracing.
func (t *Tracer) Memory() Memory {
	return Memory{t.programs.Maps["cells"].FD(), t.programs.Maps["directory"].FD()}
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

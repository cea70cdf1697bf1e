//go:build linux && (amd64 || arm64)

package bpf

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/tcp"
)

// loader loads programs for the running kernel.
type loader struct {
	types  *btf.Cache // read once, for us and for the library
	spec   *ebpf.CollectionSpec
	left   left
	values map[string]any // of the programs
}

// newLoader reads the programs, without those that the kernel has no tracepoint for.
func newLoader(l left, o options) (*loader, error) {
	types := btf.NewCache()
	kernel, err := types.Kernel()
	if err != nil {
		return nil, fmt.Errorf("read the kernel's types: %w", err)
	}
	if err := fits(kernel); err != nil {
		return nil, err
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("read the programs: %w", err)
	}
	spec.Maps["events"].MaxEntries = uint32(o.ringBytes)
	values := map[string]any{
		"switch_has_state": number(switchHasState(kernel)),
		"job_budget":       uint64(o.jobBudget),
		"all_budget":       uint64(o.allBudget),
		"merge_budget":     uint64(o.mergeBudget),
		"own_space":        tcp.Namespace(),
		"bounds":           kernelBounds(),
	}
	if offset, known := preemptOffset(kernel); known && runtime.GOARCH == "amd64" {
		values["preempt_known"], values["preempt_offset"] = number(true), offset
	}
	if _, out := l[Disks]; !out { // it may take long
		maps.Copy(values, requestBits(kernel))
	}
	dropUnknown(spec, kernel)
	return &loader{types, spec, l, values}, nil
}

// dropUnknown removes the programs for tracepoints that the kernel lacks.
func dropUnknown(spec *ebpf.CollectionSpec, kernel *btf.Spec) {
	has := func(program string) bool {
		var callback *btf.Typedef
		return kernel.TypeByName("btf_trace_"+spec.Programs[program].AttachTo, &callback) == nil
	}
	drop := func(programs ...string) {
		for _, name := range programs {
			delete(spec.Programs, name)
		}
	}
	if has("on_start") { // Linux 6.5
		drop("on_insert", "on_issue")
	} else {
		drop("on_start")
	}
	if !has("on_fault") || !has("on_mapped") { // Linux 6.12
		drop("on_fault", "on_mapped")
	}
}

// load loads all programs but those that are left out, with the maps that they use. An error names a program or a map.
func (l *loader) load(exchanges bool) (*ebpf.Collection, error) {
	programs := l.spec.Programs
	for i := range parts {
		if p := &parts[i]; l.left.out(p) {
			maps.DeleteFunc(programs, func(name string, _ *ebpf.ProgramSpec) bool { return slices.Contains(p.programs, name) })
		}
	}
	if len(programs) == 0 {
		return &ebpf.Collection{}, nil
	}
	jobs := programs["on_start"] != nil || programs["on_issue"] != nil
	if started := l.spec.Maps["started"]; started != nil && !jobs {
		started.MaxEntries = 1
	}
	used := map[string]bool{".rodata": true}
	for _, p := range programs {
		for i := range p.Instructions {
			used[p.Instructions[i].Reference()] = true
		}
	}
	maps.DeleteFunc(l.spec.Maps, func(name string, _ *ebpf.MapSpec) bool { return !used[name] })
	l.values["can_exchange"], l.values["with_jobs"] = number(exchanges), number(jobs)
	l.values["faults_seen"] = number(programs["on_fault"] != nil)
	for name, value := range l.values {
		if err := l.spec.Variables[name].Set(value); err != nil {
			return nil, fmt.Errorf("set %s of the programs: %w", name, err)
		}
	}
	return ebpf.NewCollectionWithOptions(l.spec, ebpf.CollectionOptions{Cache: l.types})
}

func number(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// switchHasState reports whether the tracepoint sched_switch passes the state of the thread that leaves. It does since
// Linux 5.18, after a pointer to the tracer's data, the flag for preemption, and both threads.
func switchHasState(kernel *btf.Spec) bool {
	var callback *btf.Typedef
	if kernel.TypeByName("btf_trace_sched_switch", &callback) != nil {
		return false
	}
	pointer, _ := callback.Type.(*btf.Pointer)
	if pointer == nil {
		return false
	}
	function, _ := pointer.Target.(*btf.FuncProto)
	return function != nil && len(function.Params) == 5
}

// preemptOffset returns where the preempt count of a CPU is, from its run queue.
func preemptOffset(kernel *btf.Spec) (int64, bool) {
	var section *btf.Datasec
	if kernel.TypeByName(".data..percpu", &section) != nil {
		return 0, false
	}
	var queue, count int64
	var found int
	for _, v := range section.Vars {
		variable, _ := v.Type.(*btf.Var)
		switch {
		case variable == nil:
		case variable.Name == "runqueues":
			queue = int64(v.Offset)
			found++
		case variable.Name == "__preempt_count":
			count = int64(v.Offset)
			found++
		case variable.Name == "pcpu_hot": // Linux 6.2 to 6.14
			if hot, inside := memberOffset(variable.Type, "preempt_count"); inside {
				count = int64(v.Offset) + hot
				found++
			}
		}
	}
	return count - queue, found == 2
}

// memberOffset returns the place of a member in a structure, in bytes, also within unnamed parts of it.
func memberOffset(t btf.Type, name string) (int64, bool) {
	var members []btf.Member
	switch t := btf.UnderlyingType(t).(type) {
	case *btf.Struct:
		members = t.Members
	case *btf.Union:
		members = t.Members
	}
	for _, m := range members {
		at := int64(m.Offset.Bytes())
		if m.Name == name {
			return at, true
		}
		if m.Name != "" {
			continue
		}
		if inside, found := memberOffset(m.Type, name); found {
			return at + inside, true
		}
	}
	return 0, false
}

// requestBits returns the bits of a request's flags, by the programs' names for them. The kernel has them in an enum:
// Linux 6.18 in one with a name, 6.12 in one without, and those before 6.11 as macros.
func requestBits(kernel *btf.Spec) map[string]any {
	bits := map[string]any{"io_stat": uint32(1 << 13), "flush_seq": uint32(1 << 4)}
	names := map[string]string{"__RQF_IO_STAT": "io_stat", "__RQF_FLUSH_SEQ": "flush_seq"}
	var flags *btf.Enum
	if kernel.TypeByName("rqf_flags", &flags) != nil {
		flags = unnamed(kernel, "__RQF_IO_STAT")
	}
	if flags != nil {
		for _, v := range flags.Values {
			if name := names[v.Name]; name != "" {
				bits[name] = uint32(1) << v.Value
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

//go:build linux && (amd64 || arm64)

package schedule

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/tcp"
)

var (
	errClosed = errors.New("the source of the scheduler is closed")
	errAway   = errors.New("the scheduler is not followed: the helper that does has ended and is started again")
)

// hostPIDs is the PID namespace of the host (PROC_PID_INIT_INO).
const hostPIDs = "pid:[4026531836]"

// missing returns what this machine or process lacks, to the extent that it is known beforehand.
func missing(root string) error {
	if err := Traceable(root, "following the scheduler"); err != nil {
		return err
	}
	if space, err := os.Readlink("/proc/self/ns/pid"); err == nil && space != hostPIDs {
		return errors.New("following the scheduler needs the host's process numbers: run outside of a PID namespace, " +
			"in Kubernetes with hostPID: true")
	}
	return nil
}

func missingRights(doing string) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("read the capabilities of this process: %w", err)
	}
	has := func(c uint) bool { return sets[c/32].Effective&(1<<(c%32)) != 0 }
	switch {
	case has(unix.CAP_SYS_ADMIN) || has(unix.CAP_BPF) && has(unix.CAP_PERFMON):
		return nil
	case has(unix.CAP_BPF):
		return errors.New(doing + " needs CAP_PERFMON besides CAP_BPF")
	case has(unix.CAP_PERFMON):
		return errors.New(doing + " needs CAP_BPF besides CAP_PERFMON")
	case unix.Geteuid() == 0:
		return errors.New(doing + " needs CAP_BPF and CAP_PERFMON, which root lacks here, as in a container")
	}
	return errors.New(doing + " needs root, or CAP_BPF and CAP_PERFMON")
}

// attach loads the programs for the running kernel, attaches them, and tries what following a job takes. A part that
// the kernel refuses at any of these is left out whole, and the others are loaded again without it.
func (t *Tracer) attach(o options) error {
	types := btf.NewCache() // read once, for us and for the loader
	kernel, err := types.Kernel()
	if err != nil {
		return fmt.Errorf("read the kernel's types: %w", err)
	}
	if err := Fits(kernel); err != nil {
		return err
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return fmt.Errorf("read the programs for the scheduler: %w", err)
	}
	spec.Maps["events"].MaxEntries = uint32(o.ringBytes)
	values := map[string]any{
		"switch_has_state": number(switchHasState(kernel)),
		"job_budget":       uint64(o.jobBudget),
		"all_budget":       uint64(o.allBudget),
		"merge_budget":     uint64(o.mergeBudget),
		"own_space":        tcp.Namespace(),
	}
	if offset, known := preemptOffset(kernel); known && runtime.GOARCH == "amd64" {
		values["preempt_known"], values["preempt_offset"] = number(true), offset
	}
	faults := seesFaults(kernel, spec)
	var refused []*part
	for exchanges := true; ; {
		faults = faults && spec.Programs["on_fault"] != nil
		values["faults_seen"], values["can_exchange"] = number(faults), number(exchanges)
		for name, value := range values {
			if err := spec.Variables[name].Set(value); err != nil {
				return fmt.Errorf("set %s of the programs for the scheduler: %w", name, err)
			}
		}
		err := t.begin(spec, types, faults)
		if err == nil {
			t.lacks = lacking(refused)
			return nil
		}
		t.release()
		t.programs = loaded{}
		left := refusedPart(err, spec)
		switch {
		case left != nil:
			left.leaveOut(spec)
			refused = append(refused, left)
		case exchanges && runtime.GOARCH == "arm64": // before Linux 5.18 it has no such operations
			exchanges = false
		default:
			return fmt.Errorf("the kernel refuses the programs that follow the scheduler: %w", err)
		}
	}
}

// take loads the programs of spec. Fields of those that it lacks stay nil.
func (p *loaded) take(spec *ebpf.CollectionSpec, o *ebpf.CollectionOptions) error {
	all, err := ebpf.NewCollectionWithOptions(spec, *o)
	if err != nil {
		return err
	}
	defer all.Close() // of what is not taken
	of := reflect.ValueOf(p).Elem()
	for i := range of.NumField() {
		name := of.Type().Field(i).Tag.Get("ebpf")
		if name == "" {
			continue
		}
		if one := all.Programs[name]; one != nil {
			of.Field(i).Set(reflect.ValueOf(one))
			delete(all.Programs, name)
		}
		if one := all.Maps[name]; one != nil {
			of.Field(i).Set(reflect.ValueOf(one))
			delete(all.Maps, name)
		}
	}
	return nil
}

func number(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// seesFaults reports whether the kernel has the tracepoints of page faults, as since Linux 6.12. Without them, their
// programs are loaded for another one, and not attached.
func seesFaults(kernel *btf.Spec, spec *ebpf.CollectionSpec) bool {
	programs := []*ebpf.ProgramSpec{spec.Programs["on_fault"], spec.Programs["on_mapped"]}
	missing := slices.ContainsFunc(programs, func(p *ebpf.ProgramSpec) bool {
		var callback *btf.Typedef
		return kernel.TypeByName("btf_trace_"+p.AttachTo, &callback) != nil
	})
	for _, p := range programs {
		if missing {
			p.AttachTo = "sched_process_fork"
		}
	}
	return !missing
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

// loaded is what the kernel has loaded of bpf/sched.bpf.c.
type loaded struct {
	Adopt      *ebpf.Program `ebpf:"adopt"`
	Flush      *ebpf.Program `ebpf:"flush"`
	OnBio      *ebpf.Program `ebpf:"on_bio"`
	OnFault    *ebpf.Program `ebpf:"on_fault"`
	OnFork     *ebpf.Program `ebpf:"on_fork"`
	OnMapped   *ebpf.Program `ebpf:"on_mapped"`
	OnPage     *ebpf.Program `ebpf:"on_page"`
	OnRename   *ebpf.Program `ebpf:"on_rename"`
	OnState    *ebpf.Program `ebpf:"on_state"`
	OnSwitch   *ebpf.Program `ebpf:"on_switch"`
	OnWaking   *ebpf.Program `ebpf:"on_waking"`
	ReportOpen *ebpf.Program `ebpf:"report_open"`

	Connections *ebpf.Map `ebpf:"connections"`
	Counters    *ebpf.Map `ebpf:"counters"`
	Events      *ebpf.Map `ebpf:"events"`
	Jobs        *ebpf.Map `ebpf:"jobs"`
	Joining     *ebpf.Map `ebpf:"joining"`
	Threads     *ebpf.Map `ebpf:"threads"`
}

// traced are the programs that run at the kernel's tracepoints. One that the kernel refused is nil.
func (p *loaded) traced(faults bool) []named {
	all := []named{
		{"on_switch", p.OnSwitch}, {"on_waking", p.OnWaking}, {"on_fork", p.OnFork}, {"on_rename", p.OnRename},
		{"on_page", p.OnPage}, {"on_bio", p.OnBio}, {"on_state", p.OnState},
	}
	if faults {
		all = append(all, named{"on_fault", p.OnFault}, named{"on_mapped", p.OnMapped})
	}
	return all
}

// named is a program with its name in bpf/sched.bpf.c.
type named struct {
	name string
	*ebpf.Program
}

// close frees what was loaded.
func (p *loaded) close() {
	for _, one := range p.traced(true) {
		_ = one.Close() // of nil, too
	}
	for _, one := range []*ebpf.Program{p.Adopt, p.Flush, p.ReportOpen} {
		_ = one.Close()
	}
	for _, one := range []*ebpf.Map{p.Connections, p.Counters, p.Events, p.Jobs, p.Joining, p.Threads} {
		_ = one.Close()
	}
}

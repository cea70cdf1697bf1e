//go:build linux && (amd64 || arm64)

package schedule

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
)

// Traceable returns what this machine or process lacks for programs at the kernel's tracepoints, to the extent that it
// is known beforehand. doing begins the error: "following the scheduler".
func Traceable(root, doing string) error {
	types := filepath.Join("/", root, "sys/kernel/btf/vmlinux")
	if why := unreadable(types); why != "" {
		return fmt.Errorf("%s needs a kernel with its types (CONFIG_DEBUG_INFO_BTF): %s %s", doing, types, why)
	}
	return missingRights(doing)
}

// unreadable says why the types of a kernel cannot be read; "" if they can.
func unreadable(path string) string {
	file, err := os.Open(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "is missing"
	case err != nil:
		return fmt.Sprintf("cannot be read (%v)", errors.Unwrap(err))
	}
	defer file.Close()
	if _, err := file.Read(make([]byte, 1)); err != nil {
		return "is empty"
	}
	return ""
}

// Share has other programs use the maps threads and jobs of a Tracing, which the loader is to take in place of theirs.
// The values begin with the slot and the generation of a thread's job, and with the generation of a job. It is false
// for a Tracing of another process.
func Share(spec *ebpf.CollectionSpec, with Tracing) (maps map[string]*ebpf.Map, ok bool) {
	t, ok := with.(*Tracer)
	if !ok {
		return nil, false
	}
	maps = map[string]*ebpf.Map{"threads": t.programs.Threads, "jobs": t.programs.Jobs}
	for name, m := range maps {
		spec.Maps[name].ValueSize, spec.Maps[name].MaxEntries = m.ValueSize(), m.MaxEntries()
	}
	return maps, true
}

// Tracing is what follows the threads at present; nil for none.
func (s *Source) Tracing() Tracing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tracing
}

// Lacks lists what is not known now, as the kernel refused a part of the programs.
func (s *Source) Lacks() []string {
	if t := s.Tracing(); t != nil {
		return t.Lacks()
	}
	return nil
}

// JobIn returns the job in a slot, and which one since the Source began it is; "" for none.
func (s *Source) JobIn(slot int) (name string, generation uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slot < 1 || slot > MaxJobs || s.jobs[slot] == nil {
		return "", 0
	}
	return s.jobs[slot].name, s.jobs[slot].generation
}

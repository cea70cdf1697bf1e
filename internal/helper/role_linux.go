//go:build amd64 || arm64

package helper

import (
	"path/filepath"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/trust"
)

// role is what a helper is for.
type role struct {
	name  string    // the argument of the helper
	does  string    // for errors of the agent
	needs trust.Set // its capabilities; it starts without any other
	more  []rule    // system calls besides those of rules
	serve func(fd int, root string) error
}

// keeps is the argument of a keeper.
const keeps = "keep"

var roles = []role{
	{name: "read", does: reads, needs: trust.Processes, serve: serveReads},
	{name: "trace", does: "that holds the BPF programs", needs: trust.Schedule, more: tracing, serve: serveTracing},
}

// roleOf finds a role by its name.
func roleOf(name string) (r role, found bool) {
	i := slices.IndexFunc(roles, func(r role) bool { return r.name == name })
	if i < 0 {
		return role{}, false
	}
	return roles[i], true
}

func serveReads(fd int, root string) error {
	s := &server{reader: process.NewDirect(filepath.Join(root, "proc"))}
	return serve(fd, func(question []byte) error {
		frame, err := s.answer(question)
		if err != nil {
			return err
		}
		return send(fd, frame, nil)
	})
}

// Commands of bpf(2) in linux/bpf.h: those that load and attach programs, and change elements of maps.
const (
	bpfMapCreate         = 0
	bpfMapLookup         = 1
	bpfMapUpdate         = 2
	bpfMapDelete         = 3
	bpfProgramLoad       = 5
	bpfObjectInfo        = 15
	bpfRawTracepointOpen = 17
	bpfTypesLoad         = 18
	bpfMapFreeze         = 22
	bpfLinkCreate        = 28
	bpfIteratorCreate    = 33
	bpfProgramBindMap    = 35
)

// tracing are the system calls of the tracer besides rules.
var tracing = slices.Concat(always(unix.SYS_UNAME, unix.SYS_CAPGET, unix.SYS_SENDMSG), []rule{
	{unix.SYS_BPF, 0, bpf.JumpEqual, []uint32{
		bpfMapCreate, bpfMapLookup, bpfMapUpdate, bpfMapDelete, bpfProgramLoad, bpfObjectInfo, bpfRawTracepointOpen,
		bpfTypesLoad, bpfMapFreeze, bpfLinkCreate, bpfIteratorCreate, bpfProgramBindMap,
	}},
	{unix.SYS_FCNTL, 1, bpf.JumpEqual, []uint32{unix.F_DUPFD_CLOEXEC}},
})

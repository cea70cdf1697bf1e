//go:build amd64 || arm64

package helper

import (
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/trust"
)

// role is what a helper is for.
type role struct {
	name  string    // the argument of the helper; that of its keeper begins with keepPrefix
	needs trust.Set // its capabilities; it starts without any other
	more  []rule    // system calls besides those of rules
	serve func(fd int) error
}

const keepPrefix = "keep-"

var roles = []role{
	{name: "read", needs: trust.Processes, serve: func(fd int) error {
		return serve(fd, &server{reader: process.NewDirect("/proc")})
	}},
	{name: "trace", needs: trust.Schedule, more: tracing, serve: serveTracing},
}

// roleOf finds a role by the argument of a helper, or of its keeper.
func roleOf(argument string) (r role, keeper, found bool) {
	for _, r := range roles {
		switch argument {
		case r.name:
			return r, false, true
		case keepPrefix + r.name:
			return r, true, true
		}
	}
	return role{}, false, false
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

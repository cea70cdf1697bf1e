package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/stallspan/stallspan/internal/source/cgroup"
)

// errNoCgroupfs is for a folder that only looks like a cgroup: nothing is made there.
var errNoCgroupfs = errors.New("it is not a cgroup v2 file system")

// cgroup checks whether a program under run can have its own cgroup, by making one and removing it.
func (m *machine) cgroup(context.Context) []Finding {
	f := Finding{Area: Cgroup, What: "own cgroup", Details: map[string]any{}}
	if exists(m.path("sys/fs/cgroup/unified")) {
		f.Details["hybrid"] = true
	}
	parent, err := cgroup.ScopeOf(m.Root, m.pid())
	if err != nil {
		return m.noCgroup(f, "this process is not in a cgroup v2")
	}
	f.Details["path"] = parent
	folder, err := cgroup.Dir(m.Root, parent)
	if err != nil {
		return m.noCgroup(f, "cgroup v2 is not mounted, or only a part of it")
	}
	f.Details["folder"] = folder
	if err := tryCgroup(folder); err != nil {
		return f.as(Limited, m.cgroupFix(folder, err), noOwnCgroup, "below "+folder+" "+refusal(err))
	}
	return f.as(Seen, "", "A program under stallspan run gets its own cgroup, so its pressure and CPU time are not mixed "+
		"with those of other programs.")
}

const noOwnCgroup = "A program under stallspan run gets no cgroup of its own (%s): its pressure may include that of " +
	"other programs."

func (m *machine) noCgroup(f Finding, why string) []Finding {
	fix := m.procFix()
	switch {
	case fix != "":
	case len(m.containerSigns()) > 0:
		fix = "docker run --cgroupns=private ..., on a host with cgroup v2"
	case m.hasSystemd():
		fix = "boot with systemd.unified_cgroup_hierarchy=1 on the kernel's command line"
	default:
		fix = "as root: d=/sys/fs/cgroup/unified; mkdir -p $d; mount -t cgroup2 none $d"
	}
	return f.as(Limited, fix, noOwnCgroup, why)
}

// refusal is why tryCgroup failed.
func refusal(err error) string {
	var t trouble
	if errors.As(err, &t) {
		return "one can be made, but " + t.what
	}
	return "none can be made: " + reason(err)
}

// trouble is why a cgroup that could be made is not usable.
type trouble struct {
	what string
	err  error
}

func (t trouble) Error() string { return t.what }
func (t trouble) Unwrap() error { return t.err }

// tryCgroup makes a cgroup as run does, checks that it is usable, and removes it.
func tryCgroup(folder string) (err error) {
	if !isCgroup2(folder) {
		return errNoCgroupfs
	}
	// Moving a process needs write permission in the common parent, which is here. Nothing is written.
	here, openErr := os.OpenFile(filepath.Join(folder, "cgroup.procs"), os.O_WRONLY, 0)
	if openErr == nil {
		_ = here.Close()
	}
	own, err := os.MkdirTemp(folder, fmt.Sprintf("stallspan-check-%d-", os.Getpid()))
	if err != nil {
		return err
	}
	defer func() {
		if gone := os.Remove(own); gone != nil && err == nil {
			err = trouble{"it cannot be removed again", gone}
		}
	}()
	if openErr != nil {
		return trouble{"no process may be moved there (" + reason(openErr) + ")", openErr}
	}
	for _, name := range []string{"io.pressure", "cpu.stat"} {
		if _, err := readFile(filepath.Join(own, name)); err != nil {
			return trouble{"it has no " + name, err}
		}
	}
	return nil
}

// cgroupFix gives this user a cgroup in which others may be made.
func (m *machine) cgroupFix(folder string, err error) string {
	inContainer := len(m.containerSigns()) > 0
	var t trouble
	switch {
	case errors.As(err, &t) && errors.Is(err, os.ErrNotExist):
		return pressureOn
	case errors.Is(err, errNoCgroupfs):
		return ""
	case errors.Is(err, syscall.EROFS) || inContainer && os.Geteuid() == 0:
		return "docker run --cgroupns=private --security-opt writable-cgroups=true ..., with Docker 28 or later"
	case m.hasSystemd() && exists(fmt.Sprintf("/run/user/%d/systemd", os.Geteuid())):
		return "systemd-run --user --scope -p Delegate=yes stallspan run -- COMMAND"
	case errors.Is(err, os.ErrPermission):
		// Limits of the cgroup stay root's: only these files belong to who a cgroup is delegated to (cgroup-v2.rst).
		return fmt.Sprintf(`as root, in the shell that runs the program: d=%s; mkdir "$d"; chown %d "$d" `+
			`"$d"/cgroup.procs "$d"/cgroup.threads "$d"/cgroup.subtree_control; echo $$ >"$d"/cgroup.procs`,
			quoted(fmt.Sprintf("%s/u%d", folder, os.Geteuid())), os.Geteuid())
	}
	return ""
}

func (m *machine) hasSystemd() bool { return exists(m.path("run/systemd/system")) }

// isCgroup2 reports whether a folder lies in a cgroup v2 file system.
func isCgroup2(folder string) bool {
	const superMagic = 0x63677270 // CGROUP2_SUPER_MAGIC of linux/magic.h
	var st syscall.Statfs_t
	return syscall.Statfs(folder, &st) == nil && uint32(st.Type) == superMagic
}

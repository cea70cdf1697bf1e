//go:build linux && (amd64 || arm64)

package bpf

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// refusal is an error of the kernel in words, with what it was.
type refusal struct {
	text string
	err  error
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.err }

// errTooOld is the error for a kernel without what the programs call.
var errTooOld = errors.New("the kernel has no bpf_task_pt_regs")

// fits returns an error if a kernel has not all that the programs call. Before Linux 5.11 its error would be that of
// missing rights, if the memory that may be locked is too small for the maps.
func fits(kernel *btf.Spec) error {
	var functions *btf.Enum
	if kernel.TypeByName("bpf_func_id", &functions) == nil &&
		!slices.ContainsFunc(functions.Values, func(v btf.EnumValue) bool { return v.Name == "BPF_FUNC_task_pt_regs" }) {
		return errTooOld
	}
	return nil
}

// missing returns what this machine or process lacks for every program, to the extent that it is known beforehand.
func missing(root string) error {
	types := filepath.Join("/", root, "sys/kernel/btf/vmlinux")
	if why := unreadable(types); why != "" {
		return fmt.Errorf("needs a kernel with its types (CONFIG_DEBUG_INFO_BTF): %s %s", types, why)
	}
	return missingRights()
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

func missingRights() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("needs the capabilities of this process to be readable: %w", err)
	}
	has := func(c uint) bool { return sets[c/32].Effective&(1<<(c%32)) != 0 }
	switch {
	case has(unix.CAP_SYS_ADMIN) || has(unix.CAP_BPF) && has(unix.CAP_PERFMON):
		return nil
	case has(unix.CAP_BPF):
		return errors.New("needs CAP_PERFMON besides CAP_BPF")
	case has(unix.CAP_PERFMON):
		return errors.New("needs CAP_BPF besides CAP_PERFMON")
	case unix.Geteuid() == 0:
		return errors.New("needs CAP_BPF and CAP_PERFMON, which root lacks here, as in a container")
	}
	return errors.New("needs root, or CAP_BPF and CAP_PERFMON")
}

// hostPIDs is the PID namespace of the host (PROC_PID_INIT_INO).
const hostPIDs = "pid:[4026531836]"

// otherPIDs returns an error if the numbers of processes in the kernel are not those of this process.
func otherPIDs() error {
	if space, err := os.Readlink("/proc/self/ns/pid"); err == nil && space != hostPIDs {
		return errors.New("needs the host's process numbers: run outside of a PID namespace, " +
			"in Kubernetes with hostPID: true")
	}
	return nil
}

// inWords says why the kernel refuses BPF programs, as what follows the name of a part, and how to see more. root is
// where the host's files are.
func inWords(root string, err error) error {
	text := "is refused: this kernel does not accept the programs" + policies(root) +
		"; please report it with the output of uname -a"
	var number unix.Errno
	_ = errors.As(err, &number)
	checked, locked := verified(err)
	switch {
	case errors.Is(err, errTooOld):
		text = "needs a kernel with bpf_task_pt_regs, as Linux 5.15 and later have it"
	case locked:
		text = "needs a kernel that is not locked down (confidentiality)"
	case checked: // it has nothing to do with rights, whatever the number is
	case (number == unix.EPERM || number == unix.EACCES) && inUserNamespace():
		text = "needs root of the host, or its CAP_BPF and CAP_PERFMON: those of a user namespace, as of a " +
			"rootless container, do not count"
	case number == unix.EPERM || number == unix.EACCES:
		text = "is refused although the rights are there: a policy of this machine forbids it" + policies(root) +
			"; look for the denial with journalctl -k, or ausearch -m avc"
	case number == unix.ENOMEM:
		text = "is refused: the kernel has no memory for the programs; free some, or raise the memory limit of the cgroup"
	case number == unix.ENOSYS:
		text = "needs a kernel with BPF (CONFIG_BPF_SYSCALL)"
	}
	return &refusal{text, err}
}

// failed says why something of a job failed: in words if the kernel refuses it.
func failed(doing string, err error) error {
	for _, number := range []unix.Errno{unix.EPERM, unix.EACCES, unix.EINVAL, unix.ENOMEM} {
		if errors.Is(err, number) {
			return &refusal{doing + " " + inWords("", err).Error(), err}
		}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// verified reports whether the kernel's check of a program refused it, and whether it did because a kernel that is
// locked down has no function that reads its memory. A policy refuses before the check, which then says nothing.
func verified(err error) (checked, locked bool) {
	var refused *ebpf.VerifierError
	if !errors.As(err, &refused) {
		return false, false
	}
	for _, line := range refused.Log {
		checked = checked || line != ""
		locked = locked || strings.Contains(line, "bpf_probe_read") &&
			(strings.Contains(line, "unknown func") || strings.Contains(line, "cannot use helper"))
	}
	return checked, locked
}

// hostUsers is the first user namespace (PROC_USER_INIT_INO).
const hostUsers = "user:[4026531837]"

// inUserNamespace reports whether this process is in a user namespace, in which capabilities do not reach BPF.
func inUserNamespace() bool {
	space, err := os.Readlink("/proc/self/ns/user")
	return err == nil && space != hostUsers
}

// policies names what is active that may forbid BPF.
func policies(root string) string {
	var active []string
	if text, err := os.ReadFile(filepath.Join("/", root, "sys/kernel/security/lsm")); err == nil {
		for name := range strings.SplitSeq(strings.TrimSpace(string(text)), ",") {
			switch name {
			case "selinux", "apparmor", "bpf", "smack", "tomoyo":
				active = append(active, name)
			}
		}
	}
	if text, err := os.ReadFile(filepath.Join("/", root, "sys/kernel/security/lockdown")); err == nil {
		if _, rest, locked := bytes.Cut(text, []byte("[")); locked && !bytes.HasPrefix(rest, []byte("none")) {
			level, _, _ := bytes.Cut(rest, []byte("]"))
			active = append(active, "lockdown="+string(level))
		}
	}
	if text, err := os.ReadFile("/proc/self/status"); err == nil && bytes.Contains(text, []byte("Seccomp:\t2")) {
		active = append(active, "seccomp")
	}
	if len(active) == 0 {
		return ""
	}
	return " (active: " + strings.Join(active, ", ") + ")"
}

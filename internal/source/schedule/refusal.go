//go:build linux && (amd64 || arm64)

package schedule

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// refusal is an error of the kernel in words, with what it was.
type refusal struct {
	text string
	err  error
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.err }

// InWords says why the kernel refuses BPF programs that do something, and how to see more. root is where the host's
// files are.
func InWords(root, doing string, err error) error {
	text := doing + ": this kernel does not accept the programs" + policies(root) +
		"; please report it with the output of uname -a"
	var number unix.Errno
	_ = errors.As(err, &number)
	switch number {
	case unix.EPERM, unix.EACCES:
		text = doing + " is refused although the rights are there: a policy of this machine forbids it" + policies(root) +
			"; look for the denial with journalctl -k, or ausearch -m avc"
	case unix.ENOMEM:
		text = doing + ": the kernel has no memory for the programs; free some, or raise the memory limit of the cgroup"
	case unix.ENOSYS:
		text = doing + ": this kernel has no BPF (CONFIG_BPF_SYSCALL)"
	}
	return &refusal{text, err}
}

// failed says why something of a job failed: in words if the kernel refuses it.
func failed(doing string, err error) error {
	for _, number := range []unix.Errno{unix.EPERM, unix.EACCES, unix.EINVAL, unix.ENOMEM} {
		if errors.Is(err, number) {
			return InWords("", doing, err)
		}
	}
	return fmt.Errorf("%s: %w", doing, err)
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

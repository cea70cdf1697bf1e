//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// machine is an emulated computer.
type machine struct {
	name, what string
	suite      string // of Debian; "" for the suites of this machine
	arch       string
	kernel     string // package
	release    string // what the kernel says it is, in place of its own; "" for that
	options    string // of the kernel's command line
	hidden     bool   // the kernel's security file system is not mounted
	prepare    func() error
	rights     string // of the short jobs
}

// machines are in the order of the table in docs/internals/kernels.md.
var machines = []machine{
	{name: "5.10", what: "the oldest kernel of a Debian that is still served", suite: "bullseye", rights: "root,user"},
	{name: "6.1", what: "Debian 12, with all rights", suite: "bookworm",
		rights: "root,capabilities,user,rootless,docker,pod"},
	{name: "6.12", what: "Debian 13", suite: "trixie", rights: "root,user"},
	{name: "newest", what: "Debian's newest kernel", suite: "sid", rights: "root,user"},
	{name: "arm64-6.1", what: "Debian 12 on arm64", suite: "bookworm", arch: "arm64", rights: "root,user"},
	{name: "arm64-6.12", what: "Debian 13 on arm64", suite: "trixie", arch: "arm64", rights: "root,user"},
	{name: "el9", what: "Debian 12's kernel that says it is 5.14", suite: "bookworm", release: "5.14.0-427.el9",
		rights: "root"},
	{name: "lockdown", what: "the kernel is locked down", suite: "bookworm", options: locked, rights: "root"},
	{name: "lockdown-hidden", what: "the same, where a container does not see it", suite: "bookworm", options: locked,
		hidden: true, rights: "root"},
	{name: "no-btf", what: "the kernel's types are not there", suite: "bookworm", prepare: cover("btf"), rights: "root"},
	{name: "no-sys", what: "/sys is empty", suite: "bookworm", prepare: cover(""), rights: "root"},
	{name: "paranoid-3", what: "perf_event_paranoid is 3, as Debian has it", suite: "bookworm", prepare: paranoid(3),
		rights: "capabilities,user"},
	{name: "paranoid-4", what: "perf_event_paranoid is 4, as Ubuntu has it", suite: "bookworm", prepare: paranoid(4),
		rights: "capabilities,user"},
}

const locked = "lockdown=confidentiality lsm=lockdown,yama,apparmor,bpf"

// find returns a machine with all that it leaves open.
func find(name string) (machine, error) {
	i := slices.IndexFunc(machines, func(m machine) bool { return m.name == name })
	if i < 0 {
		var names []string
		for i := range machines {
			names = append(names, machines[i].name)
		}
		return machine{}, fmt.Errorf("no machine is %q: there are %s", name, strings.Join(names, ", "))
	}
	m := machines[i]
	if m.arch == "" {
		m.arch = "amd64"
	}
	m.kernel = "linux-image-" + m.arch
	return m, nil
}

// cover hides a folder of /sys/kernel, or all of /sys.
func cover(name string) func() error {
	at := "/sys"
	if name != "" {
		at = filepath.Join("/sys/kernel", name)
	}
	return func() error { return unix.Mount("nothing", at, "tmpfs", 0, "") }
}

func paranoid(level int) func() error {
	return func() error {
		return os.WriteFile("/proc/sys/kernel/perf_event_paranoid", fmt.Append(nil, level), 0o644)
	}
}

//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// TestInWords: a refusal says what to do, names the policies that are active, and has no text of a library.
func TestInWords(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "sys/kernel/security")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"lsm": "lockdown,capability,yama,selinux,bpf\n", "lockdown": "none integrity [confidentiality]\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for number, want := range map[unix.Errno]string{
		unix.EPERM:  "(active: selinux, bpf, lockdown=confidentiality",
		unix.EACCES: "journalctl -k",
		unix.ENOMEM: "memory limit",
		unix.EINVAL: "does not accept",
		unix.ENOSYS: "CONFIG_BPF_SYSCALL",
	} {
		err := inWords(root, fmt.Errorf("field OnSwitch: load program: %w (MEMLOCK may be too low)", number))
		text := err.Error()
		if !strings.Contains(text, want) || strings.Contains(text, "MEMLOCK") || strings.Contains(text, "field") {
			t.Errorf("%v: got %q, want %q and no text of a library", number, err, want)
		}
		if !errors.Is(err, number) {
			t.Errorf("%v: got an error that is not of that number", number)
		}
	}
}

// TestInWordsOfTheCheck: what the kernel's check refuses is no matter of policies, whatever the number is. A function
// that only a kernel without lockdown has is the lockdown's.
func TestInWordsOfTheCheck(t *testing.T) {
	for log, want := range map[string]string{
		"R4 unbounded memory access":                                       "does not accept",
		"unknown func bpf_probe_read#4":                                    "not locked down",
		"program of this type cannot use helper bpf_probe_read_kernel#113": "not locked down",
		"": "although the rights are there",
	} {
		refused := &ebpf.VerifierError{Cause: unix.EACCES, Log: []string{log}}
		text := inWords(t.TempDir(), fmt.Errorf("program adopt: %w", refused)).Error()
		if !strings.Contains(text, want) {
			t.Errorf("%q: got %q, want %q", log, text, want)
		}
	}
	if text := inWords("", errTooOld).Error(); !strings.Contains(text, "5.15") {
		t.Errorf("got %q, want what the kernel lacks", text)
	}
}

// TestTypesInWords has words of their own for types that are missing, empty or hidden.
func TestTypesInWords(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "sys/kernel/btf/vmlinux")
	check := func(want string) {
		t.Helper()
		if err := missing(root); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	check("is missing")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	check("is empty")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, path); err != nil {
		t.Fatal(err)
	}
	check("cannot be read (too many levels of symbolic links)")
}

// TestRefusedParts: an error of the kernel leaves out a part and those that need it, with the cause of each. What is
// left out already is not left out again.
func TestRefusedParts(t *testing.T) {
	const names = "new names of threads"
	for _, test := range []struct {
		want    Wanted
		refused []string // by the kernel, one after the other
		lacks   []string
		left    int // programs
	}{
		{want: Wanted{true, true}, left: 16},
		{Wanted{true, true}, []string{"program on_switch: load program"}, []string{Threads}, 1},
		{Wanted{true, true}, []string{"map events: map create"}, []string{Threads}, 1},
		{Wanted{true, true}, []string{"program report_open: load", "program report_open: load"}, []string{OpenConnections}, 15},
		{Wanted{true, true}, []string{"program report_open: map connections: create"}, []string{OpenConnections, connections}, 14},
		{Wanted{true, true}, []string{"program on_issue: attach it", "program on_rename: load"}, []string{names, DiskJobs}, 12},
		{Wanted{true, true}, []string{"program on_complete: load"}, []string{Disks, DiskJobs}, 12},
		{Wanted{true, true}, []string{"map started: create", "map started: create"}, []string{Disks, DiskJobs}, 12},
		{Wanted{true, true}, []string{"map jobs: create", "map jobs: create"}, []string{Threads, Disks}, 0},
		{Wanted{Threads: true}, []string{"program on_complete: load"}, nil, 12},
		{Wanted{Disks: true}, []string{"program on_switch: load", "program on_start: load"}, nil, 1},
		{Wanted{Disks: true}, []string{"map cells: create"}, []string{Disks}, 0},
		{Wanted{true, true}, []string{"map .rodata: create"}, nil, 16},
	} {
		out := unwanted(test.want)
		for _, text := range test.refused {
			if p := out.about(errors.New(text)); p != nil {
				out[p.what] = errors.New(text)
			}
		}
		var lacks []string
		for _, one := range out.refusals() {
			lacks = append(lacks, one.What)
		}
		left := 0
		for i := range parts {
			if !out.out(&parts[i]) {
				left += len(parts[i].programs)
			}
		}
		if !slices.Equal(lacks, test.lacks) || left != test.left {
			t.Errorf("%v, refused %q: got %d programs, lacking %q; want %d, %q", test.want, test.refused, left, lacks,
				test.left, test.lacks)
		}
	}
}

// TestCauses: each cause is named once, with all parts that are refused for it.
func TestCauses(t *testing.T) {
	policy, types := errors.New("is refused by a policy"), errors.New("needs BTF")
	all := Refusals{{"x", policy}, {"z", types}, {"y", policy}, {"w", policy}}
	got := strings.Join(all.Causes(), ", ")
	if want := "x, y and w (is refused by a policy), z (needs BTF)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := all.Of("z"); err == nil || err.Error() != "z needs BTF" || !errors.Is(err, types) || all.Of("a") != nil {
		t.Errorf("got %v, want a sentence with the cause", err)
	}
}

// TestEachPartAlone: without any other part, each one is loaded, unless it needs them.
func TestEachPartAlone(t *testing.T) {
	needs(t)
	refused := Supported("")
	for i := range parts {
		p := &parts[i]
		if refused.Of(p.what) != nil {
			continue
		}
		out := left{}
		for j := range parts {
			if q := &parts[j]; q != p && !slices.Contains(p.needs, q.what) {
				out[q.what] = errors.New("is refused")
			}
		}
		l, err := newLoader(out, defaults)
		if err != nil {
			t.Fatal(err)
		}
		tracer := &Tracer{}
		if err := tracer.begin(l, true); err != nil {
			t.Errorf("%s alone: %v", p.what, err)
			continue
		}
		for _, name := range p.programs {
			if l.spec.Programs[name] != nil && tracer.programs.Programs[name] == nil {
				t.Errorf("%s alone: got no program %s", p.what, name)
			}
		}
		tracer.release()
	}
}

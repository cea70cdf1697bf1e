//go:build linux && (amd64 || arm64)

package schedule

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
		unix.ENOSYS: "no BPF",
	} {
		err := InWords(root, "following", fmt.Errorf("field OnSwitch: load program: %w (MEMLOCK may be too low)", number))
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
		text := InWords(t.TempDir(), "following", fmt.Errorf("program adopt: %w", refused)).Error()
		if !strings.Contains(text, want) {
			t.Errorf("%q: got %q, want %q", log, text, want)
		}
	}
	if text := InWords("", "following", errTooOld).Error(); !strings.Contains(text, "5.15") {
		t.Errorf("got %q, want what the kernel lacks", text)
	}
}

// TestTypesInWords has words of their own for types that are missing, empty or hidden.
func TestTypesInWords(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "sys/kernel/btf/vmlinux")
	check := func(want string) {
		t.Helper()
		if err := Traceable(root, "following"); err == nil || !strings.Contains(err.Error(), want) {
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

// TestRefusedPart: without a part the others are loaded, and one that is needed is no part.
func TestRefusedPart(t *testing.T) {
	spec := &ebpf.CollectionSpec{
		Programs: map[string]*ebpf.ProgramSpec{"on_switch": {}, "on_state": {}, "report_open": {}, "on_rename": {}},
		Maps:     map[string]*ebpf.MapSpec{"connections": {}, "events": {}},
	}
	for _, test := range []struct {
		text  string
		lacks string
	}{
		{"program on_switch: load program: operation not permitted", ""},
		{"map events: map create: cannot allocate memory", ""},
		{"program report_open: load program: operation not permitted", parts[0].lacks},
		{"program report_open: load program: operation not permitted", ""}, // it is left out already
		{"map connections: map create: cannot allocate memory", parts[1].lacks},
		{"program on_rename: load program: permission denied", parts[2].lacks},
	} {
		got := refusedPart(errors.New(test.text), spec)
		switch {
		case got == nil && test.lacks != "" || got != nil && got.lacks != test.lacks:
			t.Errorf("%s: got %+v, want %q", test.text, got, test.lacks)
		case got != nil:
			got.leaveOut(spec)
		}
	}
	for _, test := range []struct{ refused, lacks []int }{
		{[]int{2, 0}, []int{0, 2}}, {[]int{1}, []int{0, 1}}, {[]int{0, 1}, []int{0, 1}}, {nil, nil},
	} {
		var refused []*part
		var want []string
		for _, i := range test.refused {
			refused = append(refused, &parts[i])
		}
		for _, i := range test.lacks {
			want = append(want, parts[i].lacks)
		}
		if got := lacking(refused); !slices.Equal(got, want) {
			t.Errorf("without parts %v: got %q, want %q", test.refused, got, want)
		}
	}
	if len(spec.Programs) != 1 || len(spec.Maps) != 1 {
		t.Errorf("got %d programs and %d maps left, want one each", len(spec.Programs), len(spec.Maps))
	}
}

package agent

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const unitFile = "../packaging/stallspan.service"

// The unit's score stays below 3: the scale is 0 (safe) to 10, with one decimal.
func TestUnitIsHardened(t *testing.T) {
	if err := exec.Command("systemd-analyze", "security", "--offline=true", unitFile).Run(); err != nil {
		t.Skipf("needs systemd-analyze of systemd 250: %v", err)
	}
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=29", unitFile).CombinedOutput()
	if err != nil {
		t.Errorf("got %v, want a score of at most 2.9\n%s", err, out)
	}
}

// The agent does not start with capabilities if its helper cannot confine itself.
func TestUnitLetsTheHelperConfineItself(t *testing.T) {
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if calls, found := strings.CutPrefix(line, "SystemCallFilter="); found {
			if !slices.Contains(strings.Fields(calls), "seccomp") {
				t.Errorf("got %q, want seccomp in it: @system-service of systemd 252 has it not", line)
			}
			return
		}
	}
	t.Error("got a unit without SystemCallFilter=")
}

// The capabilities that the unit names are enough, and each is needed, to read other users' I/O.
func TestUnitCapabilities(t *testing.T) {
	folder := openFolder(t)
	program := copyOf(t, filepath.Join(folder, "stallspan"))
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	if want := "AmbientCapabilities=CAP_SYS_PTRACE CAP_DAC_READ_SEARCH\n"; !strings.Contains(string(text), want) {
		t.Fatalf("got a unit without %q", want)
	}
	for name, test := range map[string]struct {
		set  []uintptr
		read bool
	}{
		"both":            {[]uintptr{unix.CAP_SYS_PTRACE, unix.CAP_DAC_READ_SEARCH}, true},
		"SYS_PTRACE":      {[]uintptr{unix.CAP_SYS_PTRACE}, false},
		"DAC_READ_SEARCH": {[]uintptr{unix.CAP_DAC_READ_SEARCH}, false},
		"none":            {nil, false},
	} {
		v := asOther(t, program, "check", "--json")
		v.SysProcAttr.AmbientCaps = test.set
		v.run()
		var got struct {
			Findings []struct {
				Area, What string
				Details    struct {
					Read   int `json:"others_told"`
					Denied int `json:"others_kept"`
				}
			}
		}
		if err := json.Unmarshal(v.out.Bytes(), &got); err != nil {
			t.Fatalf("%s: got %v, %s", name, err, &v.err)
		}
		for _, f := range got.Findings {
			if f.What == "processes" && (f.Details.Read > f.Details.Denied) != test.read { // a few end meanwhile
				t.Errorf("%s: got %+v of other users' processes, want most of them %v", name, f.Details, test.read)
			}
		}
	}
}

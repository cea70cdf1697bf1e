package check

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/source/smart"
)

// doctor makes a smartctl that runs these lines of sh. $device is the disk.
func doctor(t *testing.T, lines string) string {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skipf("needs /bin/sh to play smartctl: %v", err)
	}
	path := filepath.Join(t.TempDir(), "smartctl")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nfor device; do :; done\n"+lines), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	answer = `{"smartctl": {"version": [7, 4], "exit_status": 0}, "device": {"protocol": "ATA"}, "smart_status": {"passed": true}}`
	denied = `{"smartctl": {"version": [7, 4], "exit_status": 2, "messages": [{"string": "Smartctl open device: /dev/sda failed: Permission denied", "severity": "error"}]}}`
	asleep = `{"smartctl": {"version": [7, 4], "exit_status": 2, "messages": [{"string": "Device is in STANDBY mode, exit(2)", "severity": "information"}]}}`
)

func TestHealth(t *testing.T) {
	disks := func(names ...string) (all []smart.Disk) {
		for _, name := range names {
			all = append(all, smart.Disk{Device: "/dev/" + name})
		}
		return all
	}
	each := fmt.Sprintf("case $device in *sdq) echo '%s';; *sdr) echo '%s';; *) echo '%s';; esac\n", answer, denied,
		asleep)
	for _, test := range []struct {
		name  string
		o     *smart.Options
		state State
		says  string
		fix   string
	}{
		{"off", nil, Off, "turns disk health off", "smart: {enabled: true}"},
		{"missing", &smart.Options{Smartctl: "/nowhere/smartctl", Disks: disks("sdq")}, Missing, "/nowhere/smartctl",
			"smart.smartctl"},
		{"none", &smart.Options{Smartctl: doctor(t, each)}, Off, "This machine has no disk", ""},
		{"read", &smart.Options{Smartctl: doctor(t, each), Disks: disks("sdq")}, Seen,
			"The health of 1 of 1 disk can be read: sdq.", ""},
		{"some", &smart.Options{Smartctl: doctor(t, each), Disks: disks("sdq", "sdr", "sds")}, Limited,
			"The health of 1 of 3 disks can be read: sdq; sds sleeps and was not woken; not of sdr: not permitted", "stallspan health"},
		{"refused", &smart.Options{Smartctl: doctor(t, each), Disks: disks("sdr")}, Missing,
			"The health of 0 of 1 disk can be read; not of sdr: not permitted", "stallspan health"},
	} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, "sys/class/block"), 0o755); err != nil {
			t.Fatal(err)
		}
		found := (&machine{Options: Options{Root: root, Drives: test.o}, root: root}).health(t.Context())
		if f := found[0]; len(found) != 1 || f.State != test.state || !strings.Contains(f.Message, test.says) ||
			!strings.Contains(f.Fix, test.fix) || (f.Fix == "") != (test.fix == "") {
			t.Errorf("%s: got %+v, want %v, %q with the fix %q", test.name, found, test.state, test.says, test.fix)
		}
	}
}

// A disk that hangs does not block the check.
func TestHealthOfADiskThatHangs(t *testing.T) {
	o := &smart.Options{Smartctl: doctor(t, "exec sleep 60\n"), Disks: []smart.Disk{{Device: "/dev/sdq"}}}
	began := time.Now()
	f := (&machine{Options: Options{Root: t.TempDir(), Drives: o}}).health(t.Context())[0]
	if f.State != Missing && f.State != Limited || f.Fix == "" || time.Since(began) > 30*time.Second {
		t.Errorf("after %v: %+v", time.Since(began), f)
	}
}

func TestInstall(t *testing.T) {
	if got := install(); !strings.Contains(got, "smartmontools") {
		t.Errorf("got %s, want a command for smartmontools", got)
	}
	t.Setenv("PATH", t.TempDir())
	if got := install(); got != "install smartmontools 7.0 or later" {
		t.Errorf("got %s, want the version to install", got)
	}
}

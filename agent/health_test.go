package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/state/drives"
	"github.com/stallspan/stallspan/test/fixture"
)

// savedHealth writes the saved output of smartctl in a fixture to a file.
func savedHealth(t *testing.T, name string) string {
	t.Helper()
	archive, err := txtar.ParseFile(fixture.File(t, "smart", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name+".json")
	if err := os.WriteFile(path, archive.Files[0].Data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHealthFrom(t *testing.T) {
	wdc, hitachi := savedHealth(t, "ata-wdc-red"), savedHealth(t, "ata-hitachi-failed")
	v := stallspan(t, "health", "--from", wdc, "--from", hitachi)
	if code := v.run(); code != cli.ExitFailing || v.err.Len() > 0 {
		t.Errorf("exit code %d, %s", code, v.err.String())
	}
	out := v.out.String()
	if strings.Index(out, "FAILED") > strings.Index(out, "WD20EFRX") || !strings.Contains(out, "1975 reallocated") ||
		!strings.Contains(out, "Try: Back up") {
		t.Errorf("the table:\n%s", out)
	}
	for _, file := range []string{wdc, hitachi} {
		if joined := strings.ReplaceAll(out, "\n        ", ""); !strings.Contains(joined, "File: "+file+"\n") {
			t.Errorf("got\n%s, want the file %s", out, file)
		}
	}
	brief := stallspan(t, "health", "--brief", "--from", wdc, "--from", hitachi)
	brief.run()
	if got := brief.out.String(); strings.Count(got, "\n") != 3 || !strings.Contains(got, " ata-hitachi-failed.json ") ||
		!strings.Contains(got, " ata-wdc-red.json ") {
		t.Errorf("brief: got\n%s, want a heading and two lines with their files", got)
	}
	for _, line := range strings.Split(out, "\n") {
		if output.Columns(line) > 120 {
			t.Errorf("too wide: %q", line)
		}
	}
	if v := stallspan(t, "health", "--from", wdc); v.run() != 0 || strings.Contains(v.out.String(), "File:") {
		t.Errorf("a healthy disk: %s%s", v.out.String(), v.err.String())
	}
	if v := stallspan(t, "health", "--from", savedHealth(t, "refused-usb-bridge")); v.run() != cli.ExitFailed ||
		!strings.Contains(v.out.String(), "smart: {disks:") {
		t.Errorf("no disk was read: %s%s", v.out.String(), v.err.String())
	}
}

// The sample for those who have no drive at hand.
func TestHealthSample(t *testing.T) {
	v := stallspan(t, "health", "--from", "../examples/smart.json")
	if code := v.run(); code != 0 || !strings.Contains(v.out.String(), "degraded") ||
		!strings.Contains(v.out.String(), "Try: ") {
		t.Errorf("exit code %d, got\n%s%s, want a degraded drive and what to do", code, v.out.String(), v.err.String())
	}
}

func TestHealthJSON(t *testing.T) {
	v := stallspan(t, "health", "--json", "--from", "-")
	file, err := os.Open(savedHealth(t, "nvme-samsung"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	v.Stdin = file
	if code := v.run(); code != 0 {
		t.Errorf("exit code %d, %s", code, v.err.String())
	}
	var got struct {
		Disks []map[string]any `json:"disks"`
	}
	if err := json.Unmarshal(v.out.Bytes(), &got); err != nil || len(got.Disks) != 1 {
		t.Fatalf("%v: got %s, want one disk", err, v.out.String())
	}
	want := map[string]any{
		"device": "nvme0", "model": "Samsung SSD 970 EVO 500GB", "serial": "S466NX0M000001H", "protocol": "NVMe", "status": "degraded",
		"temperature_celsius": 35.0, "power_on_hours": 12798.0, "media_errors": 7.0, "critical_warning": 0.0, "available_spare": 99.0,
		"percentage_used": 3.0, "size_bytes": 500107862016.0,
	}
	disk := got.Disks[0]
	for key, value := range want {
		if disk[key] != value {
			t.Errorf("%s is %v, want %v", key, disk[key], value)
		}
		delete(disk, key)
	}
	delete(disk, "finding")
	delete(disk, "remedy")
	if len(disk) > 0 {
		t.Errorf("got a key that the drive does not report or docs/health.md does not have: %v", disk)
	}
}

func TestHealthRefuses(t *testing.T) {
	nonsense := filepath.Join(t.TempDir(), "nonsense.json")
	if err := os.WriteFile(nonsense, []byte("\x00\x01"), 0o600); err != nil {
		t.Fatal(err)
	}
	odd := filepath.Join(t.TempDir(), "odd\x1b[2J.json")
	if err := os.WriteFile(odd, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--from", nonsense}, cli.ExitFailed, "not smartctl's JSON"},
		{[]string{"--from", nonsense + ".none"}, cli.ExitFailed, "no such file"},
		{[]string{"--from", nonsense + "\x1b[2J\n.none"}, cli.ExitFailed, `\x1b[2J\n.none" cannot be read: no such file`},
		{[]string{"--from", odd}, cli.ExitFailed, `\x1b[2J.json": it is`},
		{[]string{"--from", filepath.Dir(nonsense)}, cli.ExitFailed, "is a directory"},
		{[]string{"--from", nonsense, "sda"}, cli.ExitUsage, "reads a file"},
		{[]string{"--type", "sat"}, cli.ExitUsage, "give one DEVICE"},
		{[]string{"/etc/passwd"}, cli.ExitUsage, "not the path of a disk"},
		{[]string{"../etc/passwd"}, cli.ExitUsage, "not the path of a disk"},
		{[]string{"--type", "sat;reboot", "sda"}, cli.ExitUsage, "not a type of disk"},
		{[]string{"--smartctl", "/nowhere/smartctl", "sda"}, cli.ExitFailed, "/nowhere/smartctl"},
		{[]string{"--forget", "sda"}, cli.ExitFailed, "there is no drive"},
	} {
		v := stallspan(t, append([]string{"health"}, c.args...)...)
		if code := v.run(); code != c.code || !strings.Contains(v.errorLine(), c.want) || v.out.Len() > 0 ||
			strings.Contains(v.err.String(), "\x1b") {
			t.Errorf("%q: exit code %d, %s%s", c.args, code, v.out.String(), v.err.String())
		}
	}
}

// One disk is read with a smartctl that answers.
func TestHealthAsks(t *testing.T) {
	folder := t.TempDir()
	script := "#!/bin/sh\ncat '" + savedHealth(t, "ata-seagate-barracuda") + "'\n"
	path := filepath.Join(folder, "smartctl")
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	v := stallspan(t, "health", "--smartctl", path, "sdq")
	if code := v.run(); code != 0 || !strings.Contains(v.out.String(), "sdq has 1 reallocated sector.") {
		t.Errorf("exit code %d: %s%s", code, v.out.String(), v.err.String())
	}
}

// An agent keeps the history of the disks in its config. A command without that config does not report them as missing.
func TestHealthAfterAgent(t *testing.T) {
	folder := t.TempDir()
	smartctl := filepath.Join(folder, "smartctl")
	if err := os.WriteFile(smartctl, []byte("#!/bin/sh\ncat '"+savedHealth(t, "ata-wdc-red")+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	config, state := filepath.Join(folder, "agent.yaml"), filepath.Join(folder, "baseline.json")
	text := "slow: {baseline: " + state + "}\nsmart: {smartctl: " + smartctl +
		", disks: [{device: /dev/sdq, type: \"megaraid,0\"}]}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h := drives.Open(drives.DefaultPath(state), drives.Boot(""), func(err error) { t.Error(err) })
	d := drives.Drive{ID: "naa.1", Device: "sdq", Model: "Gone", Serial: "1", Type: "megaraid,0", Protocol: "ATA"}
	h.Update([]drives.Drive{d}, drives.Listing{}, time.Now().Add(-time.Hour))
	v := stallspan(t, "health", "--config", config)
	if code := v.run(); code != cli.ExitFailing || !strings.Contains(v.out.String(), "VANISHED") ||
		!strings.Contains(v.out.String(), "WD20EFRX") {
		t.Errorf("with the config: exit code %d: %s%s", code, v.out.String(), v.err.String())
	}
	v = stallspan(t, "health", "--smartctl", smartctl, "--file", state)
	if code := v.run(); code != 0 || strings.Contains(v.out.String(), "VANISHED") {
		t.Errorf("without it: exit code %d: %s%s", code, v.out.String(), v.err.String())
	}
}

// A disk with a type in the agent's config vanishes for a command without that config, too.
func TestHealthVanished(t *testing.T) {
	if _, err := os.ReadDir("/sys/class/block"); err != nil {
		t.Skipf("needs the kernel's list of disks: %v", err)
	}
	folder := t.TempDir()
	smartctl, state := filepath.Join(folder, "smartctl"), filepath.Join(folder, "baseline.json")
	if err := os.WriteFile(smartctl, []byte("#!/bin/sh\necho '{}'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	h := drives.Open(drives.DefaultPath(state), drives.Boot(""), func(err error) { t.Error(err) })
	d := drives.Drive{ID: "naa.5000c50000000001", Device: "sdzzzz", Model: "Gone", Serial: "1", Type: "sat"}
	h.Update([]drives.Drive{d}, drives.Listing{}, time.Now().Add(-time.Hour))
	v := stallspan(t, "health", "--smartctl", smartctl, "--file", state)
	if code := v.run(); code != cli.ExitFailing || !strings.Contains(v.out.String(),
		"sdzzzz (Gone, serial 1) has vanished") {
		t.Errorf("exit code %d: %s%s", code, v.out.String(), v.err.String())
	}
}

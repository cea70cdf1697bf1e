package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/stallspan/stallspan/internal/fixture"
)

// savedHealth writes what smartctl printed in a fixture into a file.
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
	if code := v.run(); code != exitFailing || v.err.Len() > 0 {
		t.Errorf("exit code %d, %s", code, v.err.String())
	}
	out := v.out.String()
	if strings.Index(out, "FAILED") > strings.Index(out, "WD20EFRX") || !strings.Contains(out, "1975 reallocated") || !strings.Contains(out, "Try: Copy") {
		t.Errorf("the table:\n%s", out)
	}
	for _, line := range strings.Split(out, "\n") {
		if columns(line) > 120 {
			t.Errorf("too wide: %q", line)
		}
	}
	if v := stallspan(t, "health", "--from", wdc); v.run() != 0 {
		t.Errorf("a healthy disk: %s%s", v.out.String(), v.err.String())
	}
	if v := stallspan(t, "health", "--from", savedHealth(t, "refused-usb-bridge")); v.run() != exitFailed || !strings.Contains(v.out.String(), "smart: {disks:") {
		t.Errorf("no disk was read: %s%s", v.out.String(), v.err.String())
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
		t.Fatalf("%v: %s", err, v.out.String())
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
		t.Errorf("not told by the drive, or not in the contract: %v", disk)
	}
}

func TestHealthRefuses(t *testing.T) {
	nonsense := filepath.Join(t.TempDir(), "nonsense.json")
	if err := os.WriteFile(nonsense, []byte("\x00\x01"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--from", nonsense}, exitFailed, "not smartctl's JSON"},
		{[]string{"--from", nonsense + ".none"}, exitFailed, "no such file"},
		{[]string{"--from", nonsense, "sda"}, exitUsage, "reads a file"},
		{[]string{"--type", "sat"}, exitUsage, "name it"},
		{[]string{"/etc/passwd"}, exitUsage, "no path of a disk"},
		{[]string{"../etc/passwd"}, exitUsage, "no path of a disk"},
		{[]string{"--type", "sat;reboot", "sda"}, exitUsage, "no type of a disk"},
		{[]string{"--smartctl", "/nowhere/smartctl", "sda"}, exitFailed, "/nowhere/smartctl"},
		{[]string{"--forget", "sda"}, exitFailed, "nothing is known"},
	} {
		v := stallspan(t, append([]string{"health"}, c.args...)...)
		if code := v.run(); code != c.code || !strings.Contains(v.errorLine(), c.want) || v.out.Len() > 0 {
			t.Errorf("%q: exit code %d, %s%s", c.args, code, v.out.String(), v.err.String())
		}
	}
}

// One disk is asked by way of a smartctl that answers.
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

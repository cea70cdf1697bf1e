package monitor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/drives"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/smart"
)

// answers is a smartctl that prints a document of a drive that has so many reallocated sectors.
func answers(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skipf("needs /bin/sh to play smartctl: %v", err)
	}
	path := filepath.Join(t.TempDir(), "smartctl")
	text := `#!/bin/sh
n=$(cat "$0.count" 2>&1) || n=0
echo $((n + 1)) > "$0.count"
cat <<END
{"smartctl": {"version": [7, 4], "exit_status": 0}, "device": {"name": "/dev/sdq", "protocol": "ATA"},
 "model_name": "Example", "serial_number": "1", "smart_status": {"passed": true},
 "ata_smart_attributes": {"table": [{"id": 5, "name": "Reallocated_Sector_Ct", "raw": {"value": $n}}]}}
END
`
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// Drives are asked, judged by their history, and told in the snapshot and to listeners.
func TestDrives(t *testing.T) {
	history := filepath.Join(t.TempDir(), "drives.json")
	m, err := New(Config{Drives: &Drives{History: history, Ask: drives.Options{
		Smartctl: answers(t), Only: true, Disks: []drives.Disk{{Device: "/dev/sdq"}}, Every: 10 * time.Millisecond,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	rounds := make(chan sample.Drive, 100)
	defer m.OnDrives(func(all []sample.Drive) {
		if len(rounds) < cap(rounds) {
			rounds <- all[0]
		}
	})()
	m.Start()
	defer m.Stop()
	first, second := <-rounds, <-rounds
	if first.Status != sample.DriveOK || second.Status != sample.DriveFailing || !strings.Contains(second.Finding, "1 reallocated sector, all since") {
		t.Errorf("%+v, then %+v", first, second)
	}
	if now := m.Collect().Drives; len(now.Drives) != 1 || now.Drives[0].Device != "sdq" || now.At.Wall.IsZero() {
		t.Errorf("%+v", now)
	}
	if info, err := os.Stat(history); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// Without smartctl one line says so, unless nobody has asked for drives.
func TestDrivesWithoutSmartctl(t *testing.T) {
	for auto, want := range map[bool]int{true: 0, false: 1} {
		m, err := New(Config{Drives: &Drives{Auto: auto, Ask: drives.Options{
			Smartctl: "/nowhere/smartctl", Only: true, Disks: []drives.Disk{{Device: "/dev/sdq"}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		source, err := smart.New(m.health.config.Ask)
		if err != nil {
			t.Fatal(err)
		}
		all, err := source.Round(t.Context())
		m.takeDrives("smart", &sample.Sample{At: sample.Now(), Drives: all}, err)
		n := 0
		for _, p := range m.Problems() {
			if strings.HasPrefix(p.Error(), "smart: ") {
				n++
			}
		}
		if n != want {
			t.Errorf("auto %v: %v", auto, m.Problems())
		}
		m.Stop()
	}
}

//go:build linux && (amd64 || arm64)

package receiver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/confmap"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/monitor"
)

// The section smart reaches the monitor, if it asks for drives: smartctl is started for them.
func TestSmartConfig(t *testing.T) {
	disks := []any{map[string]any{"device": "/dev/sda"}}
	for _, test := range []struct {
		values        map[string]any
		enabled, disk bool
	}{
		{map[string]any{}, false, false},
		{map[string]any{"smart": nil}, false, false},
		{map[string]any{"smart": map[string]any{}}, false, false},
		{map[string]any{"smart": map[string]any{"enabled": false}}, false, false},
		{map[string]any{"smart": map[string]any{"sudo": true, "smartctl": "/usr/sbin/smartctl", "disks": disks}}, false, false},
		{map[string]any{"smart": map[string]any{"enabled": true}}, true, false},
		{map[string]any{"smart": map[string]any{"enabled": true, "sudo": true, "disks": disks}}, true, true},
	} {
		c, err := read(confmap.NewFromStringMap(test.values))
		if err != nil {
			t.Errorf("%v: got error %v, want none", test.values, err)
			continue
		}
		d := c.monitorConfig().Drives
		if (d != nil) != test.enabled || d != nil && (d.Auto || (len(d.Ask.Disks) == 1) != test.disk ||
			test.disk && (d.Ask.Disks[0].Off || !d.Ask.Sudo)) {
			t.Errorf("%v: got %+v, want %+v", test.values, d, test)
		}
	}
}

// TestDrives runs a receiver with a smartctl that reports a failing disk. The disk has metrics and a log record, and an
// excluded disk has none.
func TestDrives(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skipf("needs /bin/sh to play smartctl: %v", err)
	}
	smartctl := filepath.Join(t.TempDir(), "smartctl")
	script := `#!/bin/sh
for device; do :; done
cat <<END
{"smartctl": {"version": [7, 4], "exit_status": 0}, "device": {"name": "$device", "protocol": "ATA"},
 "model_name": "Example $device", "serial_number": "1", "smart_status": {"passed": false}, "temperature": {"current": 31},
 "ata_smart_attributes": {"table": [{"id": 5, "name": "Reallocated_Sector_Ct", "raw": {"value": 312}}]}}
END
`
	if err := os.WriteFile(smartctl, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	c := laboratory(t)
	if err := confmap.NewFromStringMap(map[string]any{
		"smart": map[string]any{"enabled": true, "smartctl": smartctl,
			"disks": []any{map[string]any{"device": "/dev/sdq"}, map[string]any{"device": "/dev/sdr"}}},
		"disks": map[string]any{"exclude": []any{map[string]any{"strict": "sdr"}}},
	}).Unmarshal(c); err != nil {
		t.Fatal(err)
	}
	p := in(t, NewFactory(), settings(), c, "metrics", "logs")
	p.start(t)
	metrics, records := "", ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end) &&
		(metrics == "" || records == ""); time.Sleep(10 * time.Millisecond) {
		for _, m := range p.AllMetrics() {
			if got := text(m); strings.Contains(got, "hw.physical_disk.smart") {
				metrics = got
			}
		}
		p.MetricsSink.Reset()
		for _, all := range p.AllLogs() {
			for _, r := range all.ResourceLogs().All() {
				for _, s := range r.ScopeLogs().All() {
					for _, l := range s.LogRecords().All() {
						if l.EventName() == "stallspan.disk.health" {
							records += l.Body().AsString() + attributes(l.Attributes()) + "\n"
						}
					}
				}
			}
		}
	}
	for _, want := range []string{"hw.physical_disk.smart Gauge", "Reallocated Sectors Count", "= 312 1\n",
		"error.type=reallocated_sector", "hw.state=failed", "system.device.name=sdq"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %q: %s", want, metrics)
		}
	}
	if strings.Contains(metrics, "sdr") {
		t.Errorf("of a disk that is left out: %s", metrics)
	}
	if !strings.Contains(records, "sdq") || !strings.Contains(records, "reports that it is failing") {
		t.Errorf("log records: got %s, want one of sdq", records)
	}
}

// A missing smartctl is a problem: the config asks for it.
func TestDrivesWithoutSmartctl(t *testing.T) {
	on := true
	c := laboratory(t)
	c.Smart = &config.Smart{Enabled: &on, Smartctl: "/nowhere/smartctl", Disks: []config.Disk{{Device: "/dev/sdq"}}}
	p := in(t, NewFactory(), settings(), c, "metrics")
	p.start(t)
	said := false
	for end := time.Now().Add(time.Minute); !said && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		said = problems(p)
	}
	if !said {
		t.Error("got no problem of smartctl, want one")
	}
	p.stop(t)
}

func problems(*pipelines) bool {
	share := monitor.Join()
	m, err := share.Start()
	defer share.Stop()
	if err != nil {
		return false
	}
	for _, problem := range m.Problems() {
		if strings.Contains(problem.Error(), "smartctl") {
			return true
		}
	}
	return false
}

// What the pages show of disks is understood, by the keys that the agent has.
func TestSmartOfThePages(t *testing.T) {
	for page, key := range map[string]string{"health.md": "smart"} {
		text, err := os.ReadFile(filepath.Join("..", "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		tried := 0
		for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
			block, _, _ = strings.Cut(block, "```")
			retrieved, err := confmap.NewRetrievedFromYAML([]byte(block))
			if err != nil {
				t.Fatal(err)
			}
			conf, err := retrieved.AsConf()
			if err != nil || !conf.IsSet(key) {
				continue
			}
			c, err := read(confmap.NewFromStringMap(map[string]any{"smart": conf.Get(key)}))
			if err != nil || c.Smart == nil || len(c.Smart.Disks) < 2 {
				t.Errorf("%s: got %+v, %v, want at least two disks", page, c, err)
			}
			tried++
		}
		if tried == 0 {
			t.Errorf("%s shows nothing of %s", page, key)
		}
	}
}

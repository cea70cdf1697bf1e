package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	logpb "go.opentelemetry.io/proto/otlp/logs/v1"

	"github.com/stallspan/stallspan/agent/internal/events"
	"github.com/stallspan/stallspan/test/fixture"
)

// ailing is a machine with two disks and a smartctl in a folder of its own. The files next to it are its answers.
type ailing struct{ root, folder, config string }

func newAiling(t *testing.T) *ailing {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skipf("needs /bin/sh to play smartctl: %v", err)
	}
	a := &ailing{root: fixture.Root(t, "check_server"), folder: t.TempDir()}
	fixture.Write(t, a.root, "sys/class/block/sda/size", []byte("1000\n"))
	script := "#!/bin/sh\nfor device; do :; done\ncat \"${0%/*}/${device#/dev/}.json\"\n"
	if err := os.WriteFile(filepath.Join(a.folder, "smartctl"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	a.config = filepath.Join(a.folder, "agent.yaml")
	text := "sampling: {root_path: " + a.root + "}\nslow: {baseline: " + filepath.Join(a.folder, "baseline.json") + "}\n"
	if err := os.WriteFile(a.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a.has(t, "sda", 0)
	a.has(t, "nvme0n1", 0)
	return a
}

// has sets the number of media errors of a disk.
func (a *ailing) has(t *testing.T, disk string, errors int) {
	t.Helper()
	fixture.Write(t, a.folder, disk+".json", fmt.Appendf(nil, `{"smartctl": {"version": [7, 4], "exit_status": 0},
 "device": {"name": "/dev/%s", "protocol": "NVMe"}, "model_name": "Example %[1]s", "serial_number": "S-%[1]s", "firmware_version": "1.0",
 "smart_status": {"passed": true}, "nvme_smart_health_information_log": {"critical_warning": 0, "temperature": 41, "available_spare": 100,
 "available_spare_threshold": 10, "percentage_used": 3, "media_errors": %d, "power_on_hours": 1000}}`, disk, errors))
}

// watched runs an agent until it has reported the wanted event, and returns its events.
func (a *ailing) watched(t *testing.T, b *backend, until string) (shown []events.Shown) {
	t.Helper()
	socket := socketIn(t)
	v := stallspan(t, "agent", "--config", a.config)
	var said liveOutput
	v.Stderr = &said
	v.Env = append(v.Env, "STALLSPAN_SOCKET="+socket, "PATH="+a.folder+":"+os.Getenv("PATH"),
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://"+b.address, "OTEL_METRIC_EXPORT_INTERVAL=100")
	v.start()
	said.until(t, 1, "windows are announced at "+socket)
	show := stallspan(t, "events", "--json")
	show.Env = append(show.Env, "STALLSPAN_SOCKET="+socket)
	var out liveOutput
	show.Stdout = &out
	show.start()
	if until != "" {
		out.until(t, 1, until)
	} else {
		b.until(t, "hw.status")
	}
	stop(t, v)
	_ = show.wait() // its agent has ended
	for line := range strings.Lines(out.String()) {
		var e events.Shown
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		shown = append(shown, e)
	}
	return shown
}

// until returns when a metric of drives has arrived.
func (b *backend) until(t *testing.T, metric string) {
	t.Helper()
	for end := time.Now().Add(slowest / 2); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		b.mu.Lock()
		for _, r := range b.metrics {
			for _, s := range r.ScopeMetrics {
				for _, m := range s.Metrics {
					if m.Name == metric {
						b.mu.Unlock()
						return
					}
				}
			}
		}
		b.mu.Unlock()
	}
	t.Fatalf("no %s came", metric)
}

// TestDriveFailsAndVanishes follows a drive over three runs of an agent: it is healthy, its
// media errors grow, it vanishes. Each change becomes an event and a log record. The other drive has no events.
func TestDriveFailsAndVanishes(t *testing.T) {
	t.Parallel()
	a, b := newAiling(t), serveBackend(t)
	if shown := a.watched(t, b, ""); len(shown) != 0 {
		t.Errorf("of drives that are well: %+v", shown)
	}
	a.has(t, "nvme0n1", 12)
	failing := a.watched(t, b, "stallspan.disk.health")
	if err := os.RemoveAll(filepath.Join(a.root, "sys/class/block/nvme0n1")); err != nil {
		t.Fatal(err)
	}
	gone := a.watched(t, b, "stallspan.disk.health")
	records := b.records("stallspan.disk.health")
	if len(failing) != 1 || len(gone) != 1 || len(records) != 2 {
		t.Fatalf("shown %+v, then %+v; %d records", failing, gone, len(records))
	}
	for i, want := range []struct{ says, state string }{{"nvme0n1 has 12 media errors, all since ", "predicted_failure"},
		{"has disappeared from the machine", "failed"}} {
		e := []events.Shown{failing[0], gone[0]}[i]
		r := records[i]
		got := attributes(r.Attributes)
		if e.Name != "stallspan.disk.health" || e.Severity != "ERROR" || e.Attributes["hw.state"] != want.state ||
			e.Attributes["hw.id"] != "Example_nvme0n1_S-nvme0n1" || e.Attributes["system.device.name"] != "nvme0n1" {
			t.Errorf("shown: %+v", e)
		}
		if r.SeverityNumber != logpb.SeverityNumber_SEVERITY_NUMBER_ERROR ||
			!strings.Contains(r.Body.GetStringValue(), want.says) ||
			got["hw.state"] != want.state || got["hw.id"] != "Example_nvme0n1_S-nvme0n1" ||
			got["hw.model"] != "Example nvme0n1" {
			t.Errorf("record: %s %+v", r.Body.GetStringValue(), got)
		}
	}
}

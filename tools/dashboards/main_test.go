package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

const root = "../.."

// registered returns the registry without the omitted files.
func registered(t *testing.T, without ...string) *registry {
	t.Helper()
	folder, kept := os.DirFS(filepath.Join(root, "semconv/registry")), fstest.MapFS{}
	paths, err := fs.Glob(folder, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := fs.ReadFile(folder, path)
		if err != nil {
			t.Fatal(err)
		}
		kept[path] = &fstest.MapFile{Data: text}
	}
	for _, path := range without {
		delete(kept, path)
	}
	r, err := load(kept)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func written(t *testing.T, r *registry) map[string][]byte {
	t.Helper()
	files, err := outputs(r)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The committed files must equal the generated ones, and existing must be no others.
func TestOutputsAreUpToDate(t *testing.T) {
	files := written(t, registered(t))
	for path, want := range files {
		got, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the registry says: run go generate ./semconv", path)
		}
	}
	existing, err := filepath.Glob(filepath.Join(root, "docs/grafana/*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range existing {
		if files["docs/grafana/"+filepath.Base(path)] == nil {
			t.Errorf("%s is not generated any more: remove it", path)
		}
	}
}

// Names that are not registered are left out; the rest stays.
func TestWithoutDrives(t *testing.T) {
	r := registered(t)
	values := r.attributes["hw.type"].values
	r.attributes["hw.type"].values = []string{"gpu"}
	defer func() { r.attributes["hw.type"].values = values }()
	files := written(t, r)
	if files["docs/grafana/disk-health.json"] != nil {
		t.Error("boards without registered drives: got a dashboard of drives, want none")
	}
	rules := string(files["docs/prometheus/rules.yaml"])
	for name, want := range map[string]bool{"StallspanDiskFailing": false, "StallspanDiskFailed": false,
		"StallspanDiskSaturated": true} {
		if got := strings.Contains(rules, name); got != want {
			t.Errorf("rules contain %s: got %v, want %v", name, got, want)
		}
	}
}

func TestWithoutSMART(t *testing.T) {
	files := written(t, registered(t, "drive.yaml"))
	text := string(files["docs/grafana/disk-health.json"])
	if strings.Contains(text, "smart") || !strings.Contains(text, "hw_status") {
		t.Errorf("the dashboard is not made of what is registered: %.2000s", text)
	}
}

func TestGenerate(t *testing.T) {
	folder := t.TempDir()
	if err := generate(folder); err == nil {
		t.Error("an empty folder passed for the repository")
	}
	if err := os.CopyFS(filepath.Join(folder, "semconv/registry"),
		os.DirFS(filepath.Join(root, "semconv/registry"))); err != nil {
		t.Fatal(err)
	}
	if err := generate(folder); err == nil {
		t.Error("no docs folder to write to, and no error")
	}
	for _, path := range []string{"docs/prometheus", "docs/grafana", "deploy/helm/stallspan/files", "semconv/testdata"} {
		if err := os.MkdirAll(filepath.Join(folder, path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := generate(folder); err != nil {
		t.Fatal(err)
	}
}

func TestExpandRefusesWhatIsNotRegistered(t *testing.T) {
	r := registered(t)
	for _, text := range []string{
		"rate(<stallspan.gpu.busy.tmie>[5m])", "<hw.state=borken>", "<hw.state=~failed|borken>", "<host.nam=x>",
		"<span.stallspan.slwo>", "<span.host.id>", "<resource.hw.id>", "<stallspan.model.load.duration>", "<stallspan.gpu.busy.time_sum>",
	} {
		if got, err := r.expand(text); err == nil {
			t.Errorf("%s became %s", text, got)
		}
	}
	for text, want := range map[string]string{
		"a < b or c <= d and e <bool f":                      "a < b or c <= d and e <bool f",
		"<stallspan.gpu.busy.time>{<hw.id=~$gpu>} < 1":       `stallspan_gpu_busy_time_seconds_total{hw_id=~"$gpu"} < 1`,
		"{<hw.state!~failed|ok>, <error.type=~xid_1|crc>}":   `{hw_state!~"failed|ok", error_type=~"xid_1|crc"}`,
		"<stallspan.model.load.duration_sum>":                "stallspan_model_load_duration_seconds_sum",
		"{ <span.stallspan.window.gpu.busy.time> > 1 }":      "{ span.stallspan.window.gpu.busy.time > 1 }",
		"<resource.host.name>":                               "resource.host.name",
		"sum by (<host.name>) (<system.disk.io>) offset 10m": "sum by (host_name) (system_disk_io_bytes_total) offset 10m",
	} {
		if got, err := r.expand(text); err != nil || got != want {
			t.Errorf("%s became %s, not %s: %v", text, got, want, err)
		}
	}
}

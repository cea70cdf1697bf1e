//go:build linux && (amd64 || arm64)

package receiver

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/filter"

	"github.com/stallspan/stallspan/internal/config"
)

// read is what the Collector does with a receiver's YAML.
func read(values *confmap.Conf) (*Config, error) {
	c, _ := createDefaultConfig().(*Config)
	if err := values.Unmarshal(c); err != nil {
		return nil, err
	}
	return c, confmap.Validate(c)
}

func TestConfig(t *testing.T) {
	file, err := confmaptest.LoadConf("testdata/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defaults, _ := createDefaultConfig().(*Config)
	if defaults.CollectionInterval != 10*time.Second || defaults.Sampling.Interval != 100*time.Millisecond {
		t.Errorf("defaults: got %+v, want 10 s and 100 ms", defaults)
	}
	all, _ := createDefaultConfig().(*Config)
	all.CollectionInterval, all.InitialDelay, all.Timeout = 30*time.Second, 2*time.Second, 5*time.Second
	all.Sampling = config.Sampling{Interval: 50 * time.Millisecond, RootPath: "/hostfs",
		NVML: "/usr/lib/libnvidia-ml.so.1", Cgroups: []string{"/kubepods.slice/**"}, PodResources: "/run/kubelet.sock"}
	all.Slow = config.Slow{Baseline: "/var/lib/otelcol/stallspan.db", Factor: 2, Load: 30 * time.Second,
		Epoch: 10 * time.Minute}
	all.Spans = config.Spans{SlowStatus: config.StatusError, Names: config.NamesIndexed, Page: "http://gpu1:4319/"}
	on, off := true, false
	all.Smart = &config.Smart{Smartctl: "/usr/sbin/smartctl", Sudo: true, Disks: []config.Disk{
		{Device: "/dev/sda", Type: "sat+megaraid,0"}, {Device: "/dev/sdb", Enabled: &off}}}
	all.Metrics = config.Metrics{
		"system.disk.io": {Enabled: &off}, "system.disk.merged": {Enabled: &on},
		"system.cpu.time": {}, "system.disk.operations": {}}
	all.Disks.Include = []filter.Config{{Strict: "sda"}, {Regex: "^nvme"}}
	all.Disks.Exclude = []filter.Config{{Regex: `n1p\d+$`}}
	all.GPUs.Exclude = []filter.Config{{Strict: "0"}}
	all.Socket, all.Endpoint = "/run/stallspan/other.sock", "localhost:4319"
	for id, want := range map[string]*Config{"stallspan": defaults, "stallspan/all": all} {
		values, err := file.Sub(id)
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(values)
		if err != nil {
			t.Errorf("%s: got error %v, want none", id, err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(*want, want.ControllerConfig, filter.Config{})); diff != "" {
			t.Errorf("%s: want -, got +\n%s", id, diff)
		}
	}
	want := []string{"process.disk.io", "system.cpu.utilization", "system.disk.io"}
	if got := all.Metrics.Disabled(); !reflect.DeepEqual(got, want) {
		t.Errorf("disabled metrics: got %v, want system.disk.io and what is off by default", got)
	}
}

// What the page for users shows works as it stands.
func TestReadme(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, found := strings.Cut(text, "```")
	if !found {
		t.Fatal("no config")
	}
	retrieved, err := confmap.NewRetrievedFromYAML([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	all, err := retrieved.AsConf()
	if err != nil {
		t.Fatal(err)
	}
	values, err := all.Sub("receivers::stallspan")
	if err != nil {
		t.Fatal(err)
	}
	if c, err := read(values); err != nil || len(c.Metrics.Disabled()) != 3 || len(c.Disks.Exclude) != 2 {
		t.Errorf("config of the README: got %+v, %v, want three disabled metrics and two excluded disks", c, err)
	}
}

func TestWrongConfig(t *testing.T) {
	type m = map[string]any
	for _, test := range []struct {
		want   string
		values m
	}{
		{"invalid keys: colection_interval", m{"colection_interval": "10s"}},
		{"invalid keys: intervall", m{"sampling": m{"intervall": "10s"}}},
		{`"collection_interval": requires positive value`, m{"collection_interval": "0s"}},
		{"sampling: interval: the sampling interval is 2s: choose one from 10ms to 1s", m{"sampling": m{"interval": "2s"}}},
		{`sampling: cgroups[1]: "/b[" is no pattern of cgroups`, m{"sampling": m{"cgroups": []string{"a", "/b["}}}},
		{"sampling: interval: the sampling interval is 0s", m{"sampling": m{"interval": "0s"}}},
		{`sampling: root_path: "hostfs" does not begin with /`, m{"sampling": m{"root_path": "hostfs"}}},
		{"invalid duration", m{"sampling": m{"interval": "soon"}}},
		{`metrics: there is no metric "system.disk.oi"`, m{"metrics": m{"system.disk.oi": m{"enabled": false}}}},
		{"invalid keys: disabled", m{"metrics": m{"system.disk.io": m{"disabled": true}}}},
		{"metrics", m{"metrics": m{"system.disk.io": "off"}}},
		{"disks::exclude::1: error parsing regexp: missing closing ]",
			m{"disks": m{"exclude": []any{m{"strict": "sda"}, m{"regexp": "["}}}}},
		{"gpus::include::0: must specify either strict or regex", m{"gpus": m{"include": []any{m{}}}}},
		{"gpus::include::0: strict and regex cannot be used together",
			m{"gpus": m{"include": []any{m{"strict": "a", "regexp": "b"}}}}},
		{"invalid keys: smartcl", m{"smart": m{"smartcl": "x"}}},
		{"smart: disks[0]: a disk needs a device", m{"smart": m{"disks": []any{m{"type": "sat"}}}}},
		{`smart: disks[1]: "/dev/sda; reboot" is not the path of a disk`,
			m{"smart": m{"disks": []any{m{"device": "/dev/sdb"}, m{"device": "/dev/sda; reboot"}}}}},
		{`"-x" is not a type of disk`, m{"smart": m{"disks": []any{m{"device": "/dev/sdb", "type": "-x"}}}}},
		{`slow_status: "ok" is unknown: choose unset or error`, m{"slow_status": "ok"}},
		{`span_names: "x" is unknown: choose grouped or indexed`, m{"span_names": "x"}},
		{`the endpoint "here" is not a port`, m{"endpoint": "here"}},
	} {
		if _, err := read(confmap.NewFromStringMap(test.values)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: got %v, want %q", test.values, err, test.want)
		}
	}
}

package receiver

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/filter"

	"github.com/stallspan/stallspan/internal/monitor"
)

// read is what the Collector does with a receiver's YAML.
func read(values *confmap.Conf) (*Config, error) {
	c, _ := defaultConfig().(*Config)
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
	defaults, _ := defaultConfig().(*Config)
	if defaults.CollectionInterval != 10*time.Second || defaults.Sampling.Interval != 100*time.Millisecond {
		t.Errorf("%+v", defaults)
	}
	all, _ := defaultConfig().(*Config)
	all.CollectionInterval, all.InitialDelay, all.Timeout = 30*time.Second, 2*time.Second, 5*time.Second
	all.Sampling = SamplingConfig{50 * time.Millisecond, "/hostfs", "/usr/lib/libnvidia-ml.so.1"}
	all.Slow = monitor.Slow{Baseline: "/var/lib/otelcol/stallspan.db", Factor: 2, Load: 30 * time.Second, Epoch: 10 * time.Minute}
	all.Smart = SmartConfig{Enabled: true, Smartctl: "/usr/sbin/smartctl", Sudo: true, given: true, Disks: []SmartDisk{
		{Device: "/dev/sda", Type: "sat+megaraid,0", Enabled: true}, {Device: "/dev/sdb"}}}
	all.Metrics = map[string]MetricConfig{"system.disk.io": {false}, "system.disk.merged": {true}, "system.cpu.time": {true}, "system.disk.operations": {true}}
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
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", id, err, got, want)
		}
	}
	if got := all.disabled(); !reflect.DeepEqual(got, []string{"system.disk.io"}) {
		t.Error(got)
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
	if c, err := read(values); err != nil || len(c.disabled()) != 1 || len(c.Disks.Exclude) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestWrongConfig(t *testing.T) {
	type m = map[string]any
	for _, test := range []struct {
		says   string
		values m
	}{
		{"invalid keys: colection_interval", m{"colection_interval": "10s"}},
		{"invalid keys: intervall", m{"sampling": m{"intervall": "10s"}}},
		{`"collection_interval": requires positive value`, m{"collection_interval": "0s"}},
		{"sampling::interval: the sampling interval is 2s: choose one from 10ms to 1s", m{"sampling": m{"interval": "2s"}}},
		{"sampling::interval: the sampling interval is 0s", m{"sampling": m{"interval": "0s"}}},
		{`sampling::root_path: "hostfs" does not begin with /`, m{"sampling": m{"root_path": "hostfs"}}},
		{"invalid duration", m{"sampling": m{"interval": "soon"}}},
		{`metrics: there is no metric "system.disk.oi": did you mean system.disk.io?`, m{"metrics": m{"system.disk.oi": m{"enabled": false}}}},
		{"invalid keys: disabled", m{"metrics": m{"system.disk.io": m{"disabled": true}}}},
		{"metrics", m{"metrics": m{"system.disk.io": "off"}}},
		{"disks::exclude::1: error parsing regexp: missing closing ]", m{"disks": m{"exclude": []any{m{"strict": "sda"}, m{"regexp": "["}}}}},
		{"gpus::include::0: must specify either strict or regex", m{"gpus": m{"include": []any{m{}}}}},
		{"gpus::include::0: strict and regex cannot be used together", m{"gpus": m{"include": []any{m{"strict": "a", "regexp": "b"}}}}},
		{"invalid keys: smartcl", m{"smart": m{"smartcl": "x"}}},
		{"smart::disks::0: a disk has a device", m{"smart": m{"disks": []any{m{"type": "sat"}}}}},
		{`smart::disks::1: "/dev/sda; reboot" is no path of a disk`, m{"smart": m{"disks": []any{m{"device": "/dev/sdb"}, m{"device": "/dev/sda; reboot"}}}}},
		{`"-x" is no type of a disk`, m{"smart": m{"disks": []any{m{"device": "/dev/sdb", "type": "-x"}}}}},
		{`the endpoint "here" is no port`, m{"endpoint": "here"}},
	} {
		if _, err := read(confmap.NewFromStringMap(test.values)); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%v: %v, want %q", test.values, err, test.says)
		}
	}
}

package agentconfig

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/state/baseline"
	"github.com/stallspan/stallspan/internal/state/drives"
	"github.com/stallspan/stallspan/internal/store"
)

func TestConfig(t *testing.T) {
	c, err := Parse([]byte(`
socket: /run/x.sock
endpoint: 4319
sampling:
  interval: 50ms
  root_path: /hostfs
  nvml: /usr/lib/libnvidia-ml.so.1
  cgroups: [/kubepods.slice/**]
  pod_resources: "off"
slow:
  baseline: /var/lib/x.db
  factor: 2
  load: 30s
  epoch: 10m
slow_status: error
span_names: indexed
page_url: http://gpu1:4319/
smart:
  enabled: true
  sudo: true
  disks:
    - device: /dev/sda
      type: sat
    - {device: /dev/sdb, enabled: false}
metrics:
  system.disk.io: {enabled: false}
  system.disk.merged: {enabled: true}
  system.cpu.time:
`))
	if err != nil {
		t.Fatal(err)
	}
	on, off := true, false
	want := &Config{
		Socket: "/run/x.sock", Endpoint: "4319",
		Sampling: config.Sampling{Interval: 50 * time.Millisecond, RootPath: "/hostfs", NVML: "/usr/lib/libnvidia-ml.so.1",
			Cgroups: []string{"/kubepods.slice/**"}, PodResources: config.Off},
		Slow:  config.Slow{Baseline: "/var/lib/x.db", Factor: 2, Load: 30 * time.Second, Epoch: 10 * time.Minute},
		Spans: config.Spans{SlowStatus: config.StatusError, Names: config.NamesIndexed, Page: "http://gpu1:4319/"},
		Smart: &config.Smart{Enabled: &on, Sudo: true, Disks: []config.Disk{
			{Device: "/dev/sda", Type: "sat"}, {Device: "/dev/sdb", Enabled: &off}}},
		Metrics: config.Metrics{"system.disk.io": {Enabled: &off}, "system.disk.merged": {Enabled: &on},
			"system.cpu.time": {}},
	}
	if diff := cmp.Diff(want, c, cmp.AllowUnexported(Config{})); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	disabled := []string{"process.disk.io", "system.cpu.utilization", "system.disk.io"}
	if got := c.Metrics.Disabled(); !slices.Equal(got, disabled) {
		t.Errorf("got disabled %q, want %q", got, disabled)
	}
	if m := c.Monitor(); m.Slow != want.Slow || m.Interval != want.Sampling.Interval || m.Drives == nil || m.Drives.Auto {
		t.Errorf("got %+v, want the settings of the file", m)
	}
	for _, text := range []string{"slow: {baseline: off}", `slow: {baseline: ""}`} {
		if c, err := Parse([]byte(text)); err != nil || c.Slow.HasBaseline() {
			t.Errorf("%s: got %+v, %v; want no baseline", text, c, err)
		}
	}
}

func TestConfigDefaults(t *testing.T) {
	path, err := baseline.DefaultPath()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "# nothing\n", "sampling:\n", "smart:\n", "---\n", "slow: {baseline: }"} {
		c, err := Parse([]byte(text))
		if err != nil || !reflect.DeepEqual(c, Default()) {
			t.Errorf("%q: got %+v, %v; want the defaults", text, c, err)
			continue
		}
		m := c.Monitor()
		if m.Interval != 100*time.Millisecond || m.Slow != (config.Slow{Baseline: path}) || m.Drives == nil ||
			!m.Drives.Auto {
			t.Errorf("%q: got %+v, want 100 ms, %s and drives if smartctl exists", text, m, path)
		}
	}
}

// The duration 0 needs no unit.
func TestConfigZero(t *testing.T) {
	c, err := Parse([]byte(`
slow: {load: 0, epoch: 0, factor: 2}
actions:
  - exec: {command: [/bin/true], timeout: 0, per_minute: 3}
`))
	if err != nil || c.Slow.Load != 0 || c.Slow.Epoch != 0 || c.Slow.Factor != 2 || c.Actions[0].Exec.PerMinute != 3 {
		t.Errorf("got %+v, %v; want no limits and no error", c, err)
	}
	_, err = Parse([]byte("slow: {load: 0, epoch: 5}"))
	if err == nil || !strings.Contains(err.Error(), `"5" is a duration without a unit`) {
		t.Errorf("got %v, want an error for 5", err)
	}
}

func TestWrongConfig(t *testing.T) {
	for text, want := range map[string]string{
		"sockett: x":                                    `line 1: there is no key "sockett" here: did you mean socket?`,
		"slow: {load: 5}":                               `line 1: "5" is a duration without a unit: write 5ms or 5s`,
		"slow:\n  epoch: 1.5":                           `line 2: "1.5" is a duration without a unit: write 1.5ms or 1.5s`,
		"sampling: {interval: soon}":                    `line 1: "soon" is not a duration, like 100ms`,
		"sampling: {interval: 0s}":                      "sampling: interval: the sampling interval is 0s: choose one from 10ms to 1s",
		"sampling: {root_path: x}":                      `sampling: root_path: "x" does not begin with /`,
		"sampling: {cgroups: [a, '/b[']}":               `sampling: cgroups[1]: "/b[" is no pattern of cgroups`,
		"sampling:\n  intervall: 1s":                    "line 2: there is no key \"intervall\" here: did you mean interval?",
		"sampling: 5":                                   `line 1: "5" is not a mapping`,
		"slow: {factor: 0.5}":                           "slow: factor: the factor of slow windows is 0.5: choose one from 1 to 1000",
		"slow: {factor: .nan}":                          "choose one from 1 to 1000",
		"slow: {factor: fast}":                          `"fast" is not a number, like 1.5`,
		"slow: {load: -1s}":                             "slow: load: -1s is negative",
		"slow: {load: 100ns}":                           "a unit is missing",
		"slow: {baseline: x.db}":                        `slow: baseline: the file of baselines is "x.db": give its absolute path`,
		"slow_status: ok":                               `slow_status: "ok" is unknown: choose unset or error`,
		"span_names: x":                                 `span_names: "x" is unknown: choose grouped or indexed`,
		"smart: {disks: [{}]}":                          "smart: disks[0]: a disk needs a device",
		"smart: {disks: sda}":                           `line 1: "sda" is not a list of disks`,
		"- a":                                           "a list is not a mapping",
		"zzz: 1":                                        "stallspan docs agent lists the keys",
		"socket: [a]":                                   "a list is not text",
		"socket: {a: b}":                                "a mapping is not text",
		"metrics: {system.disk.oi: {enabled: false}}":   `metrics: there is no metric "system.disk.oi": stallspan docs metrics`,
		"metrics: {system.disk.io: {enabled: maybe}}":   `"maybe" is not true or false`,
		"metrics: {system.disk.io: {disabled: true}}":   "did you mean enabled?",
		"metrics: {system.disk.io: false}":              "not a mapping",
		"metrics: {system.disk.io: {enabled: [no]}}":    "a list is not true or false",
		"socket: a\nsocket: b":                          `"socket" already defined at line 1`,
		"socket: a\n---\nsocket: b":                     "more than one YAML document",
		"socket: a\n--- [":                              "more than one YAML document",
		"a: [":                                          "not valid YAML",
		"a: &a [*a]":                                    "",
		"socket: \x00":                                  "not valid YAML",
		"metrics: {system.disk.io: &x {enabled: *y}}":   "not valid YAML",
		"endpoint: here":                                `"here" is not a port`,
		"metrics: &m {system.disk.io: {enabled: [no]}}": "a list is not true or false",
	} {
		_, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want one line with %q", text, err, want)
		}
	}
}

func TestConfigFile(t *testing.T) {
	huge := filepath.Join(t.TempDir(), "huge")
	if err := os.WriteFile(huge, make([]byte, MaxSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/nowhere/c.yaml": "there is no config /nowhere/c.yaml: correct --config", huge: "is it the right file?", t.TempDir(): "directory",
	} {
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}

func FuzzConfig(f *testing.F) {
	for _, text := range []string{
		"socket: a", "sampling: {interval: 1s}", "metrics: {a: {enabled: no}}", "a: &a [*a]", "{<<: {socket: x}}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := Parse(text); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("got %q, want one line", err)
		}
	})
}

func TestHealthConfig(t *testing.T) {
	c, err := Parse([]byte(`smart:
  sudo: true
  disks:
    - {device: /dev/sda, type: "sat+megaraid,3"}
    - {device: /dev/sdb, enabled: false}
`))
	if err != nil {
		t.Fatal(err)
	}
	slow := config.Slow{Baseline: "/var/lib/stallspan/baseline.json"}
	want := &monitor.Drives{History: "/var/lib/stallspan/drives.json",
		Ask: drives.Options{Sudo: true, Disks: []drives.Disk{
			{Device: "/dev/sda", Type: "sat+megaraid,3"}, {Device: "/dev/sdb", Off: true}}}}
	if diff := cmp.Diff(want, monitor.NewDrives(c.Smart, slow)); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	if diff := cmp.Diff(&monitor.Drives{Auto: true}, monitor.NewDrives(nil, config.Slow{})); diff != "" {
		t.Errorf("without a section: want -, got +\n%s", diff)
	}
	if c, err := Parse([]byte("smart: {enabled: false}")); err != nil || monitor.NewDrives(c.Smart, slow) != nil {
		t.Errorf("disabled: got %+v, %v; want nil", c, err)
	}
	for text, want := range map[string]string{
		"smart: {enabled: maybe}":                            "true or false",
		"smart: {disks: /dev/sda}":                           "a list of disks",
		"smart: {disks: [{type: sat}]}":                      "a disk needs a device",
		"smart: {disks: [{device: \"/dev/sda; reboot\"}]}":   "not the path of a disk",
		"smart: {disks: [{device: /dev/sda, type: \"-x\"}]}": "not a type of disk",
		"smart: {smartcl: /usr/sbin/smartctl}":               "did you mean smartctl",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestHistoryConfig(t *testing.T) {
	for text, want := range map[string]store.Options{
		"history: {max_size: 50MB, max_age: 48h}": {Folder: "f", MaxSize: 50_000_000, MaxAge: 48 * time.Hour},
		"": {Folder: "f", MaxSize: store.DefaultMaxSize, MaxAge: store.DefaultMaxAge},
	} {
		c, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.History.options("f"); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"{max_size: 5}": "history: max_size \"5\" is too small", "{max_size: x}": "is not a size",
		"{max_age: 1h}": "history: max_age: 1h0m0s is under 24h0m0s", "{size: 1}": "size",
	} {
		if _, err := Parse([]byte("history: " + text + "\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

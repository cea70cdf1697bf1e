package agent

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/monitor"
)

func TestConfig(t *testing.T) {
	c, err := parseConfig([]byte(`
socket: /run/x.sock
endpoint: 4319
sampling:
  interval: 50ms
  root_path: /hostfs
  nvml: /usr/lib/libnvidia-ml.so.1
slow:
  baseline: /var/lib/x.db
  factor: 2
  load: 30s
  epoch: 10m
metrics:
  system.disk.io: {enabled: false}
  system.disk.merged: {enabled: true}
  system.cpu.time:
`))
	if err != nil {
		t.Fatal(err)
	}
	want := samplingConfig{50 * time.Millisecond, "/hostfs", "/usr/lib/libnvidia-ml.so.1"}
	if c.Socket != "/run/x.sock" || c.Endpoint != "4319" || c.Sampling != want || !reflect.DeepEqual(c.disabled(), []string{"system.disk.io"}) {
		t.Errorf("%+v", c)
	}
	if m, err := c.monitor(); err != nil || m.Slow != (monitor.Slow{Baseline: "/var/lib/x.db", Factor: 2, Load: 30 * time.Second, Epoch: 10 * time.Minute}) {
		t.Errorf("%+v, %v", m.Slow, err)
	}
	for _, off := range []string{"slow: {baseline: off}", `slow: {baseline: ""}`} {
		if c, err := parseConfig([]byte(off)); err != nil {
			t.Error(err)
		} else if m, err := c.monitor(); err != nil || m.Slow.Baseline != "" {
			t.Errorf("%s: %+v, %v", off, m.Slow, err)
		}
	}
	for _, empty := range []string{"", "# nothing\n", "sampling:\n", "---\n"} {
		if c, err := parseConfig([]byte(empty)); err != nil || !reflect.DeepEqual(c, &config{}) {
			t.Errorf("%q: %+v, %v", empty, c, err)
		}
	}
}

func TestWrongConfig(t *testing.T) {
	for text, says := range map[string]string{
		"sockett: x":                 `line 1: there is no key "sockett": did you mean socket?`,
		"sampling: {interval: soon}": `line 1: "soon" is not a duration, like 100ms`,
		"sampling:\n  intervall: 1s": "line 2: there is no key \"intervall\": did you mean interval?",
		"sampling: 5":                "not a mapping",
		"slow: {factor: 0.5}":        "line 1: the factor of slow windows is 0.5: choose one from 1 to 1000",
		"slow: {factor: .nan}":       "choose one from 1 to 1000",
		"slow: {factor: fast}":       `"fast" is not a number, like 1.5`,
		"slow: {load: -1s}":          "negative",
		"slow: {load: 100ns}":        "a unit is missing",
		"slow: {baseline: x.db}":     `the file of baselines is "x.db": give its absolute path`,
		"- a":                        "a list is not a mapping",
		"zzz: 1":                     "the choices are actions, endpoint, metrics, sampling, slow, smart, socket",
		"socket: [a]":                "a list is not text",
		"socket: {a: b}":             "a mapping is not text",
		"metrics: {system.disk.oi: {enabled: false}}":   "did you mean system.disk.io?",
		"metrics: {zzz: {enabled: false}}":              "docs/metrics.md",
		"metrics: {system.disk.io: {enabled: maybe}}":   `"maybe" is not true or false`,
		"metrics: {system.disk.io: {disabled: true}}":   "did you mean enabled?",
		"metrics: {system.disk.io: false}":              "not a mapping",
		"socket: a\nsocket: b":                          "twice",
		"socket: a\n---\nsocket: b":                     "more than one document",
		"a: [":                                          "no YAML",
		"a: &a [*a]":                                    `no key "a"`,
		"socket: \x00":                                  "no YAML",
		"metrics: {system.disk.io: &x {enabled: *y}}":   "no YAML",
		"metrics: &m {system.disk.io: {enabled: [no]}}": "a list is not true or false",
	} {
		_, err := parseConfig([]byte(text))
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

func TestConfigFile(t *testing.T) {
	huge := filepath.Join(t.TempDir(), "huge")
	if err := os.WriteFile(huge, make([]byte, mostConfig+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{"/nowhere/c.yaml": "no such file", huge: "another file", t.TempDir(): "directory"} {
		if _, err := readConfig(path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func FuzzConfig(f *testing.F) {
	for _, text := range []string{"socket: a", "sampling: {interval: 1s}", "metrics: {a: {enabled: no}}", "a: &a [*a]", "{<<: {socket: x}}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := parseConfig(text); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("more than a line: %q", err)
		}
	})
}

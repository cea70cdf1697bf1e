package distribution

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		config string   // beside file.yaml
		says   []string // each of them
	}{
		"two receivers with different settings": {
			config: "receivers: {stallspan/other: {socket: '${env:OUTPUT}/other', sampling: {interval: 200ms}}}\n" +
				"service: {pipelines: {metrics/other: {receivers: [stallspan/other], exporters: [file/metrics]}}}",
			says: []string{"100ms", "200ms"},
		},
		"a condition that does not parse": {
			config: "processors: {stallspan: {conditions: ['span.name == \"a\"', 'span.name == ']}}",
			says:   []string{"conditions[1]", "1:1"},
		},
		"a metric that does not exist": {
			config: "receivers: {stallspan: {metrics: {system.disk.oi: {enabled: false}}}}",
			says:   []string{"system.disk.oi", "system.disk.io"},
		},
		"an interval that is too short": {
			config: "receivers: {stallspan: {sampling: {interval: 1ms}}}",
			says:   []string{"1ms", "10ms"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := prepare(t, "--config", "../../examples/collector/file.yaml", "--config", "yaml:"+test.config)
			if err := os.Mkdir(c.output, 0o700); err != nil {
				t.Fatal(err)
			}
			told(t, c.refused(), test.says...)
		})
	}
}

func TestSocketTaken(t *testing.T) {
	c := prepare(t, "--config", "../../examples/collector/file.yaml")
	taken, err := net.Listen("unix", c.socket())
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	told(t, c.refused(), "another stallspan answers on "+c.socket())
}

// told checks that one line says all of it, and that no panic was in the way.
func told(t *testing.T, log string, words ...string) {
	t.Helper()
	if strings.Contains(log, "goroutine ") {
		t.Errorf("it panicked:\n%s", log)
	}
	for line := range strings.Lines(log) {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			t.Log(strings.TrimSpace(line))
			return
		}
	}
	t.Errorf("no line says all of %q:\n%s", words, log)
}

// Every example can be loaded, with the environment that it asks for.
func TestExamplesAreValid(t *testing.T) {
	examples, err := filepath.Glob("../../examples/collector/*.yaml")
	if err != nil || len(examples) < 4 {
		t.Fatal(examples, err)
	}
	for _, path := range examples {
		t.Run(filepath.Base(path), func(t *testing.T) {
			c := prepare(t, "validate", "--config", path)
			if err := c.Run(); err != nil || strings.Contains(strings.ToLower(c.log.String()), "deprecated") {
				t.Errorf("%v: %s", err, c.log)
			}
		})
	}
}

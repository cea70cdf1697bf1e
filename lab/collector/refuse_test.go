package collector

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		config string   // in addition to file.yaml
		words  []string // in the error
	}{
		"two receivers with different settings": {
			config: "receivers: {stallspan/other: {socket: '${env:OUTPUT}/other', sampling: {interval: 200ms}}}\n" +
				"service: {pipelines: {metrics/other: {receivers: [stallspan/other], exporters: [file/metrics]}}}",
			words: []string{"100ms", "200ms"},
		},
		"a condition that does not parse": {
			config: "processors: {stallspan: {conditions: ['span.name == \"a\"', 'span.name == ']}}",
			words:  []string{"conditions[1]", "1:1"},
		},
		"a metric that does not exist": {
			config: "receivers: {stallspan: {metrics: {system.disk.oi: {enabled: false}}}}",
			words:  []string{"there is no metric", "system.disk.oi"},
		},
		"an interval that is too short": {
			config: "receivers: {stallspan: {sampling: {interval: 1ms}}}",
			words:  []string{"1ms", "10ms"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := prepare(t, "--config", "../../examples/collector/file.yaml", "--config", "yaml:"+test.config)
			if err := os.Mkdir(c.output, 0o700); err != nil {
				t.Fatal(err)
			}
			checkError(t, c.refused(), test.words...)
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
	checkError(t, c.refused(), "another stallspan serves "+c.socket())
}

// checkError checks that one line of the log has all words, and that there was no panic.
func checkError(t *testing.T, log string, words ...string) {
	t.Helper()
	if strings.Contains(log, "goroutine ") {
		t.Errorf("log: got a panic, want none:\n%s", log)
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
	t.Errorf("log: got no line with all of %q:\n%s", words, log)
}

// Every example is valid, with the environment variables that it uses.
func TestExamplesAreValid(t *testing.T) {
	examples, err := filepath.Glob("../../examples/collector/*.yaml")
	if err != nil || len(examples) < 3 {
		t.Fatalf("examples: got %v, %v, want at least 3", examples, err)
	}
	for _, path := range append(examples, "../../packaging/etc/collector.yaml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			c := prepare(t, "validate", "--config", path)
			token := filepath.Join(c.temp, "token")
			if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			c.set("TOKEN_FILE", token)
			c.set("LOGS", filepath.Join(c.temp, "*.log"))
			if err := c.Run(); err != nil || strings.Contains(strings.ToLower(c.log.String()), "deprecated") {
				t.Errorf("validate: got %v, want no error and no deprecation: %s", err, c.log)
			}
		})
	}
}

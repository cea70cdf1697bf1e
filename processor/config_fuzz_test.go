//go:build linux && (amd64 || arm64)

package processor

import (
	"testing"

	"go.opentelemetry.io/collector/confmap"
)

// Any YAML is an error, or a config whose conditions can be parsed.
func FuzzConfig(f *testing.F) {
	for _, text := range []string{"conditions: ['name == \"a\"']", "conditions: ['IsMatch(name, \"(\")']",
		"error_mode: propagate",
		"slow_status: 1", "sampling: {interval: 1ns}", "node_name: [a]", "conditions: a"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		retrieved, err := confmap.NewRetrievedFromYAML([]byte(text))
		if err != nil {
			return
		}
		values, err := retrieved.AsConf()
		if err != nil {
			return
		}
		c, _ := createDefaultConfig().(*Config)
		if values.Unmarshal(c) != nil || confmap.Validate(c) != nil {
			return
		}
		if _, err := parse(c.Conditions); err != nil {
			t.Errorf("%q: it is valid, and then: %v", text, err)
		}
	})
}

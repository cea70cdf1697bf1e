//go:build linux && (amd64 || arm64)

package receiver

import (
	"testing"

	"go.opentelemetry.io/collector/confmap"
)

// Any YAML is a config or an error.
func FuzzConfig(f *testing.F) {
	for _, text := range []string{"collection_interval: 1s\nsampling: {interval: 50ms}",
		"smart: {disks: [{device: /dev/sda}]}",
		"metrics: {system.disk.io: {enabled: false}}", "disks: {include: [{regexp: '^nvme('}]}", "slow: {factor: -1}",
		"sampling:", "gpus: {exclude: [{strict: 3}]}", "endpoint: 0.0.0.0:1", "a: &a [*a]"} {
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
		if c, err := read(values); err == nil && (c == nil || c.Sampling.Validate() != nil) {
			t.Errorf("%q: got the config %+v", text, c)
		}
	})
}

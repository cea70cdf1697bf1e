//go:build linux && (amd64 || arm64)

package receiver

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/scraper/scraperhelper"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/monitor"
)

// Config is the section "stallspan:" of receivers in the Collector's config. README.md describes it.
type Config struct {
	// How often metrics are sent. Samples are taken much more often.
	scraperhelper.ControllerConfig `mapstructure:",squash"`

	Sampling config.Sampling `mapstructure:"sampling"`
	Slow     config.Slow     `mapstructure:"slow"`
	Spans    config.Spans    `mapstructure:",squash"`
	Smart    *config.Smart   `mapstructure:"smart"`
	Metrics  config.Metrics  `mapstructure:"metrics"`
	Disks    FilterConfig    `mapstructure:"disks"`      // matched by name, as in /dev
	GPUs     FilterConfig    `mapstructure:"gpus"`       // matched by hw.id, hw.name, index, or "AMD GPU 0"
	Socket   string          `mapstructure:"socket"`     // "" for api.DefaultSocket
	Endpoint string          `mapstructure:"endpoint"`   // TCP port of the API; "" for none
	Token    string          `mapstructure:"token_file"` // with the text that clients of the port need; "" for none
}

func createDefaultConfig() component.Config {
	c := &Config{ControllerConfig: scraperhelper.NewDefaultControllerConfig(), Sampling: config.DefaultSampling()}
	c.CollectionInterval = 10 * time.Second
	return c
}

// Validate checks what the sections do not check themselves.
func (c *Config) Validate() error {
	var all []error
	for _, name := range slices.Sorted(maps.Keys(c.Metrics)) {
		if err := emit.CheckMetric(name); err != nil {
			all = append(all, fmt.Errorf("metrics: %w", err))
		}
	}
	if c.Endpoint != "" {
		if _, err := api.Endpoint(c.Endpoint); err != nil {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// monitorConfig returns the settings on which components that share a monitor must agree. The history of drives is next
// to the baselines, which Share.Limit sets. A Collector starts no program, such as smartctl, unless its config says so.
func (c *Config) monitorConfig() monitor.Config {
	m := monitor.NewConfig(c.Sampling)
	if c.Smart != nil && c.Smart.Enabled != nil {
		m.Drives = monitor.NewDrives(c.Smart, config.Slow{})
	}
	return m
}

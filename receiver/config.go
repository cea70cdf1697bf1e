package receiver

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/scraper/scraperhelper"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/monitor"
)

// Config is what the Collector's YAML says below "stallspan:". README.md describes it.
type Config struct {
	// How often metrics leave, 10 s unless said otherwise; readings are taken much more often.
	scraperhelper.ControllerConfig `mapstructure:",squash"`

	Sampling SamplingConfig          `mapstructure:"sampling"`
	Slow     monitor.Slow            `mapstructure:"slow"`     // when a window took too long
	Smart    SmartConfig             `mapstructure:"smart"`    // how drives are asked for their health
	Metrics  map[string]MetricConfig `mapstructure:"metrics"`  // by name; one that is not there is enabled
	Disks    FilterConfig            `mapstructure:"disks"`    // matched by name, as in /dev
	GPUs     FilterConfig            `mapstructure:"gpus"`     // matched by hw.id, hw.name or index
	Socket   string                  `mapstructure:"socket"`   // "" for api.DefaultSocket
	Endpoint string                  `mapstructure:"endpoint"` // a TCP port for the API, "" for none
}

// SamplingConfig is how the machine is read. All components of a Collector that say so must say the same.
type SamplingConfig struct {
	Interval time.Duration `mapstructure:"interval"`  // between two readings
	RootPath string        `mapstructure:"root_path"` // the folder that stands for the host's "/": "/hostfs" in a container
	NVML     string        `mapstructure:"nvml"`      // the path of libnvidia-ml.so.1, where the loader does not find it
}

// MetricConfig switches one metric.
type MetricConfig struct {
	Enabled bool `mapstructure:"enabled"`
}

// Unmarshal has a metric enabled of which nothing is said.
func (m *MetricConfig) Unmarshal(conf *confmap.Conf) error {
	if err := conf.Unmarshal(m); err != nil {
		return err
	}
	m.Enabled = m.Enabled || conf.Get("enabled") == nil // also "enabled:" without a value
	return nil
}

func defaultConfig() component.Config {
	c := &Config{
		ControllerConfig: scraperhelper.NewDefaultControllerConfig(),
		Sampling:         SamplingConfig{Interval: monitor.DefaultInterval},
		Smart:            SmartConfig{Enabled: true},
	}
	c.CollectionInterval = 10 * time.Second
	return c
}

// Validate says what cannot be used. The Collector has the patterns and the interval of collection checked themselves.
func (c *Config) Validate() error {
	var all []error
	if err := monitor.CheckInterval(c.Sampling.Interval); err != nil {
		all = append(all, fmt.Errorf("sampling::interval: %w", err))
	}
	if c.Sampling.RootPath != "" && !path.IsAbs(c.Sampling.RootPath) {
		all = append(all, fmt.Errorf("sampling::root_path: %q does not begin with /", c.Sampling.RootPath))
	}
	if err := c.Slow.Check(); err != nil {
		all = append(all, fmt.Errorf("slow: %w", err))
	}
	if err := c.Smart.monitor().Check(); err != nil {
		all = append(all, fmt.Errorf("smart::%w", err))
	}
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

// sampling is what components that share a monitor agree on.
func (c *Config) sampling() monitor.Config {
	return monitor.Config{
		Interval: c.Sampling.Interval, Root: c.Sampling.RootPath, NVML: c.Sampling.NVML,
		Drives: c.Smart.monitor().Drives(monitor.Slow{}), // what they told before lies beside the baselines that all agree on
	}
}

// disabled lists the metrics that are not to leave.
func (c *Config) disabled() []string {
	var names []string
	for name, m := range c.Metrics {
		if !m.Enabled {
			names = append(names, name)
		}
	}
	return names
}

package processor

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"
	"go.opentelemetry.io/collector/component"

	"github.com/stallspan/stallspan/internal/monitor"
)

// Config is what the Collector's YAML says below "stallspan:".
type Config struct {
	// Conditions are OTTL conditions on spans. A span that meets one of them is annotated, as is one that carries
	// stallspan.window.kind.
	Conditions []string `mapstructure:"conditions"`

	// ErrorMode says what happens when a condition fails on a span, besides that it counts as not met: ignore logs it,
	// silent does not. The third that OTTL knows, propagate, is refused: it would lose the batch.
	ErrorMode ottl.ErrorMode `mapstructure:"error_mode"`

	// MarkSlowAsError gives a slow span the status Error, unless it has that already.
	MarkSlowAsError bool `mapstructure:"mark_slow_as_error"`

	// AssumeLocal takes every span for one of this host.
	AssumeLocal bool `mapstructure:"assume_local"`

	// NodeName is what k8s.node.name is on spans of this host.
	NodeName string `mapstructure:"node_name"`

	// Sampling is nil for a processor that takes another component's, or the defaults where there is no other.
	Sampling *SamplingConfig `mapstructure:"sampling"`

	// Slow says when a window took too long. All components of a Collector that say so must say the same.
	Slow monitor.Slow `mapstructure:"slow"`
}

// SamplingConfig says how this machine is sampled. All components of a Collector that say so must say the same.
type SamplingConfig struct {
	Interval time.Duration `mapstructure:"interval"`  // 0: 100 ms
	RootPath string        `mapstructure:"root_path"` // the folder that stands for "/"
	NVML     string        `mapstructure:"nvml"`      // the path of libnvidia-ml.so.1
}

// Validate says what is wrong with the config, every condition that does not parse with its position.
func (c *Config) Validate() error {
	_, err := parse(c.Conditions)
	switch c.ErrorMode {
	case ottl.IgnoreError, ottl.SilentError:
	case ottl.PropagateError:
		err = errors.Join(err, errors.New("error_mode: propagate would lose spans when a condition fails: use ignore or silent"))
	default:
		err = errors.Join(err, fmt.Errorf("error_mode: %q is none: use ignore or silent", c.ErrorMode))
	}
	if wrong := c.Slow.Check(); wrong != nil {
		err = errors.Join(err, fmt.Errorf("slow: %w", wrong))
	}
	return err
}

// Validate says what is wrong with the settings.
func (c *SamplingConfig) Validate() error {
	var errs []error
	if c.Interval != 0 {
		if err := monitor.CheckInterval(c.Interval); err != nil {
			errs = append(errs, fmt.Errorf("interval: %w", err))
		}
	}
	if c.RootPath != "" && !path.IsAbs(c.RootPath) {
		errs = append(errs, fmt.Errorf("root_path: %q does not begin with /", c.RootPath))
	}
	return errors.Join(errs...)
}

func createDefaultConfig() component.Config {
	return &Config{Conditions: slices.Clone(DefaultConditions()), ErrorMode: ottl.IgnoreError}
}

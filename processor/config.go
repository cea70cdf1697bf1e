//go:build linux && (amd64 || arm64)

package processor

import (
	"errors"
	"fmt"
	"slices"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/stallspan/stallspan/internal/config"
)

// Config is the section "stallspan:" of processors in the Collector's config.
type Config struct {
	// Conditions are OTTL conditions on spans. A span that meets one of them, or that has the attribute
	// stallspan.window.kind, is annotated.
	Conditions []string `mapstructure:"conditions"`

	// ErrorMode selects whether a condition that fails on a span is logged (ignore) or not (silent). The condition is then
	// not met. OTTL's third mode, propagate, is refused, because it would drop the batch.
	ErrorMode ottl.ErrorMode `mapstructure:"error_mode"`

	// SlowStatus is the status of slow spans: config.StatusError, or "" or config.StatusUnset to leave it.
	SlowStatus string `mapstructure:"slow_status"`

	// Page is the address of this machine's page, to which annotated spans link; "" for no links.
	Page string `mapstructure:"page_url"`

	// AssumeLocal treats every span as one of this host.
	AssumeLocal bool `mapstructure:"assume_local"`

	// NodeName is the value of k8s.node.name on spans of this host.
	NodeName string `mapstructure:"node_name"`

	// Sampling is nil for a processor that uses the sampling of another component, or the default.
	Sampling *config.Sampling `mapstructure:"sampling"`

	Slow config.Slow `mapstructure:"slow"`
}

// Unmarshal sets the defaults of a section "sampling:" that is present.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if conf.Get("sampling") != nil {
		sampling := config.DefaultSampling()
		c.Sampling = &sampling
	}
	return conf.Unmarshal(c)
}

// show says how spans show windows.
func (c *Config) show() config.Spans { return config.Spans{SlowStatus: c.SlowStatus, Page: c.Page} }

// Validate returns an error for each condition that does not parse, with its position.
func (c *Config) Validate() error {
	_, err := parse(c.Conditions)
	err = errors.Join(err, c.show().Validate())
	switch c.ErrorMode {
	case ottl.IgnoreError, ottl.SilentError:
	case ottl.PropagateError:
		err = errors.Join(err, errors.New(
			"error_mode: propagate would drop spans when a condition fails: use ignore or silent"))
	default:
		err = errors.Join(err, fmt.Errorf("error_mode: there is no mode %q: use ignore or silent", c.ErrorMode))
	}
	return err
}

func createDefaultConfig() component.Config {
	return &Config{Conditions: slices.Clone(DefaultConditions()), ErrorMode: ottl.IgnoreError}
}

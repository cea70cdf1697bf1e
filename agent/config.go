package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/stallspan/stallspan/internal/alert/action"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/nearest"
)

// config is the agent's file, as docs/agent.md describes it. Where telemetry goes is not in it: the standard OTEL_*
// variables say that.
type config struct {
	Socket   string                  // "" for api.DefaultSocket
	Endpoint string                  // a TCP port for the API, "" for none
	Sampling samplingConfig          //
	Slow     slowOptions             //
	Smart    smartConfig             //
	Metrics  map[string]metricConfig // by name; one that is not there is enabled
	Actions  []action.Config         // none unless they are asked for
}

type samplingConfig struct {
	Interval time.Duration // between two readings; 0 for the default
	RootPath string        // the folder that stands for the host's "/"
	NVML     string        // the path of libnvidia-ml.so.1
}

type metricConfig struct{ Enabled bool }

// monitor is what the monitor is told. The problem is why windows are not compared with earlier ones.
func (c *config) monitor() (m monitor.Config, problem error) {
	slow, problem, _ := c.Slow.monitor() // the error was told when the file was read
	m = monitor.Config{Slow: slow, Interval: c.Sampling.Interval, Root: c.Sampling.RootPath, NVML: c.Sampling.NVML}
	m.Drives = c.Smart.monitor(slow.Baseline)
	return m, problem
}

// disabled lists the metrics that are not to leave.
func (c *config) disabled() []string {
	var names []string
	for name, m := range c.Metrics {
		if !m.Enabled {
			names = append(names, name)
		}
	}
	return names
}

// mostConfig bounds a config file, in bytes.
const mostConfig = 1 << 20

// readConfig reads the file at path, or gives the defaults where path is "". The error is one line, with the place.
func readConfig(path string) (*config, error) {
	if path == "" {
		return &config{}, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the config cannot be read: %w", err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, mostConfig+1))
	if err != nil {
		return nil, fmt.Errorf("the config cannot be read: %w", err)
	}
	if len(text) > mostConfig {
		return nil, fmt.Errorf("the config %s is larger than %d MiB: is it another file?", path, mostConfig>>20)
	}
	c, err := parseConfig(text)
	if err == nil {
		err = c.trusted(file)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

func parseConfig(text []byte) (*config, error) {
	var file yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&file); errors.Is(err, io.EOF) {
		return &config{}, nil // empty, or comments alone
	} else if err != nil {
		return nil, fmt.Errorf("it is no YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if !errors.Is(decoder.Decode(&yaml.Node{}), io.EOF) {
		return nil, errors.New("it holds more than one document: keep the first")
	}
	c := &config{}
	return c, keys{
		"socket":   plain(&c.Socket),
		"endpoint": checked(plain(&c.Endpoint), func() error { _, err := api.Endpoint(c.Endpoint); return err }),
		"sampling": keys{
			"interval":  checked(duration(&c.Sampling.Interval), func() error { return monitor.CheckInterval(c.Sampling.Interval) }),
			"root_path": plain(&c.Sampling.RootPath),
			"nvml":      plain(&c.Sampling.NVML),
		}.read,
		"slow": checked(keys{
			"baseline": pointed(&c.Slow.baseline),
			"factor":   numeric(&c.Slow.factor),
			"load":     duration(&c.Slow.load),
			"epoch":    duration(&c.Slow.epoch),
		}.read, c.Slow.check),
		"smart":   c.Smart.read,
		"metrics": c.readMetrics,
		"actions": c.readActions,
	}.read(file.Content[0])
}

// keys are those that a mapping may have, with who reads the value of each.
type keys map[string]func(*yaml.Node) error

func (k keys) read(n *yaml.Node) error {
	return each(n, func(key string, at, value *yaml.Node) error {
		if read := k[key]; read != nil {
			return read(value)
		}
		return unknown(at, key, k.names())
	})
}

func (k keys) names() (names []string) {
	for name := range k {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (c *config) readMetrics(n *yaml.Node) error {
	c.Metrics = map[string]metricConfig{}
	return each(n, func(name string, at, value *yaml.Node) error {
		if err := emit.CheckMetric(name); err != nil {
			return fmt.Errorf("line %d: %w", at.Line, err)
		}
		m := metricConfig{Enabled: true}
		err := keys{"enabled": func(n *yaml.Node) error {
			if n.Decode(&m.Enabled) != nil || n.Tag != "!!bool" {
				return wrong(n, "true or false")
			}
			return nil
		}}.read(value)
		c.Metrics[name] = m
		return err
	})
}

// each goes through a mapping. An empty one may be left out: "sampling:" with nothing behind it.
func each(n *yaml.Node, read func(key string, at, value *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		if n.Tag == "!!null" {
			return nil
		}
		return wrong(n, "a mapping, lines of the form KEY: VALUE")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		at := n.Content[i]
		if seen[at.Value] {
			return fmt.Errorf("line %d: %q comes twice: keep one", at.Line, at.Value)
		}
		seen[at.Value] = true
		if err := read(at.Value, at, n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func plain(into *string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			return wrong(n, "text")
		}
		*into = n.Value
		return nil
	}
}

// checked refuses a value of the right type that cannot be used.
func checked(read func(*yaml.Node) error, check func() error) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if err := read(n); err != nil {
			return err
		}
		if err := check(); err != nil {
			return fmt.Errorf("line %d: %w", n.Line, err)
		}
		return nil
	}
}

func duration(into *time.Duration) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		d, err := time.ParseDuration(n.Value)
		if err != nil || n.Kind != yaml.ScalarNode {
			return wrong(n, "a duration, like 100ms")
		}
		*into = d
		return nil
	}
}

func pointed(into **string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		*into = new(string)
		return plain(*into)(n)
	}
}

func numeric(into *float64) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Decode(into) != nil || n.Tag != "!!float" && n.Tag != "!!int" {
			return wrong(n, "a number, like 1.5")
		}
		return nil
	}
}

func wrong(n *yaml.Node, expected string) error {
	switch n.Kind {
	case yaml.SequenceNode:
		return fmt.Errorf("line %d: a list is not %s", n.Line, expected)
	case yaml.MappingNode:
		return fmt.Errorf("line %d: a mapping is not %s", n.Line, expected)
	}
	return fmt.Errorf("line %d: %.40q is not %s", n.Line, n.Value, expected)
}

func unknown(at *yaml.Node, key string, right []string) error {
	if near := nearest.Word(key, right); near != "" {
		return fmt.Errorf("line %d: there is no key %.60q: did you mean %s?", at.Line, key, near)
	}
	return fmt.Errorf("line %d: there is no key %.60q: the choices are %s", at.Line, key, strings.Join(right, ", "))
}

// Package agentconfig reads the config file of the agent, which the commands that act as it does share.
package agentconfig

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/scrape"
	"github.com/stallspan/stallspan/internal/alert/action"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/state/baseline"
	"github.com/stallspan/stallspan/internal/store"
	"github.com/stallspan/stallspan/internal/store/past"
	"github.com/stallspan/stallspan/internal/trust"
)

// Config is the agent's config file. The OTEL_* environment variables, not the file, say where telemetry goes.
type Config struct {
	Socket   string          `yaml:"socket"`     // "" for api.DefaultSocket
	Endpoint string          `yaml:"endpoint"`   // TCP port of the API; "" for none
	Token    string          `yaml:"token_file"` // with the text that clients of the port need; "" for none
	Sampling config.Sampling `yaml:"sampling"`
	Slow     config.Slow     `yaml:"slow"`
	Spans    config.Spans    `yaml:",inline"`
	Smart    *config.Smart   `yaml:"smart"`
	Metrics  config.Metrics  `yaml:"metrics"`
	History  historyConfig   `yaml:"history"`
	Actions  []action.Config `yaml:"actions"`
	Scrape   scrape.Config   `yaml:"prometheus"`

	APIToken   []byte // from the file
	NoBaseline error  // why windows are not compared with a baseline although the config does not disable it
}

// historyConfig says how much of the past is kept in files.
type historyConfig struct {
	Enabled *bool         `yaml:"enabled"`  // nil for true
	MaxSize string        `yaml:"max_size"` // such as 200MB; "" for store.DefaultMaxSize
	MaxAge  time.Duration `yaml:"max_age"`  // 0 for store.DefaultMaxAge
}

// minHistory is the least age of files: each is of a day.
const minHistory = 24 * time.Hour

// options returns the bounds of the files in a folder.
func (h *historyConfig) options(folder string) (store.Options, error) {
	o := store.Options{Folder: folder, MaxSize: store.DefaultMaxSize, MaxAge: cmp.Or(h.MaxAge, store.DefaultMaxAge)}
	if o.MaxAge < minHistory {
		return o, fmt.Errorf("max_age: %v is under %v: give a duration, like 168h", h.MaxAge, minHistory)
	}
	if h.MaxSize == "" {
		return o, nil
	}
	var err error
	o.MaxSize, err = cli.ParseSize("max_size", h.MaxSize, store.MinMaxSize)
	return o, err
}

// HistoryFolder is the folder of the past, next to the baselines: of this config, or the usual ones. It is "" without a
// home folder.
func (c *Config) HistoryFolder() string {
	path := c.Slow.Baseline
	if !c.Slow.HasBaseline() {
		path, _ = baseline.DefaultPath()
	}
	if path == "" {
		return ""
	}
	return store.FolderNextTo(path)
}

// Past returns what keeps the past in files; nil for nothing.
func (c *Config) Past() *past.Recorder {
	folder := c.HistoryFolder()
	options, err := c.History.options(folder)
	if folder == "" || err != nil || c.History.Enabled != nil && !*c.History.Enabled {
		return nil // validate has reported the error
	}
	return past.New(options)
}

// Default is the config without a file.
func Default() *Config {
	c := &Config{Sampling: config.DefaultSampling()}
	c.Slow.Baseline, c.NoBaseline = baseline.DefaultPath()
	return c
}

// validate returns the first error, with the path of its key, and reads the secrets of webhooks.
func (c *Config) validate() error {
	var err error
	if c.Endpoint != "" {
		_, err = api.Endpoint(c.Endpoint)
	}
	if err == nil {
		c.APIToken, err = api.ReadToken("token_file", c.Token)
	}
	if err != nil {
		return err
	}
	_, history := c.History.options("")
	for _, part := range []struct {
		key string
		err error
	}{
		{"sampling: ", c.Sampling.Validate()}, {"slow: ", c.Slow.Validate()}, {"", c.Spans.Validate()},
		{"smart: ", c.Smart.Validate()}, {"history: ", history}, {"prometheus: ", c.Scrape.Check()},
	} {
		if part.err != nil {
			return fmt.Errorf("%s%w", part.key, part.err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Metrics)) {
		if err := emit.CheckMetric(name); err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
	}
	for i := range c.Actions {
		a := &c.Actions[i]
		var err error
		if a.Webhook != nil {
			err = readSecret(a.Webhook)
		}
		if err == nil {
			err = a.Check()
		}
		if err != nil {
			return fmt.Errorf("actions[%d]: %w", i, err)
		}
	}
	return nil
}

// Monitor returns the settings of the monitor.
func (c *Config) Monitor() monitor.Config {
	m := monitor.NewConfig(c.Sampling)
	m.Slow, m.Drives = c.Slow, monitor.NewDrives(c.Smart, c.Slow)
	return m
}

// MaxSize is the limit of a config file, in bytes.
const MaxSize = 1 << 20

// Read reads a config file, or returns the defaults if path is "". An error is one line.
func Read(path string) (*Config, error) {
	if path == "" {
		return Default(), nil
	}
	file, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no config %s: correct --config, or leave it out for the defaults", path)
	case err != nil:
		return nil, fmt.Errorf("cannot read the config: %w", err)
	}
	defer func() { _ = file.Close() }()
	if trust.Privileged() { // before an error of the parser shows a part of it
		if err := checkConfigFile(file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	text, err := io.ReadAll(io.LimitReader(file, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the config: %w", err)
	}
	if len(text) > MaxSize {
		return nil, fmt.Errorf("the config %s is larger than %d MiB: is it the right file?", path, MaxSize>>20)
	}
	c, err := Parse(text)
	if err == nil {
		err = c.checkOwner(file)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Parse reads the text of a config file.
func Parse(text []byte) (*Config, error) {
	c := Default()
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := acceptZero(decoder.Decode(c)); err != nil && !errors.Is(err, io.EOF) { // io.EOF: it is empty
		return nil, yamlError(err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("it has more than one YAML document: keep the first")
	}
	if c.Slow.Baseline != "" {
		c.NoBaseline = nil
	}
	return c, c.validate()
}

// checkOwner refuses a file that names programs, a library or files to write if others than root and our user may write
// it. A process with more rights than its user refuses every such file before it is read.
func (c *Config) checkOwner(file *os.File) error {
	usual, _ := baseline.DefaultPath()
	names := c.Smart != nil && (c.Smart.Smartctl != "" || c.Smart.Sudo) || c.Sampling.NVML != "" || c.Socket != "" ||
		c.Sampling.PodResources != "" && c.Sampling.PodResources != config.Off ||
		c.Slow.HasBaseline() && c.Slow.Baseline != usual ||
		slices.ContainsFunc(c.Actions, func(a action.Config) bool { return a.Exec != nil })
	if !names {
		return nil
	}
	return checkConfigFile(file)
}

func checkConfigFile(file *os.File) error {
	if info, err := file.Stat(); err == nil && !info.Mode().IsRegular() {
		return nil // a pipe, as of <(...), comes from who has started this process
	}
	if err := trust.Opened(file); err != nil {
		return fmt.Errorf("it names programs or files: %w", err)
	}
	return nil
}

// readSecret sets the secret of a webhook from the file or the environment variable that the config names.
func readSecret(w *action.Webhook) (err error) {
	switch {
	case w.SecretFile != "" && w.SecretEnv != "":
		return errors.New("the secret is given twice: keep one of secret_file and secret_env")
	case w.SecretFile != "":
		w.Secret, err = trust.Secret("secret_file", w.SecretFile)
	case w.SecretEnv != "":
		w.Secret = []byte(os.Getenv(w.SecretEnv))
		if len(w.Secret) == 0 {
			return fmt.Errorf("the environment variable %.60q of secret_env is not set", w.SecretEnv)
		}
	}
	return err
}

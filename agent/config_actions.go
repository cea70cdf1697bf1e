package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/stallspan/stallspan/internal/alert/action"
	"github.com/stallspan/stallspan/internal/emit"
)

// severities are those that an action may ask for. Nobody writes to it.
var severities = map[string]emit.Severity{"info": emit.Info, "warn": emit.Warn, "error": emit.Error}

// readActions reads the list of what is to be done when something happens.
func (c *config) readActions(n *yaml.Node) error {
	if n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return wrong(n, "a list of actions, each behind a dash")
	}
	for _, item := range n.Content {
		a, err := readAction(item)
		if err != nil {
			return err
		}
		if err := a.Check(); err != nil {
			return fmt.Errorf("line %d: %w", item.Line, err)
		}
		c.Actions = append(c.Actions, a)
	}
	return nil
}

func readAction(n *yaml.Node) (a action.Config, err error) {
	return a, keys{
		"on": listed(&a.On),
		"severity": func(n *yaml.Node) error {
			var known bool
			if a.Severity, known = severities[strings.ToLower(n.Value)]; !known || n.Kind != yaml.ScalarNode {
				return wrong(n, "a severity: info, warn or error")
			}
			return nil
		},
		"exec": func(n *yaml.Node) error {
			a.Exec = &action.Exec{}
			return keys{
				"command":    listed(&a.Exec.Command),
				"user":       plain(&a.Exec.User),
				"timeout":    duration(&a.Exec.Timeout),
				"per_minute": integer(&a.Exec.PerMinute),
			}.read(n)
		},
		"webhook": func(n *yaml.Node) error {
			a.Webhook = &action.Webhook{}
			return keys{
				"url":         plain(&a.Webhook.URL),
				"secret_file": secret(&a.Webhook.Secret, secretFile),
				"secret_env":  secret(&a.Webhook.Secret, secretVariable),
				"timeout":     duration(&a.Webhook.Timeout),
			}.read(n)
		},
	}.read(n)
}

// trusted refuses a file that everybody may write where it names programs to start or a library to load.
func (c *config) trusted(file *os.File) error {
	info, err := file.Stat()
	starts := c.Smart.smartctl != "" || c.Sampling.NVML != "" ||
		slices.ContainsFunc(c.Actions, func(a action.Config) bool { return a.Exec != nil })
	if err == nil && starts && info.Mode().IsRegular() && info.Mode().Perm()&0o002 != 0 {
		return errors.New("everybody may write it, and it names programs to start or a library to load: run chmod o-w on it")
	}
	return err
}

// listed reads a list of texts. What looks like a number or a truth is text, too.
func listed(into *[]string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.SequenceNode {
			return wrong(n, "a list, like [a, b]")
		}
		for _, item := range n.Content {
			var text string
			if err := plain(&text)(item); err != nil {
				return err
			}
			*into = append(*into, text)
		}
		return nil
	}
}

func integer(into *int) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Tag != "!!int" || n.Decode(into) != nil {
			return wrong(n, "a whole number, like 10")
		}
		return nil
	}
}

// secret reads where a secret is, and gets it from there. There is only one.
func secret(into *[]byte, get func(string) ([]byte, error)) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		var where string
		if err := plain(&where)(n); err != nil {
			return err
		}
		if *into != nil {
			return fmt.Errorf("line %d: the secret is given twice: keep one of secret_file and secret_env", n.Line)
		}
		found, err := get(where)
		if err != nil {
			return fmt.Errorf("line %d: %w", n.Line, err)
		}
		*into = found
		return nil
	}
}

// mostSecret bounds a secret, in bytes.
const mostSecret = 4 << 10

func secretFile(path string) ([]byte, error) {
	if !filepath.IsAbs(path) {
		return nil, errors.New("secret_file needs an absolute path")
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // to open a pipe would be to wait
		return nil, fmt.Errorf("the secret in %s is no file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the secret cannot be read: %w", err)
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o007 != 0 {
		return nil, fmt.Errorf("the secret in %s is open to everybody, or no file: run chmod o= on it", path)
	}
	text, err := io.ReadAll(io.LimitReader(file, mostSecret+1))
	if err != nil {
		return nil, fmt.Errorf("the secret cannot be read: %w", err)
	}
	if len(text) > mostSecret {
		return nil, fmt.Errorf("the secret in %s is longer than %d KiB: is it another file?", path, mostSecret>>10)
	}
	return bytes.TrimRight(text, "\r\n"), nil
}

func secretVariable(name string) ([]byte, error) {
	if value := os.Getenv(name); value != "" {
		return []byte(value), nil
	}
	return nil, fmt.Errorf("the variable %.60q that holds the secret is not set", name)
}

// Package action runs programs and calls webhooks when events happen. Posting an event never waits: each action has a
// goroutine and a bounded queue.
package action

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/emit"
)

// Config is one action. Exactly one of Exec and Webhook is set.
type Config struct {
	On       []string      `yaml:"on"`       // event names; empty for all
	Severity emit.Severity `yaml:"severity"` // minimum severity; for a resolved event, the severity of its beginning counts
	Exec     *Exec         `yaml:"exec"`
	Webhook  *Webhook      `yaml:"webhook"`
}

// Exec runs a program, without a shell. The arguments do not depend on the event.
type Exec struct {
	Command   []string      `yaml:"command"`    // the program's absolute path and its arguments
	User      string        `yaml:"user"`       // if the agent is root: the user to run as, "" for `nobody`; "root" must be explicit
	Timeout   time.Duration `yaml:"timeout"`    // the program and all its children are killed after it; 0 for 10 s
	PerMinute int           `yaml:"per_minute"` // maximum number of runs; 0 for 10
}

// Webhook posts the event to a URL.
type Webhook struct {
	URL        string        `yaml:"url"`         // https, or http on loopback
	SecretFile string        `yaml:"secret_file"` // file that holds the secret
	SecretEnv  string        `yaml:"secret_env"`  // environment variable that holds the secret
	Secret     []byte        `yaml:"-"`           // signs each request
	Timeout    time.Duration `yaml:"timeout"`     // of one attempt; 0 for 10 s
}

// Defaults and bounds.
const (
	defaultTimeout   = 10 * time.Second
	minTimeout       = 100 * time.Millisecond
	maxTimeout       = time.Minute
	defaultPerMinute = 10
	maxPerMinute     = 600
	maxArguments     = 64
	minSecretBytes   = 16
	maxActions       = 32
)

// Check returns an error if the action cannot be used.
func (c *Config) Check() error {
	for _, name := range c.On {
		if err := emit.CheckEvent(name); err != nil {
			return err
		}
	}
	switch {
	case (c.Exec == nil) == (c.Webhook == nil):
		return errors.New("an action is either exec or webhook: give one of them")
	case c.Exec != nil:
		return c.Exec.check()
	}
	return c.Webhook.check()
}

func (e *Exec) check() error {
	switch {
	case len(e.Command) == 0 || !filepath.IsAbs(e.Command[0]):
		return errors.New("exec needs a command: a list of the program's absolute path and its arguments")
	case len(e.Command) > maxArguments:
		return fmt.Errorf("the command of exec has more than %d arguments", maxArguments)
	case slices.ContainsFunc(e.Command, func(a string) bool { return strings.ContainsRune(a, 0) }):
		return errors.New("an argument of exec contains a zero byte")
	case e.PerMinute < 0 || e.PerMinute > maxPerMinute:
		return fmt.Errorf("per_minute of exec is %d: choose 1 to %d", e.PerMinute, maxPerMinute)
	}
	return checkTimeout(e.Timeout)
}

func (w *Webhook) check() error {
	u, err := url.Parse(w.URL) // errors leave the URL out: it may contain a key
	switch {
	case err != nil || u.Hostname() == "":
		return errors.New("the url of the webhook is invalid: write it like https://example.com/path")
	case u.User != nil:
		return errors.New("the url of the webhook contains a password: remove it, requests are signed")
	case u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
		return errors.New("the url of the webhook must start with https, or be on this machine's loopback")
	case len(w.Secret) < minSecretBytes:
		return fmt.Errorf("the secret of the webhook has %d bytes: give at least %d, such as from openssl rand -hex 32",
			len(w.Secret), minSecretBytes)
	}
	return checkTimeout(w.Timeout)
}

func checkTimeout(d time.Duration) error {
	if d != 0 && (d < minTimeout || d > maxTimeout) {
		return fmt.Errorf("the timeout is %v: choose %v to %v", d, minTimeout, maxTimeout)
	}
	return nil
}

// name is the action's name in messages. It contains no secret.
func (c *Config) name() string {
	if c.Exec != nil {
		return "exec " + c.Exec.Command[0]
	}
	u, err := url.Parse(c.Webhook.URL)
	if err != nil {
		return "webhook"
	}
	return "webhook " + u.Scheme + "://" + u.Host
}

// matches reports whether the action handles an event.
func (c *Config) matches(e *emit.Event) bool {
	return (len(c.On) == 0 || slices.Contains(c.On, e.Name)) && max(e.Severity, e.Was) >= c.Severity
}

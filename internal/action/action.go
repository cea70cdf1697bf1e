// Package action does what the agent's config asks for when something happens: it starts programs and calls webhooks. It
// never holds up whoever tells it of an event: each action has a goroutine and a bounded queue of its own.
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
	"github.com/stallspan/stallspan/internal/notice"
)

// Config is one action: one of Exec and Webhook.
type Config struct {
	On       []string      // names of the events that it is for; empty for all
	Severity emit.Severity // of which they are at least; what is over passes in any case
	Exec     *Exec
	Webhook  *Webhook
}

// Exec starts a program. Nothing of an event is among its arguments, and no shell comes between.
type Exec struct {
	Command   []string      // the program's absolute path, and its arguments
	User      string        // as whom, where we are root; "" for nobody. "root" has to be said
	Timeout   time.Duration // after which it is killed with all that it has started; 0 for 10 s
	PerMinute int           // times at most; 0 for 10
}

// Webhook posts the event to an address.
type Webhook struct {
	URL     string        // https, or http on loopback
	Secret  []byte        // with which each request is signed
	Timeout time.Duration // of one try; 0 for 10 s
}

// Defaults and bounds.
const (
	defaultTimeout   = 10 * time.Second
	longestTimeout   = time.Minute
	defaultPerMinute = 10
	mostPerMinute    = 600
	mostArguments    = 64
	leastSecret      = 16 // bytes
	mostActions      = 32
)

// Check says what cannot be used, or nil.
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
	case len(e.Command) > mostArguments:
		return fmt.Errorf("the command of exec has more than %d arguments", mostArguments)
	case slices.ContainsFunc(e.Command, func(a string) bool { return strings.ContainsRune(a, 0) }):
		return errors.New("an argument of exec holds a zero byte")
	case e.PerMinute < 0 || e.PerMinute > mostPerMinute:
		return fmt.Errorf("per_minute of exec is %d: choose 1 to %d", e.PerMinute, mostPerMinute)
	}
	return checkTimeout(e.Timeout)
}

func (w *Webhook) check() error {
	u, err := url.Parse(w.URL)
	switch {
	case err != nil || u.Hostname() == "":
		return errors.New("the url of the webhook is no address: write it like https://example.com/path") // it may hold a key: not shown
	case u.User != nil:
		return errors.New("the url of the webhook holds a password: leave it out, requests are signed")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return errors.New("the url of the webhook has to begin with https, or lead to this machine's loopback")
	case len(w.Secret) < leastSecret:
		return fmt.Errorf("the secret of the webhook has %d bytes: give at least %d, like those of openssl rand -hex 32", len(w.Secret), leastSecret)
	}
	return checkTimeout(w.Timeout)
}

func checkTimeout(d time.Duration) error {
	if d != 0 && (d < 100*time.Millisecond || d > longestTimeout) {
		return fmt.Errorf("the timeout is %v: choose one from 100ms to %v", d, longestTimeout)
	}
	return nil
}

// name is what an action is called where it is told of. It holds nothing that may be secret.
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

// wants says whether an action is for an event.
func (c *Config) wants(n *notice.Notice) bool {
	named := len(c.On) == 0 || slices.Contains(c.On, n.Name)
	return named && max(n.Severity, n.Was) >= c.Severity
}

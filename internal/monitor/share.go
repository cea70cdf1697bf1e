package monitor

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/helper"
)

// Share is one component's share of the monitor that all components of a Collector use, so that a machine is sampled
// once. Claim and Join return one. It is safe for concurrent use.
type Share struct {
	name    string
	config  *Config // nil: any will do
	slow    config.Slow
	started bool
}

// shared is the common monitor of the components of a process. It is global because their factories have nothing else
// in common.
var shared struct {
	mu      sync.Mutex // guards the fields below, and started of each Share
	claims  []*Share   // not stopped, with a config
	limits  []*Share   // not stopped, with a Slow
	users   int        // started and not stopped
	monitor *Monitor   // nil without users
}

// Claim registers a component that needs a monitor with this config. Call it when the component is created, before any
// is started, so that components without a config find this one in any order of starts. Only Interval, Root, NVML and
// Drives may be set. Explicit Drives win over automatic ones; their history lies next to the baselines of Limit. name
// stands for the component in errors. Each Claim needs a Stop.
func Claim(name string, c Config) *Share {
	s := &Share{name: name, config: &c}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.claims = append(shared.claims, s)
	return s
}

// Join registers a component that uses the monitor of the others, or else one with the defaults.
func Join() *Share { return &Share{} }

// Limit sets when windows are slow, for all components of the process. All components that set it must set the same
// value; the zero value sets nothing. Call it before any Start.
func (s *Share) Limit(name string, slow config.Slow) {
	if slow == (config.Slow{}) {
		return
	}
	s.name, s.slow = name, slow
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.limits = append(shared.limits, s)
}

// ErrDiffer means that two components have different settings for the common monitor.
var ErrDiffer = errors.New("all components of a Collector share one monitor, and the settings differ")

// Start returns the common monitor, and starts it for its first user. The error is ErrDiffer if claims differ, or the
// reason why no device can be read. Call it once.
func (s *Share) Start() (*Monitor, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	wanted, err := s.agreed()
	if err != nil {
		return nil, err
	}
	if m := shared.monitor; m != nil && len(shared.claims) > 0 && m.config.settings() != wanted.settings() {
		return nil, differ(running, m.config.settings(), s.name, wanted.settings())
	}
	if wanted.Slow, err = s.limit(); err != nil {
		return nil, err
	}
	if wanted.Drives, err = s.drives(); err != nil {
		return nil, err
	}
	if wanted.Drives != nil {
		wanted.Drives.History = drivesFile(wanted.Slow)
	}
	if shared.monitor == nil {
		if err := wanted.takeHelpers(); err != nil {
			return nil, err
		}
		m, err := New(wanted)
		if err != nil {
			return nil, err
		}
		m.Start()
		if err := m.CheckSources("sampling::root_path"); err != nil {
			m.Stop()
			return nil, err
		}
		shared.monitor = m
	}
	s.started = true
	shared.users++
	return shared.monitor, nil
}

// inherited are the helpers of a Collector. They end with it, and serve one monitor after the other.
var inherited = sync.OnceValues(helper.Inherit)

func (c *Config) takeHelpers() error {
	h, err := inherited()
	if err != nil {
		return err
	}
	c.Use(h)
	return nil
}

// running stands for the monitor that has started, in errors.
const running = "the running monitor"

// agreed returns the common config of all claims.
func (s *Share) agreed() (Config, error) {
	if len(shared.claims) == 0 {
		return Config{}, nil
	}
	first := shared.claims[0]
	for _, other := range shared.claims[1:] {
		if one, another := first.config.settings(), other.config.settings(); one != another {
			return Config{}, differ(first.name, one, other.name, another)
		}
	}
	return *first.config, nil
}

// limit returns the common Slow of all components that set one.
func (s *Share) limit() (slow config.Slow, err error) {
	name := ""
	limits := shared.limits
	if m := shared.monitor; m != nil && len(limits) > 0 {
		slow, name = m.config.Slow, running
	}
	for _, l := range limits {
		if name != "" && l.slow != slow {
			return slow, fmt.Errorf("%w: %s has slow: %+v, %s has %+v: give both the same, or leave it out of one",
				ErrDiffer, name, slow, l.name, l.slow)
		}
		slow, name = l.slow, l.name
	}
	return slow, nil
}

// drives returns the common health checks of all claims.
func (s *Share) drives() (*Drives, error) {
	var one *Drives
	name := ""
	if m := shared.monitor; m != nil && m.config.Drives != nil {
		one, name = m.config.Drives, running
	}
	for _, c := range shared.claims {
		other := c.config.Drives
		switch {
		case other == nil || one != nil && other.Auto:
		case one == nil || one.Auto && shared.monitor == nil:
			one, name = other, c.name
		case !reflect.DeepEqual(one.Ask, other.Ask) || one.Auto:
			return nil, fmt.Errorf("%w: %s and %s have different settings of smart: give both the same, or leave it out of one",
				ErrDiffer, name, c.name)
		}
	}
	if one == nil {
		return nil, nil
	}
	copied := *one
	return &copied, nil
}

func differ(name, one, other, another string) error {
	return fmt.Errorf("%w: %s has %s, %s has %s: "+
		"give both the same sampling (a processor without any takes the receiver's)", ErrDiffer, name, one, other, another)
}

// Stop ends the component's share; the last one stops the monitor and waits for it. It may be called without Start, and
// again.
func (s *Share) Stop() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	for _, list := range []*[]*Share{&shared.claims, &shared.limits} {
		*list = slices.DeleteFunc(*list, func(c *Share) bool { return c == s })
	}
	if !s.started {
		return
	}
	s.started = false
	if shared.users--; shared.users == 0 {
		shared.monitor.Stop()
		shared.monitor = nil
	}
}

package monitor

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/stallspan/stallspan/internal/config"
)

// Share is one component's part in the monitor that the components of a Collector have in common: a machine is sampled
// once, however many of them look at it. The zero value is of no use; Claim and Join make one. It is safe for
// concurrent use.
type Share struct {
	name    string
	config  *Config // nil for one that takes any
	slow    config.Slow
	started bool
}

// shared is what a process's components have in common. Their factories know nothing of each other, so it can only be
// the process's own.
var shared struct {
	mu      sync.Mutex
	claims  []*Share // made and not stopped, with a config
	limits  []*Share // the same of those that say when a window is slow
	users   int      // started and not stopped
	monitor *Monitor // nil without users
}

// Claim says that a component of this process is going to want a monitor with this config. It is called when the
// component is made, before any is started, so that those which take any config find it whatever the order of starts.
// Interval, Root, NVML and Drives count; what else Config has must be left out. Drives may be left out by any, and what was
// asked for wins over what was not; their history lies beside the baselines of Limit. name is what the component is called in errors.
// Each Claim needs its Stop.
func Claim(name string, c Config) *Share {
	s := &Share{name: name, config: &c}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.claims = append(shared.claims, s)
	return s
}

// Join is for a component that takes the monitor of another one, and one with the defaults where no other wants any.
func Join() *Share { return &Share{} }

// Limit says when windows are slow, for all components of the process: those that say so must say the same. It is called
// before any Start, and changes nothing where slow is the zero value.
func (s *Share) Limit(name string, slow config.Slow) {
	if slow == (config.Slow{}) {
		return
	}
	s.name, s.slow = name, slow
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.limits = append(shared.limits, s)
}

// ErrDiffer says that two components want to sample the same machine differently.
var ErrDiffer = errors.New("this machine is sampled once for all components of a Collector, and the settings differ")

// Start gives the common monitor, which begins to sample for its first user. The error is ErrDiffer when claims
// differ, or says why nothing can be watched. Call it once.
func (s *Share) Start() (*Monitor, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	settings, err := s.agreed()
	if err != nil {
		return nil, err
	}
	if m := shared.monitor; m != nil && len(shared.claims) > 0 && m.config.sampling() != settings.sampling() {
		return nil, differ("what samples already", m.config.sampling(), s.name, settings.sampling())
	}
	if settings.Slow, err = s.limited(); err != nil {
		return nil, err
	}
	if settings.Drives, err = s.asked(); err != nil {
		return nil, err
	}
	if settings.Drives != nil {
		settings.Drives.History = drivesFile(settings.Slow)
	}
	if shared.monitor == nil {
		m, err := New(settings)
		if err != nil {
			return nil, err
		}
		m.Start()
		if err := m.Blind("sampling::root_path"); err != nil {
			m.Stop()
			return nil, err
		}
		shared.monitor = m
	}
	s.started = true
	shared.users++
	return shared.monitor, nil
}

// agreed is the config that all claims have in common. shared.mu is held.
func (s *Share) agreed() (Config, error) {
	if len(shared.claims) == 0 {
		return Config{}, nil
	}
	first := shared.claims[0]
	for _, other := range shared.claims[1:] {
		if one, another := first.config.sampling(), other.config.sampling(); one != another {
			return Config{}, differ(first.name, one, other.name, another)
		}
	}
	return *first.config, nil
}

// limited is the Slow that all who say one have in common. shared.mu is held.
func (s *Share) limited() (slow config.Slow, err error) {
	name := ""
	limits := shared.limits
	if m := shared.monitor; m != nil && len(limits) > 0 {
		slow, name = m.config.Slow, "what samples already"
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

// asked is how all claims want drives to be asked: as those say who say something. shared.mu is held.
func (s *Share) asked() (*Drives, error) {
	var one *Drives
	name := ""
	if m := shared.monitor; m != nil && m.config.Drives != nil {
		one, name = m.config.Drives, "what samples already"
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

func differ(name string, config sampling, other string, another sampling) error {
	return fmt.Errorf("%w: %s has %v, %s has %v: give both the same sampling (a processor without any takes the receiver's)",
		ErrDiffer, name, config, other, another)
}

// Stop ends the component's part; the last one ends the sampling and waits for it. It may be called on one that never
// started, and again.
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

// Package config holds the settings that the agent, the receiver and the processor share, with their defaults and
// limits. Keys are the same in all three.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/source/cgroup"
	"github.com/stallspan/stallspan/internal/source/smart"
	"github.com/stallspan/stallspan/semconv"
)

// Off disables a file if it is given instead of a path.
const Off = "off"

// Auto uses what the machine allows.
const Auto = "auto"

// All looks for windows of kinds, too, that were not measured to be right often enough: see Sampling.Detect.
const All = "all"

// Defaults and limits.
const (
	DefaultInterval = 100 * time.Millisecond
	minInterval     = 10 * time.Millisecond
	maxInterval     = time.Second // GPU samples arrive up to 1 s late, and nothing waits longer for them

	minFactor, maxFactor = 1, 1000

	minLimit = time.Millisecond // a shorter one is a number without a unit
)

// Sampling says how the machine is read. All components of a Collector that set it must agree.
type Sampling struct {
	Interval time.Duration `yaml:"interval" mapstructure:"interval"`   // between two samples of a source
	RootPath string        `yaml:"root_path" mapstructure:"root_path"` // the host's "/", "/hostfs" in a container; "" for "/"
	NVML     string        `yaml:"nvml" mapstructure:"nvml"`           // path of libnvidia-ml.so.1, "" to search for it
	Schedule string        `yaml:"schedule" mapstructure:"schedule"`   // Off: do not follow threads through the scheduler
	Latency  string        `yaml:"latency" mapstructure:"latency"`     // Off: do not count how long each operation of a disk takes
	Jobs     string        `yaml:"jobs" mapstructure:"jobs"`           // Off: do not follow processes because they hold memory of a GPU
	Detect   string        `yaml:"detect" mapstructure:"detect"`       // Auto: look for loads of jobs; All: checkpoints, too
	Cgroups  []string      `yaml:"cgroups" mapstructure:"cgroups"`     // each that one of these patterns matches is a job

	// PodResources is the kubelet's socket, as this program sees it; "" for its usual place below RootPath, or Off.
	PodResources string `yaml:"pod_resources" mapstructure:"pod_resources"`
}

// DefaultSampling returns the settings of a component that sets none.
func DefaultSampling() Sampling { return Sampling{Interval: DefaultInterval} }

// Validate returns an error if the machine cannot be read in this way.
func (s Sampling) Validate() error {
	if s.Interval < minInterval || s.Interval > maxInterval {
		return fmt.Errorf("interval: the sampling interval is %v: choose one from %v to %v", s.Interval, minInterval,
			maxInterval)
	}
	if s.RootPath != "" && !filepath.IsAbs(s.RootPath) {
		return fmt.Errorf("root_path: %q does not begin with /", s.RootPath)
	}
	if err := cmp.Or(choose("schedule", s.Schedule, Auto, Off), choose("latency", s.Latency, Auto, Off),
		choose("jobs", s.Jobs, Auto, Off), choose("detect", s.Detect, Auto, All, Off)); err != nil {
		return err
	}
	if _, err := cgroup.ParsePatterns(s.Cgroups); err != nil {
		return fmt.Errorf("cgroups%w", err)
	}
	if s.PodResources != "" && s.PodResources != Off && !filepath.IsAbs(s.PodResources) {
		return fmt.Errorf("pod_resources: %.80q is no absolute path: give that of the kubelet's socket, or %s",
			s.PodResources, Off)
	}
	return nil
}

// Slow says when a window is slow, apart from storage stall. All components of a Collector that set it must agree.
type Slow struct {
	Baseline string        `yaml:"baseline" mapstructure:"baseline"` // file of baselines; "" or "off" for none
	Learn    string        `yaml:"learn" mapstructure:"learn"`       // what the file learns from; "" for LearnSpans
	Factor   float64       `yaml:"factor" mapstructure:"factor"`     // multiple of the baseline's p95; 0 for 1.5
	Load     time.Duration `yaml:"load" mapstructure:"load"`         // limit of a model load; 0 for none
	Epoch    time.Duration `yaml:"epoch" mapstructure:"epoch"`       // limit of an epoch; 0 for none
}

// What baselines learn from.
const (
	LearnSpans     = "spans"     // announced windows, and spans
	LearnAnnounced = "announced" // announced windows
)

// Learns reports whether baselines learn from announced windows, or from spans.
func (s Slow) Learns(spans bool) bool {
	switch s.Learn {
	case Off:
		return false
	case LearnAnnounced:
		return !spans
	}
	return true
}

// Validate returns an error if a limit is out of range or the file of baselines has no absolute path.
func (s Slow) Validate() error {
	if s.Factor != 0 && !(s.Factor >= minFactor && s.Factor <= maxFactor) { // NaN, too
		return fmt.Errorf("factor: the factor of slow windows is %v: choose one from %d to %d", s.Factor, minFactor,
			maxFactor)
	}
	if err := choose("learn", s.Learn, LearnSpans, LearnAnnounced, Off); err != nil {
		return err
	}
	if s.HasBaseline() && !filepath.IsAbs(s.Baseline) {
		return fmt.Errorf("baseline: the file of baselines is %q: give its absolute path", s.Baseline)
	}
	for _, limit := range []struct {
		key   string
		value time.Duration
	}{{"load", s.Load}, {"epoch", s.Epoch}} {
		switch {
		case limit.value < 0:
			return fmt.Errorf("%s: %v is negative: give a duration, like 30s", limit.key, limit.value)
		case limit.value > 0 && limit.value < minLimit:
			return fmt.Errorf("%s: %v is under %v, so a unit is missing: give a duration, like 30s", limit.key, limit.value,
				minLimit)
		}
	}
	return nil
}

// Spans says how spans show windows. The zero value has the defaults.
type Spans struct {
	SlowStatus string `yaml:"slow_status" mapstructure:"slow_status"` // of the span of a slow window; "" for StatusUnset
	Names      string `yaml:"span_names" mapstructure:"span_names"`   // "" for NamesGrouped
	Stalls     string `yaml:"stall_spans" mapstructure:"stall_spans"` // the kind of stalls' spans; "" for StallsClient
	Page       string `yaml:"page_url" mapstructure:"page_url"`       // the page of the machine; "" for no links to it
}

// Values of Spans.
const (
	StatusUnset  = "unset"   // a slow window is no error
	StatusError  = "error"   // backends mark it, and count it as a failure
	NamesGrouped = "grouped" // epochs of a run have the same name
	NamesIndexed = "indexed" // each epoch has its number in its name

	StallsClient   = "client"   // trace views draw a stall as a call to the disk
	StallsInternal = "internal" // without a call: service graphs and bills by calls do not count it
)

// Validate returns an error if a value is unknown. It begins with the key.
func (s Spans) Validate() error {
	return cmp.Or(choose("slow_status", s.SlowStatus, StatusUnset, StatusError),
		choose("span_names", s.Names, NamesGrouped, NamesIndexed),
		choose("stall_spans", s.Stalls, StallsClient, StallsInternal), validPage(s.Page))
}

// choose returns an error that begins with the key if a value is neither "" nor one of the choices.
func choose(key, value string, choices ...string) error {
	if value == "" || slices.Contains(choices, value) {
		return nil
	}
	last := len(choices) - 1
	return fmt.Errorf("%s: %.40q is unknown: choose %s or %s", key, value, strings.Join(choices[:last], ", "),
		choices[last])
}

// maxPage is the longest address of a page, in bytes.
const maxPage = 512

// validPage refuses what cannot be the begin of a link, or would give a secret to each reader of a span.
func validPage(page string) error {
	if page == "" {
		return nil
	}
	at, err := url.Parse(page)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil || at.RawQuery != "" ||
		at.Fragment != "" || len(page) > maxPage {
		return fmt.Errorf("page_url: %.60q is no address of a page: give one like http://gpu1.example:4319/, without a user, "+
			"a query or a token", page)
	}
	return nil
}

// Link is the address of the page at a time, with a window selected; "" without a page. It shows ten seconds more at
// both ends.
func (s Spans) Link(start, end time.Time, window string) string {
	if s.Page == "" {
		return ""
	}
	const margin, longest = 10, 7 * 24 * 3600 // seconds
	from, to := start.Unix()-margin, end.Unix()+margin
	link := fmt.Sprintf("%s/#from=%d&to=%d", strings.TrimSuffix(s.Page, "/"), max(from, to-longest), to)
	if window != "" {
		link += "&window=" + url.QueryEscape(window)
	}
	return link
}

// SlowIsError reports whether the span of a slow window has the status Error.
func (s Spans) SlowIsError() bool { return s.SlowStatus == StatusError }

// Indexed reports whether the number of an epoch is in the name of its span.
func (s Spans) Indexed() bool { return s.Names == NamesIndexed }

// StallsAreCalls reports whether the span of a stall is a call to the disk or mount.
func (s Spans) StallsAreCalls() bool { return s.Stalls != StallsInternal }

// HasBaseline reports whether windows are compared with a file of baselines.
func (s Slow) HasBaseline() bool { return s.Baseline != "" && s.Baseline != Off }

// Smart says how smartctl reads the health of drives. If the section is absent, drives are read if smartctl exists.
type Smart struct {
	Enabled  *bool  `yaml:"enabled" mapstructure:"enabled"`   // nil for true
	Smartctl string `yaml:"smartctl" mapstructure:"smartctl"` // path; "" to search for it
	Sudo     bool   `yaml:"sudo" mapstructure:"sudo"`         // run smartctl with sudo
	Disks    []Disk `yaml:"disks" mapstructure:"disks"`       // disks with settings of their own
}

// Disk has the settings of one disk.
type Disk struct {
	Device  string `yaml:"device" mapstructure:"device"`   // as in /dev/sda
	Type    string `yaml:"type" mapstructure:"type"`       // smartctl's --device; "" to let smartctl decide
	Enabled *bool  `yaml:"enabled" mapstructure:"enabled"` // nil for true
}

// Validate returns an error if the device or type of a disk cannot be used.
func (s *Smart) Validate() error {
	for i, d := range s.Options().Disks {
		err := d.Check()
		if d.Device == "" {
			err = errors.New("a disk needs a device, like /dev/sda")
		}
		if err != nil {
			return fmt.Errorf("disks[%d]: %w", i, err)
		}
	}
	return nil
}

// On reports whether drives are read.
func (s *Smart) On() bool { return s == nil || enabled(s.Enabled) }

// Options returns the options of the source of drive health.
func (s *Smart) Options() smart.Options {
	if s == nil {
		return smart.Options{}
	}
	o := smart.Options{Smartctl: s.Smartctl, Sudo: s.Sudo}
	for _, d := range s.Disks {
		o.Disks = append(o.Disks, smart.Disk{Device: d.Device, Type: d.Type, Off: !enabled(d.Enabled)})
	}
	return o
}

// Metric enables or disables one metric.
type Metric struct {
	Enabled *bool `yaml:"enabled" mapstructure:"enabled"` // nil for the default
}

// Metrics has the settings of metrics by name. A metric that is absent has the default: see semconv.Metric.OptIn.
type Metrics map[string]Metric

// Disabled returns the names of the disabled metrics.
func (all Metrics) Disabled() []string {
	var names []string
	for _, m := range semconv.Metrics {
		if m.OptIn && all[m.Name].Enabled == nil {
			names = append(names, m.Name)
		}
	}
	for name, m := range all {
		if !enabled(m.Enabled) {
			names = append(names, name)
		}
	}
	return names
}

func enabled(setting *bool) bool { return setting == nil || *setting }

// Nearest returns the known word that is most similar to a misspelled one, or "" if none is similar: at most
// one edit for three letters, rounded.
func Nearest(wrong string, known []string) string {
	if len(wrong) > 64 {
		return ""
	}
	wrong = strings.ToLower(wrong)
	best, fewest := "", 0
	for _, word := range known {
		d := distance(wrong, word)
		longer := max(len(wrong), len(word))
		if d <= (longer+1)/3 && (best == "" || d < fewest) {
			best, fewest = word, d
		}
	}
	return best
}

// distance returns the number of edits between two words: bytes inserted, removed, replaced, or swapped with the next
// one.
func distance(a, b string) int {
	before, above := make([]int, len(b)+1), make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}

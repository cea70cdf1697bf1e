package config

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	type settings interface{ Validate() error }
	disk := func(d Disk) *Smart { return &Smart{Disks: []Disk{d}} }
	for _, test := range []struct {
		settings settings
		want     string // "" for valid
	}{
		{DefaultSampling(), ""},
		{Sampling{Interval: 10 * time.Millisecond, RootPath: "/hostfs"}, ""},
		{Sampling{}, "interval: the sampling interval is 0s: choose one from 10ms to 1s"},
		{Sampling{Interval: time.Second + 1}, "interval"},
		{Sampling{Interval: time.Second, RootPath: "hostfs"}, `root_path: "hostfs" does not begin with /`},
		{Sampling{Interval: time.Second, Cgroups: []string{"/kubepods.slice/**", "system.slice/train-[0-9]*.service"}}, ""},
		{Sampling{Interval: time.Second, Cgroups: []string{"/a", "/b[/c"}}, `cgroups[1]: "/b[/c" is no pattern of cgroups`},
		{Sampling{Interval: time.Second, Cgroups: []string{"a/../b"}}, "cgroups[0]: "},
		{Sampling{Interval: time.Second, Latency: Off}, ""},
		{Sampling{Interval: time.Second, Latency: "on"}, `latency: "on" is unknown: choose auto or off`},
		{Sampling{Interval: time.Second, PodResources: "/run/kubelet.sock"}, ""},
		{Sampling{Interval: time.Second, PodResources: Off}, ""},
		{Sampling{Interval: time.Second, PodResources: "kubelet.sock"}, `pod_resources: "kubelet.sock" is no absolute path`},
		{Slow{}, ""},
		{Slow{Baseline: "/x/y.db", Factor: 1, Load: time.Second}, ""},
		{Slow{Baseline: Off}, ""},
		{Slow{Learn: Off}, ""},
		{Slow{Learn: LearnAnnounced}, ""},
		{Slow{Learn: "all"}, `learn: "all" is unknown: choose spans, announced or off`},
		{Slow{Baseline: "y.db"}, "baseline: the file of baselines is \"y.db\": give its absolute path"},
		{Slow{Factor: 0.9}, "factor: the factor of slow windows is 0.9: choose one from 1 to 1000"},
		{Slow{Factor: math.NaN()}, "factor"},
		{Slow{Epoch: -1}, "epoch: -1ns is negative"},
		{Slow{Load: 100}, "load: 100ns is under 1ms, so a unit is missing"},
		{Spans{}, ""},
		{Spans{SlowStatus: StatusError, Names: NamesIndexed}, ""},
		{Spans{SlowStatus: "ok"}, `slow_status: "ok" is unknown: choose unset or error`},
		{Spans{SlowStatus: StatusUnset, Names: "x"}, `span_names: "x" is unknown: choose grouped or indexed`},
		{Spans{Stalls: "x"}, `stall_spans: "x" is unknown: choose client or internal`},
		{Spans{Page: "https://gpu1.example/page/"}, ""},
		{Spans{Page: "gpu1.example:4319"}, `page_url: "gpu1.example:4319" is no address of a page`},
		{Spans{Page: "javascript://x/"}, "page_url"},
		{Spans{Page: "http://x/#token=secret"}, "page_url"},
		{Spans{Page: "http://user:secret@x/"}, "page_url"},
		{(*Smart)(nil), ""},
		{disk(Disk{Device: "/dev/sda", Type: "sat"}), ""},
		{disk(Disk{Type: "sat"}), "disks[0]: a disk needs a device"},
		{disk(Disk{Device: "/dev/sda; reboot"}), "disks[0]"},
	} {
		err := test.settings.Validate()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want)) {
			t.Errorf("%+v: got %v, want %q", test.settings, err, test.want)
		}
	}
}

func TestLearns(t *testing.T) {
	for learn, want := range map[string][2]bool{
		"": {true, true}, LearnSpans: {true, true}, LearnAnnounced: {true, false}, Off: {false, false},
	} {
		s := Slow{Learn: learn}
		if got := [2]bool{s.Learns(false), s.Learns(true)}; got != want {
			t.Errorf("%q: got %v for announced windows and spans, want %v", learn, got, want)
		}
	}
}

func TestEnabled(t *testing.T) {
	on, off := true, false
	for _, test := range []struct {
		smart *Smart
		want  bool
	}{{nil, true}, {&Smart{}, true}, {&Smart{Enabled: &on}, true}, {&Smart{Enabled: &off}, false}} {
		if got := test.smart.On(); got != test.want {
			t.Errorf("%+v: got %v, want %v", test.smart, got, test.want)
		}
	}
	all := Metrics{"a": {}, "b": {Enabled: &on}, "c": {Enabled: &off}}
	if got := all.Disabled(); !slices.Equal(got, []string{"process.disk.io", "system.cpu.utilization", "c"}) {
		t.Errorf("got disabled %q, want the metrics that are off by default, and c", got)
	}
	const other = "system.cpu.utilization"
	if got := (Metrics{"process.disk.io": {Enabled: &on}}).Disabled(); !slices.Equal(got, []string{other}) {
		t.Errorf("got disabled %q, want the other one that is off by default", got)
	}
	if got := (Metrics{"process.disk.io": {Enabled: &off}}).Disabled(); len(got) != 2 {
		t.Errorf("got disabled %q, want process.disk.io once, and the other one", got)
	}
}

func TestLink(t *testing.T) {
	start := time.Unix(1_795_435_200, 0)
	for _, c := range []struct {
		page, window string
		length       time.Duration
		want         string
	}{
		{"", "w1", time.Second, ""},
		{"http://gpu1:4319", "w1", time.Minute, "http://gpu1:4319/#from=1795435190&to=1795435270&window=w1"},
		{"http://gpu1:4319/", "", time.Minute, "http://gpu1:4319/#from=1795435190&to=1795435270"},
		{"http://x/gpu1/", "a&b", 8 * 24 * time.Hour, "http://x/gpu1/#from=1795521610&to=1796126410&window=a%26b"},
	} {
		if got := (Spans{Page: c.page}).Link(start, start.Add(c.length), c.window); got != c.want {
			t.Errorf("%q, window %q of %v: got %s, want %s", c.page, c.window, c.length, got, c.want)
		}
	}
}

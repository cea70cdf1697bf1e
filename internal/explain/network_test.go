package explain

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

func TestNetworkFinding(t *testing.T) {
	receiving := because(window.OtherNetwork, "receiving from 10.0.0.7:443 over TCP", 6*time.Second)
	timer := because(window.OtherTimer, "timer", time.Second)
	r := idleFor(1, window.NetworkBound, window.Shares{Busy: 0.3, Other: 0.7, Network: 0.6}, receiving, timer)
	serving(func(p *window.PeerUse) { p.RTT = 12 * time.Millisecond })(r)
	r.Network = 6 * time.Second
	want := "The GPU was busy 30 % and waited for data from the network 60 % of the time: " +
		"200 MiB came from 10.0.0.7:443 " +
		"(20 MiB/s over 1 connection; round trip 12 ms; each wait took 50 ms on average); 10 % was other waiting: " +
		"timer (10 %)."
	if got := Finding(r); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := Remedy(r); !strings.Contains(got, "about 2.4x faster (2.1 to 2.6)") {
		t.Errorf("got the remedy %s, want what there is to gain", got)
	}
	r.WhatIf = &window.WhatIf{NoNetwork: 2.4, RequestsLow: 2, RequestsHigh: 3.5}
	want = "about 2.4x faster (2.1 to 2.6), 2.0x to 3.5x with eight times as many requests at once."
	if got := Remedy(r); !strings.HasSuffix(got, want) {
		t.Errorf("got the remedy %s, want that it ends: %s", got, want)
	}
	if got := Answers(r); !slices.Contains(got, Answer{"eight times the requests at once", "2.0x to 3.5x"}) {
		t.Errorf("got the answers %v, want more requests among them", got)
	}
	r.Peers[0].Process = "PID 4711 minio"
	if got := Finding(r) + Remedy(r); strings.Count(got, "PID 4711 minio") != 2 {
		t.Errorf("got %s, want the process in both", got)
	}
	want = "is slow; without waiting for it, about 2.4x faster (2.1 to 2.6)."
	if got := Remedy(r); !strings.HasSuffix(got, want) {
		t.Errorf("got the remedy %s, want that it ends: %s", got, want)
	}
	r.Speedup, r.SpeedupHigh = 40, 50
	if got, want := Remedy(r), "is slow; without waiting for it, at least 2.1x faster."; !strings.HasSuffix(got, want) {
		t.Errorf("got the remedy %s, want that it ends: %s", got, want)
	}
	r.Speedup, r.SpeedupLow = 40, 30 // says no more than that it waited
	if got, want := Remedy(r), "is slow; nearly all of its time was waiting."; !strings.HasSuffix(got, want) {
		t.Errorf("got the remedy %s, want that it ends: %s", got, want)
	}
}

func TestMixedNetworkFinding(t *testing.T) {
	r := idleFor(1, window.Mixed, window.Shares{Busy: 0.2, CPU: 0.35, Other: 0.45, Network: 0.45})
	serving(func(*window.PeerUse) {})(r)
	r.Network = 4500 * time.Millisecond
	got, want := Finding(r), "The GPU waited for data from the network (45 % of the time) "+
		"and for the CPU work of the input "+
		"pipeline (35 %), and it was busy 20 %: 200 MiB came from 10.0.0.7:443"
	if !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s...", got, want)
	}
}

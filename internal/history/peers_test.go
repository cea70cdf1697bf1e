package history

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// A peer counts from zero when its job is followed: a window that began before its first connection has all of it.
func TestPeers(t *testing.T) {
	h := newHistory(t)
	reading := func(at time.Duration, received uint64) *sample.Sample {
		return &sample.Sample{At: sample.Stamp{Mono: at}, Peers: []sample.Peer{
			{Job: "a", Address: "10.0.0.7:443", Received: received, Sent: received / 100, Messages: received / 1000, Opened: 1},
			{Job: "a", Address: "10.0.0.7:443", Accepted: true, Received: 1},
		}}
	}
	for i := range 30 {
		add(t, h, reading(time.Duration(10+i)*time.Second, uint64(i+1)*100_000))
	}
	id := PeerID(&sample.Peer{Job: "a", Address: "10.0.0.7:443"})
	edge := &Edge{}
	h.Observe(edge, reading(39500*time.Millisecond, 3_050_000))
	for name, c := range map[string]struct {
		from, to Point
		want     float64
	}{
		"from before":    {at(time.Second), at(12 * time.Second), 300_000},
		"within":         {at(12 * time.Second), at(20 * time.Second), 800_000},
		"up to an edge":  {at(time.Second), Point{At: 39500 * time.Millisecond, Edge: edge}, 3_050_000},
		"without a peer": {at(time.Second), at(2 * time.Second), 0},
	} {
		d, ok := h.Between(Key{PeerReceived, id}, c.from, c.to)
		if !ok || d.Value != c.want {
			t.Errorf("%s: got %+v, %v; want %v", name, d, ok, c.want)
		}
	}
	if sent, _ := h.Between(Key{PeerSent, id}, at(12*time.Second), at(20*time.Second)); sent.Value != 8000 {
		t.Errorf("got %v bytes sent, want 8000", sent.Value)
	}
}

// Peers take no room of what verdicts need.
func TestPeersAreRefusedFirst(t *testing.T) {
	h, err := New(Config{Tiers: []Tier{{0, 600}}, MaxBytes: 8*600*int(axisCount) + 1000})
	if err != nil {
		t.Fatal(err)
	}
	add(t, h, &sample.Sample{At: sample.Stamp{Mono: time.Second}, Peers: []sample.Peer{
		{Job: "a", Address: "10.0.0.7:443"},
	}})
	if ids := h.IDs(PeerReceived); len(ids) != 0 {
		t.Errorf("got %v without room, want none", ids)
	}
}

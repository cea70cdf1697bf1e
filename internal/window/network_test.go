package window

import (
	"fmt"
	"testing"
	"time"
)

// A peer serves data, or does not, by what it exchanged with the job.
func TestServes(t *testing.T) {
	object := PeerUse{
		Address: "10.0.0.7:443", Received: 200 << 20, Sent: 100 << 10, Messages: 400, Waited: 6 * time.Second,
	}
	for name, c := range map[string]struct {
		change func(*PeerUse)
		others []PeerUse
		want   bool
	}{
		"an object store":        {func(*PeerUse) {}, nil, true},
		"small objects":          {func(p *PeerUse) { p.Received, p.Sent, p.Messages = 4<<20, 700<<10, 1000 }, nil, true},
		"a client of the job":    {func(p *PeerUse) { p.Accepted = true }, nil, false},
		"little":                 {func(p *PeerUse) { p.Received = 1<<20 - 1 }, nil, false},
		"gradients":              {func(p *PeerUse) { p.Sent = p.Received }, nil, false},
		"a few more than sent":   {func(p *PeerUse) { p.Sent = p.Received / 3 }, nil, false},
		"short answers":          {func(p *PeerUse) { p.Messages = p.Received / 1000 }, nil, false},
		"few bytes for its time": {func(p *PeerUse) { p.Received, p.Waited = 2<<20, time.Minute+5*time.Second }, nil, false},
		"a ring":                 {func(*PeerUse) {}, []PeerUse{{Address: "10.0.0.9:40000", Sent: 199 << 20}}, false},
		"a ring that accepted":   {func(*PeerUse) {}, []PeerUse{{Address: "10.0.0.5:40000", Accepted: true, Sent: 210 << 20}}, false},
		"results go elsewhere":   {func(*PeerUse) {}, []PeerUse{{Address: "10.0.0.9:9000", Sent: 20 << 20}}, true},
	} {
		p := object
		c.change(&p)
		if got := p.serves(append([]PeerUse{p}, c.others...)); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// What was waited for is found by address, or else among those that had no room of their own, but never among those
// that connected to the job.
func TestPeerAt(t *testing.T) {
	peers := []PeerUse{
		{Address: "10.0.0.7:443"}, {Address: "*:443"}, {Address: "[fd00::7]:9000"}, {Address: "10.0.0.2:8000", Accepted: true},
	}
	for from, want := range map[string]string{
		"10.0.0.7:443": "10.0.0.7:443", "10.0.0.8:443": "*:443", "[fd00::7]:9000": "[fd00::7]:9000",
		"10.0.0.2:8000": "", "10.0.0.8:80": "", "nothing": "",
	} {
		got := ""
		if p := peerAt(peers, from); p != nil {
			got = p.Address
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", from, got, want)
		}
	}
}

func TestMainPeers(t *testing.T) {
	var all []PeerUse
	for i := range 12 {
		all = append(all, PeerUse{Address: fmt.Sprint(i), Received: uint64(i)})
	}
	all[3].Waited = time.Second
	got := mainPeers(all)
	if len(got) != maxPeers || got[0].Address != "3" || got[1].Address != "11" {
		t.Errorf("got %+v, want 3, 11 and so on, eight in all", got)
	}
}

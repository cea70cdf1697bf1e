package window

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger/chain"
	"github.com/stallspan/stallspan/internal/sample"
)

// PeerUse is what the job exchanged with a peer over TCP in a window.
type PeerUse struct {
	Address  string // "10.0.0.7:443"; "*:443" or "*:*" for several
	Process  string // of a peer on this machine: "PID 4711 minio"; "" if it is not known
	Accepted bool   // the peers connected to the job
	Serves   bool   // the job fetches data from it
	Silent   bool   // the job has waited for it since it was heard, and nothing has come

	Received, Sent uint64
	Messages       uint64 // packets of data sent: at least one for each request
	Opened         uint64 // connections opened in the window
	Connections    int    // open at the end
	Closed         uint64 // connections closed until then: their last bytes are missing

	Heard time.Duration // monotonic: when data came last; 0 if it is not known
	Came  uint64        // bytes that came on the open connections since they began

	Waited time.Duration // of the ledger's other: waiting for its data
	Each   time.Duration // mean length of such a wait; 0 if it is not known

	RTT    time.Duration // shortest round trip; 0 if it is not known
	Late   float64       // share of the packets received that came out of order
	Window uint64        // bytes that may be on their way on one connection
}

// Rate is how many bytes the job received for each second of the window.
func (p *PeerUse) Rate(r *Report) float64 {
	return float64(p.Received) / max(r.Duration().Seconds(), 1e-9)
}

// addPeers finds the peers, and how long the job waited for data of those that serve data.
func (l *Ledger) addPeers(v *view, r *Report) {
	var peers []PeerUse
	for i := range v.machine.Peers {
		if use := v.peer(&v.machine.Peers[i]); use.Received+use.Sent > 0 || use.Connections > 0 {
			peers = append(peers, use)
		}
	}
	if len(peers) > 0 && l.Evidence.Followed() {
		var received time.Duration // waiting for any peer's data
		for _, gpu := range r.ledgers() {
			received += v.addWaits(peers, gpu)
		}
		v.hush(r, peers)
		for i := range peers {
			if p := &peers[i]; p.Silent || p.serves(peers) {
				p.Serves = true
				l.Network += p.Waited
			}
		}
		l.Network = min(l.Network, l.Other)
		l.served = l.Network > 0 && l.Network.Seconds() >= minServed*received.Seconds()
	}
	l.Peers = mainPeers(peers)
}

// peer returns what a peer did in the window.
func (v *view) peer(now *sample.Peer) PeerUse {
	id := history.PeerID(now)
	count := func(s history.Series) uint64 {
		grown, _ := v.between(s, id)
		return uint64(max(0, grown.Value))
	}
	use := PeerUse{
		Address: now.Address, Accepted: now.Accepted,
		Received: count(history.PeerReceived), Sent: count(history.PeerSent), Messages: count(history.PeerMessages),
		Opened: count(history.PeerOpened), Connections: now.Connections, Closed: now.Closed,
		RTT: now.MinRTT, Window: now.Window, Heard: now.Heard, Came: now.Came,
	}
	if now.Packets > 0 {
		use.Late = float64(now.OutOfOrder) / float64(now.Packets)
	}
	return use
}

// addWaits adds the waiting of one GPU's ledger to the peers, and returns all waiting for data of peers.
func (v *view) addWaits(peers []PeerUse, gpu string) (received time.Duration) {
	all, of := 0.0, v.scheduledOf(history.OtherNetwork, gpu)
	waits := v.machine.Waits[gpu]
	for i := range waits {
		if waits[i].Kind == chain.ForNetwork {
			all += waits[i].Time
		}
	}
	for i := range waits {
		w := &waits[i]
		if w.Kind != chain.ForNetwork || w.From == "" || all <= 0 {
			continue
		}
		time := seconds(of * w.Time / all)
		received += time
		p := peerAt(peers, w.From)
		if p == nil {
			continue
		}
		p.Waited += time
		if w.Times > 0 {
			p.Each = max(p.Each, seconds(w.Time/w.Times))
		}
		if _, process, known := strings.Cut(w.Name, " of PID "); known && p.Process == "" {
			process, _, _ = strings.Cut(process, ", in ")
			p.Process = "PID " + process
		}
	}
	return received
}

// peerAt returns the peer that a thread waited for: by its address, or else among those that had no room of their own.
func peerAt(peers []PeerUse, address string) *PeerUse {
	port := address[strings.LastIndexByte(address, ':')+1:]
	for _, name := range []string{address, "*:" + port, "*:*"} {
		for i := range peers {
			if p := &peers[i]; !p.Accepted && p.Address == name {
				return p
			}
		}
	}
	return nil
}

// serves reports whether the job fetches data from a peer, which is one of all: by docs/verdicts.md.
func (p *PeerUse) serves(all []PeerUse) bool {
	s := &Serving
	if p.Accepted || p.Received < s.Bytes || float64(p.Received) < s.Ratio*float64(p.Sent) ||
		p.Received <= s.Packet*p.Messages || float64(p.Received) < s.Rate*p.Waited.Seconds() {
		return false
	}
	return !slices.ContainsFunc(all, func(other PeerUse) bool {
		return other.Sent >= p.Received/similar && other.Sent <= p.Received*similar
	})
}

// mainPeers leaves the peers that were waited for most, and of the others those that moved most.
func mainPeers(peers []PeerUse) []PeerUse {
	slices.SortStableFunc(peers, func(x, y PeerUse) int {
		return cmp.Or(cmp.Compare(y.Waited, x.Waited), cmp.Compare(y.Received+y.Sent, x.Received+x.Sent))
	})
	return peers[:min(len(peers), maxPeers)]
}

// Serving returns the peer that serves data and was waited for longest; nil without one.
func (l *Ledger) Serving() *PeerUse {
	if i := slices.IndexFunc(l.Peers, func(p PeerUse) bool { return p.Serves }); i >= 0 {
		return &l.Peers[i]
	}
	return nil
}

package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// Limits of the remedies for waiting for the network.
const (
	lossy     = 0.01 // share of the packets received that came out of order
	tripping  = 0.5  // share of the waiting that round trips take
	fullPipe  = 0.5  // share of a connection's window that is on its way all the time
	answering = 4.0  // a wait this many times as long as a round trip is for the server
)

// fetched names the peers that the window waited for, with what came from them: ": 2.0 GiB came from 10.0.0.7:443 (34.0
// MiB/s over one connection; round trip 12 ms)".
func fetched(r *window.Report) string {
	p := r.Serving()
	if p == nil || p.Silent {
		return ""
	}
	others := 0
	for i := range r.Peers {
		if r.Peers[i].Serves && &r.Peers[i] != p {
			others++
		}
	}
	text := ": " + Size(p.Received) + " came from " + peerName(p)
	var numbers []string
	rate := Size(uint64(p.Rate(r))) + "/s"
	if n := connections(p); n > 0 {
		rate += " over " + count(n, "connection")
	}
	numbers = append(numbers, rate)
	if p.RTT > 0 {
		numbers = append(numbers, "round trip "+Duration(p.RTT.Seconds()))
	}
	if p.Each > 0 {
		numbers = append(numbers, "each wait took "+Duration(p.Each.Seconds())+" on average")
	}
	if p.Closed > 0 {
		numbers = append(numbers, "at least: what connections moved just before they were closed is not counted")
	}
	text += " (" + strings.Join(numbers, "; ") + ")"
	if others > 0 {
		text += fmt.Sprintf(", and more from %s", count(uint64(others), "other peer"))
	}
	return text
}

// connections is how many connections a peer had in the window.
func connections(p *window.PeerUse) uint64 { return max(p.Opened, uint64(p.Connections)) }

// peerName names a peer, and its process if it is on this machine.
func peerName(p *window.PeerUse) string {
	name := p.Address
	if group, is := strings.CutPrefix(p.Address, "*:"); group == "*" {
		name = "several peers"
	} else if is {
		name = "several peers on port " + group
	}
	if p.Process != "" {
		name += ", " + p.Process + " on this machine"
	}
	return name
}

// waitedForAll are the stalls of a mixed window, with those that are not small: "for data from the network (31 % of the
// time) and for storage (20 %)".
func waitedForAll(r *window.Report, s window.Shares) string {
	var stalls []string
	add := func(what string, share float64) {
		switch {
		case share < smallPart:
		case len(stalls) == 0:
			stalls = append(stalls, what+" ("+percent(share)+" of the time)")
		default:
			stalls = append(stalls, what+" ("+percent(share)+")")
		}
	}
	add("for data from the network", s.Network)
	add("for storage", s.Storage)
	if len(r.GPUIDs) > 0 {
		add("for the CPU work of the input pipeline", s.CPU)
		add("for a core for this work", s.Ready)
	}
	if n := len(stalls); n > 1 {
		return strings.Join(stalls[:n-1], ", ") + " and " + stalls[n-1]
	}
	return strings.Join(stalls, "")
}

// network reports whether waiting for the network is what to improve first.
func (x *situation) network() bool {
	s := &x.shares
	return x.Serving() != nil && (x.Verdict == window.NetworkBound ||
		x.Verdict == window.Mixed && s.Network >= s.Storage && (s.Network >= s.Work() || len(x.GPUIDs) == 0))
}

// sender is the peer that was waited for most; the zero PeerUse without one.
func (x *situation) sender() *window.PeerUse {
	if p := x.Serving(); p != nil {
		return p
	}
	return &window.PeerUse{}
}

// lossy reports whether packets on the way to this machine are lost.
func (x *situation) lossy() bool { return x.sender().Late >= lossy }

// trips reports whether round trips take much of the waiting: requests are small for the distance.
func (x *situation) trips() bool {
	p := x.sender()
	one := float64(p.Messages) / float64(max(1, connections(p)))
	return p.Waited > 0 && one*p.RTT.Seconds() >= tripping*p.Waited.Seconds()
}

// windowFull reports whether each connection carried about as much as it can: its window, once a round trip.
func (x *situation) windowFull() bool {
	p := x.sender()
	if p.Window == 0 || p.RTT < time.Millisecond || p.Waited <= 0 {
		return false
	}
	each := float64(p.Received) / p.Waited.Seconds() / float64(max(1, connections(p)))
	return each*p.RTT.Seconds() >= fullPipe*float64(p.Window)
}

func (x *situation) localServer() string {
	return "Look at " + x.sender().Process + ", which serves the data on this machine: it, or what it reads from, " +
		"is slow; " + x.without("without waiting for it") + "."
}

func (x *situation) repairLink() string {
	return "Look at the network: " + percent(x.sender().Late) + " of the packets from " + x.sender().Address +
		" came out of order, because others before them were lost or late; " + x.without("without waiting") + "."
}

func (x *situation) askForMore() string {
	p := x.sender()
	return fmt.Sprintf("Ask for more at a time, or for several things at once: %s brought %s each, "+
		"and a round trip takes %s; %s%s.",
		count(p.Messages, "request"), Size(p.Received/max(1, p.Messages)), Duration(p.RTT.Seconds()),
		x.without("without waiting"), x.moreRequests())
}

func (x *situation) moreConnections() string {
	p := x.sender()
	return fmt.Sprintf("Use more connections, with ranges of the same object: one carries at most %s at a time, "+
		"once in a round trip of %s; %s%s.", Size(p.Window), Duration(p.RTT.Seconds()), x.without("without waiting"),
		x.moreRequests())
}

func (x *situation) fetchAhead() string {
	p := x.sender()
	text := "Fetch ahead with several requests at once, or keep a copy on a local disk"
	if p.RTT > 0 && p.Each.Seconds() >= answering*p.RTT.Seconds() {
		text += " (the server answers late: each wait took " + Duration(p.Each.Seconds()) + ", a round trip " +
			Duration(p.RTT.Seconds()) + ")"
	}
	return text + ": " + x.gain + x.moreRequests() + "."
}

// moreRequests is what several requests at once gain where the peer stays as slow as it is; "" if that is not known.
func (x *situation) moreRequests() string {
	faster := withRequests(x.WhatIf)
	if faster == "" {
		return ""
	}
	return ", " + faster + " with eight times as many requests at once"
}

package window

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/ledger/chain"
	"github.com/stallspan/stallspan/internal/sample"
)

// silenceOf returns the silence of a window of 20 s whose leading thread waited for storage from 8 s on, while the
// job's reads brought so much.
func silenceOf(t *testing.T, brought uint64) *Silence {
	h := newHistory(t)
	for at := time.Duration(0); at <= 20*s; at += s {
		read := uint64(min(at, 8*s)/s) << 20
		if at > 8*s {
			read += brought * uint64(at/s-8) / 12
		}
		add(t, h, &sample.Sample{
			At: sample.Stamp{Mono: at}, Jobs: []sample.Job{{ID: "job", HasIO: true, ReadChars: read}},
		})
	}
	w := &Window{End: sample.Stamp{Mono: 20 * s}}
	m := &Machine{Target: ledger.Target{Job: "job"}, Holds: []ledger.Hold{{From: 8 * s, To: 20 * s}}}
	r := &Report{Window: *w, Facts: Facts{Mounts: []sample.Mount{{ID: 1, Point: "/a"}, {ID: 2, Point: "/b"}},
		MountUses: []MountUse{{Mount: sample.Mount{ID: 2, Point: "/b"}, Waiting: 12 * s}}}}
	return (&view{w, h, m}).silence(r, &Ledger{Evidence: FromSchedule})
}

// A long wait for storage is a silence of the file system that has requests without an answer.
func TestSilentMount(t *testing.T) {
	got := silenceOf(t, 0)
	if got == nil || got.Mount == nil || got.Mount.Point != "/b" || got.Length() != 12*s || !got.Goes ||
		got.Came != 8<<20 {
		t.Errorf("got %+v, want 12 s of /b after 8 MiB", got)
	}
}

// A peer is silent if the job has waited for it since it was heard: by its name, or in a lock or for several files
// while no thread of the job did anything.
func TestSilentPeers(t *testing.T) {
	for what, c := range map[string]struct {
		peer   sample.Peer
		reason history.Series
		waited time.Duration
		silent bool
	}{
		"receives from it":       {sample.Peer{Heard: 2 * s, Came: 5, Connections: 1}, history.OtherNetwork, 10 * s, true},
		"a lock":                 {sample.Peer{Heard: 2 * s, Came: 5 << 20, Connections: 1}, history.OtherLock, 10 * s, true},
		"several files":          {sample.Peer{Heard: 2 * s, Came: 5 << 20, Connections: 8}, history.OtherEvent, 10 * s, true},
		"a timer":                {sample.Peer{Heard: 2 * s, Came: 5 << 20, Connections: 1}, history.OtherTimer, 10 * s, false},
		"hardly anything came":   {sample.Peer{Heard: 2 * s, Came: 5 << 10, Connections: 1}, history.OtherLock, 10 * s, false},
		"it has done other work": {sample.Peer{Heard: 2 * s, Came: 5 << 20, Connections: 1}, history.OtherLock, 6 * s, false},
		"heard just now":         {sample.Peer{Heard: 9 * s, Came: 5 << 20, Connections: 1}, history.OtherLock, 10 * s, false},
		"it connected to us": {sample.Peer{Heard: 2 * s, Came: 5 << 20, Connections: 1, Accepted: true}, history.OtherLock,
			10 * s, false},
		"it is closed": {sample.Peer{Heard: 2 * s, Came: 5 << 20}, history.OtherLock, 10 * s, false},
	} {
		scheduled := history.Scheduled{Time: 10 * s}
		scheduled.Other[c.reason-history.OtherGPU] = c.waited
		c.peer.Address = "10.0.0.7:443"
		r := ledgerWith(t, scheduled, func(_ *Report, m *Machine) {
			m.Peers = []sample.Peer{c.peer}
			if c.reason == history.OtherNetwork {
				m.Waits = map[string]ledger.Waits{"": {
					{Reason: chain.Reason{Kind: chain.ForNetwork, From: c.peer.Address}, Time: 1},
				}}
			}
		})
		silent := r.Silence != nil && r.Silence.Peer != nil
		if silent != c.silent {
			t.Errorf("%s: got %+v, want silent %v", what, r.Silence, c.silent)
		}
		if silent && (r.Verdict != NetworkBound || r.Silence.Length() != 8*s || r.Silence.Came != c.peer.Came) {
			t.Errorf("%s: got %s and %+v, want network_bound and 8 s", what, r.Verdict, r.Silence)
		}
	}
}

package window

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/sample"
)

// nfsAt is a reading of a mount of NFS that did so many reads of 4 KiB, 10 ms each.
func nfsAt(at time.Duration, reads uint64) *sample.Sample {
	each := func(d time.Duration) time.Duration { return time.Duration(reads) * d }
	return &sample.Sample{At: sample.Stamp{Mono: at}, MountsRead: true, MountCounters: []sample.MountCounters{{
		ID: "server:/export /data", Source: "server:/export", Point: "/data", Type: "nfs4", Minor: 50,
		Read: sample.MountOperations{Operations: reads, Bytes: reads << 12, Queue: each(time.Millisecond),
			RoundTrip: each(8 * time.Millisecond), Time: each(10 * time.Millisecond)},
		Other:           sample.MountOperations{Operations: reads / 10, Time: each(100 * time.Microsecond)},
		Retransmissions: reads / 100,
		Called:          reads << 11, Connections: 1, ReadSize: 1 << 20, Session: true, WaitingTime: at, Waiting: 1,
		Has: sample.HasMountOperations | sample.HasMountRequests | sample.HasMountTime | sample.HasMountTransport |
			sample.HasMountWaiting,
	}}}
}

// jobAt is a reading of a job whose read calls returned so many bytes.
func jobAt(at time.Duration, chars uint64) *sample.Sample {
	return &sample.Sample{At: sample.Stamp{Mono: at}, Jobs: []sample.Job{{ID: "job", ReadChars: chars, HasIO: true}}}
}

// onNFS returns the report of a window of 10 s in which a job read from NFS. In a container the mount point is another
// one.
func onNFS(t *testing.T, chars uint64, change func(*Window, *Machine)) *Report {
	t.Helper()
	h, err := history.New(history.Config{})
	if err != nil {
		t.Fatal(err)
	}
	add := func(all ...*sample.Sample) {
		for _, s := range all {
			if err := h.Append(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	edge := func(all ...*sample.Sample) *history.Edge {
		e := h.NewEdge()
		for _, s := range all {
			h.Observe(e, s)
		}
		return e
	}
	const s = time.Second
	add(nfsAt(0, 1000), jobAt(0, 0))
	w := Window{Job: "job", Start: sample.Stamp{Mono: s / 2}, End: sample.Stamp{Mono: 10*s + s/2}}
	w.StartEdge = edge(nfsAt(s/2, 1500), jobAt(s/2, 0))
	for i := range uint64(10) {
		at := s * time.Duration(i+1)
		add(nfsAt(at, 2000+1000*i), jobAt(at, chars*(i+1)/10))
	}
	w.EndEdge = edge(nfsAt(w.End.Mono, 11500), jobAt(w.End.Mono, chars))
	m := Machine{
		Target: ledger.Target{Job: "job"}, Counted: nfsAt(w.End.Mono, 11500).MountCounters,
		Mounts: []sample.Mount{
			{ID: 9, Point: "/local-only", Type: "nfs4", Source: "other:/", Minor: 77, LastSeen: 5 * s},
			{ID: 7, Point: "/in/container", Type: "nfs4", Source: "server:/export", Minor: 50, LastSeen: 5 * s},
		},
	}
	if change != nil {
		change(&w, &m)
	}
	return Make(h, &w, m)
}

func TestMountUses(t *testing.T) {
	r := onNFS(t, 0, nil)
	if len(r.MountUses) != 1 || len(r.Mounts) != 2 || r.Mounts[0].ID != 7 {
		t.Fatalf("got uses %+v of mounts %+v, want those of the one with counters, and that one first", r.MountUses, r.Mounts)
	}
	u := &r.MountUses[0]
	want := MountDone{10000, 10000 << 12, 10 * time.Second, 80 * time.Second, 100 * time.Second}
	if u.Read != want || u.Other.Operations != 1000 || u.Retransmissions != 100 || u.Waiting != 10*time.Second ||
		u.Partial || !u.Session ||
		u.Point != "/in/container" || u.Connections != 1 {
		t.Errorf("got %+v, want reads %+v", u, want)
	}
}

// Without readings at the ends, as of a span, the growth is interpolated.
func TestMountUsesOfASpan(t *testing.T) {
	r := onNFS(t, 0, func(w *Window, _ *Machine) {
		w.StartEdge, w.EndEdge, w.Start.Mono, w.End.Mono = nil, nil, 1500*time.Millisecond, 8500*time.Millisecond
	})
	if got := r.MountUses[0].Read.Operations; got != 7000 {
		t.Errorf("got %d reads, want 7000", got)
	}
	if r.Fetch != nil {
		t.Errorf("got %+v, want nothing: the job's calls are kept for a minute only", r.Fetch)
	}
}

func TestMountThatCameInTheWindow(t *testing.T) {
	r := onNFS(t, 0, func(_ *Window, m *Machine) { m.Counted[0].ID = "new" })
	if u := &r.MountUses[0]; !u.Partial || u.Read.Operations != 0 {
		t.Errorf("got %+v, want a partial use", u)
	}
}

// How a job reads follows from what its read calls returned of what came from the server.
func TestFetch(t *testing.T) {
	const came = 10000 << 12
	for name, test := range map[string]struct {
		chars  uint64
		change func(*Window, *Machine)
		want   bool
	}{
		"by page faults":             {chars: 1 << 20, want: true},
		"by calls":                   {chars: came},
		"a sixth by calls":           {chars: came / 6},
		"a twelfth by calls":         {chars: came / 12, want: true},
		"another job reads by calls": {change: func(_ *Window, m *Machine) { m.Counted[0].Has |= sample.HasMountCalled }},
		"calls of programs":          {chars: 0, change: func(_ *Window, m *Machine) { m.Counted[0].Has &^= sample.HasMountRequests }},
		"a load of a file on FUSE": {chars: 9000, want: true, change: func(w *Window, m *Machine) {
			m.Counted[0].Has = sample.HasMountWaiting
			w.Kind, w.Seen = ModelLoad, Seen{
				Size: 900 << 20, Cached: 100 << 20, HasCached: true, After: 890 << 20, HasAfter: true,
			}
		}},
		"a load of a part of it by calls": {chars: 20 << 20, change: func(w *Window, m *Machine) {
			m.Counted[0].Has = sample.HasMountWaiting
			w.Kind, w.Seen = ModelLoad, Seen{Size: 900 << 20, HasCached: true, After: 20 << 20, HasAfter: true}
		}},
		"a load of a small part of it": {chars: 9000, change: func(w *Window, m *Machine) {
			m.Counted[0].Has = sample.HasMountWaiting
			w.Kind, w.Seen = ModelLoad, Seen{Size: 900 << 20, HasCached: true, After: 256 << 20, HasAfter: true}
		}},
		"a load of a file that was cached": {chars: 9000, change: func(w *Window, m *Machine) {
			m.Counted[0].Has = sample.HasMountWaiting
			w.Kind, w.Seen = ModelLoad, Seen{Size: 900 << 20, Cached: 900 << 20, HasCached: true, After: 900 << 20,
				HasAfter: true}
		}},
		"calls are not known": {change: func(_ *Window, m *Machine) { m.NoJobReads = true }},
	} {
		r := onNFS(t, test.chars, test.change)
		if got := r.Fetch != nil && r.Fetch.Mapped(); got != test.want {
			t.Errorf("%s: got %+v, want mapped %v", name, r.Fetch, test.want)
		}
	}
}

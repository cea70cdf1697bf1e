package window

import (
	"syscall"
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

// endedOf reports whether a wait for other threads, from 10 s on, is for a process that ended then, with that status.
// The job worked for a share of the time.
func endedOf(t *testing.T, at, lived time.Duration, status int, worked float64) bool {
	h := newHistory(t)
	for now := time.Duration(0); now <= 20*s; now += s {
		cpu := of(worked * now.Seconds())
		add(t, h, &sample.Sample{At: sample.Stamp{Mono: now}, Jobs: []sample.Job{{ID: "job", CPUTime: cpu}}})
	}
	m := &Machine{Target: ledger.Target{Job: "job"}, Holds: []ledger.Hold{{From: 10 * s, To: 20 * s, Others: true}},
		Ended: []sample.Ended{{PID: 9, At: at, Lived: lived, Status: status}}}
	found := (&view{&Window{End: sample.Stamp{Mono: 20 * s}}, h, m}).silence(&Report{}, &Ledger{Evidence: FromSchedule})
	return found != nil && len(found.Ended) == 1 && found.Length() == 10*s && found.Goes
}

// A wait is for what ended by a signal at any time, and for what ended by itself as it began: not for a reader that
// closed its pipe, nor for what ended with success while a wait is over.
func TestEndedWorkers(t *testing.T) {
	for name, c := range map[string]struct {
		at     time.Duration
		status syscall.WaitStatus
		want   bool
	}{
		"killed":                  {3 * s, syscall.WaitStatus(syscall.SIGKILL), true},
		"killed before it began":  {0, syscall.WaitStatus(syscall.SIGKILL), true},
		"killed after it":         {21 * s, syscall.WaitStatus(syscall.SIGKILL), false},
		"stopped":                 {12 * s, syscall.WaitStatus(syscall.SIGSTOP)<<8 | 0x7f, true},
		"its reader went away":    {10 * s, syscall.WaitStatus(syscall.SIGPIPE), false},
		"an error in the wait":    {15 * s, 3 << 8, true},
		"an error long before it": {3 * s, 3 << 8, false},
		"ended, or not known how": {10 * s, 0, true},
	} {
		if got := endedOf(t, c.at, 2*s, int(c.status), 0); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// quietOf returns the silence of a wait of 20 s in which so much came: in the first two seconds, and a share of it
// after 10 s.
func quietOf(t *testing.T, all, after float64) ledger.Hold {
	h := newHistory(t)
	for at := time.Duration(0); at <= 20*s; at += s {
		read := all * (1 - after) * min(1, at.Seconds()/2)
		if at > 10*s {
			read = all
		}
		add(t, h, &sample.Sample{
			At: sample.Stamp{Mono: at}, Jobs: []sample.Job{{ID: "job", HasIO: true, ReadChars: uint64(read)}},
		})
	}
	w := &Window{End: sample.Stamp{Mono: 20 * s}}
	return (&view{w, h, &Machine{Target: ledger.Target{Job: "job"}}}).quiet(history.JobReadChars, ledger.Hold{To: 20 * s})
}

// Where several threads read for the leading one, its wait goes back to before the silence.
func TestSilenceWithinAWait(t *testing.T) {
	if got := quietOf(t, 50<<20, 0); got != (ledger.Hold{From: 2 * s, To: 20 * s}) {
		t.Errorf("got %v, want the time since the last byte", got)
	}
	steady := func(at time.Duration) uint64 { return uint64(at.Seconds() * 100e3) }
	h := newHistory(t)
	for at := time.Duration(0); at <= 60*s; at += s {
		add(t, h, &sample.Sample{
			At: sample.Stamp{Mono: at}, Jobs: []sample.Job{{ID: "job", HasIO: true, ReadChars: steady(at)}},
		})
	}
	v := &view{&Window{End: sample.Stamp{Mono: 60 * s}}, h, &Machine{Target: ledger.Target{Job: "job"}}}
	if got := v.quiet(history.JobReadChars, ledger.Hold{To: 60 * s}); got.To-got.From > 2*s {
		t.Errorf("got %v of a slow server, want no silence", got)
	}
}

// silentDisk reports whether a disk is silent that completes operations in the first part of a silence of 100 s.
func silentDisk(t *testing.T, part float64) bool {
	h := newHistory(t)
	for at := time.Duration(0); at <= 100*s; at += s {
		did := uint64(min(at.Seconds(), 100*part))
		add(t, h, &sample.Sample{At: sample.Stamp{Mono: at}, Disks: []sample.Disk{
			{Name: "sda", Leaf: true, ReadIOs: did, IOTicks: at},
		}})
	}
	v := &view{&Window{End: sample.Stamp{Mono: 100 * s}}, h, &Machine{}}
	_, got := v.silentStorage(&Report{Facts: Facts{From: []string{"sda"}}}, 0, 100*s)
	return got == "sda"
}

// TestSilentDisk: of two disks that complete nothing, the silent one has an operation.
func TestSilentDisk(t *testing.T) {
	h := newHistory(t)
	for at := time.Duration(0); at <= 20*s; at += s {
		add(t, h, &sample.Sample{At: sample.Stamp{Mono: at}, Disks: []sample.Disk{
			{Name: "vda", Leaf: true, ReadIOs: 100, IOTicks: s}, {Name: "loop1", Leaf: true, ReadIOs: 100, IOTicks: at},
		}})
	}
	v := &view{&Window{End: sample.Stamp{Mono: 20 * s}}, h, &Machine{}}
	r := &Report{Facts: Facts{From: []string{"vda", "loop1"}}}
	if _, got := v.silentStorage(r, 4*s, 20*s); got != "loop1" {
		t.Errorf("got %q, want loop1", got)
	}
	v.machine = &Machine{Devices: [][]string{{"vda"}, {"dm-0"}}, Layers: []Layer{{Name: "dm-0", On: []string{"loop1"}}}}
	if _, got := v.silentStorage(&Report{}, 4*s, 20*s); got != "loop1" {
		t.Errorf("got %q of disks that did nothing in the window, want loop1", got)
	}
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

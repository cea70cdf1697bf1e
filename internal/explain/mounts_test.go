package explain

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// onServer is a report of a window that waited for NFS.
func onServer(u window.MountUse) *window.Report {
	r := &window.Report{Facts: window.Facts{Scope: window.Process, GPUIDs: []string{"gpu0"}}, Judgement: window.Judgement{Verdict: window.StorageBound, Speedup: 2.5}}
	r.Kind = window.Epoch
	divide(r, window.Shares{Busy: 0.4, Storage: 0.6})
	onMount(r, u)
	return r
}

func TestFindingNamesTheMount(t *testing.T) {
	read := done(1240, 128<<10, 45*time.Millisecond)
	tests := []struct {
		use  window.MountUse
		want string
	}{
		{
			window.MountUse{Read: read, Retransmissions: 12},
			"files in use are on /data (nfs4 from server:/export: 1240 reads of 128 KiB, 45 ms each, 12 retransmissions), which is",
		},
		{window.MountUse{Read: done(1, 4096, time.Second), Retransmissions: 1}, ": 1 read of 4 KiB, 1.0 s, 1 retransmission),"},
		{window.MountUse{Write: done(10, 1<<20, 45*time.Millisecond)}, ": 10 writes of 1 MiB, 45 ms each),"},
		{
			window.MountUse{Other: done(9000, 0, time.Millisecond), Read: done(3, 10, time.Millisecond)},
			": 3 reads of 10 B, 1 ms each, 9000 metadata operations, 1 ms each),",
		},
		{window.MountUse{}, "(nfs4 from server:/export), which"},
	}
	for _, test := range tests {
		if got := Finding(onServer(test.use)); !strings.Contains(got, test.want) {
			t.Errorf("got %q, want %q in it", got, test.want)
		}
	}
	fuse := onServer(window.MountUse{Waiting: 38 * time.Second})
	fuse.MountUses[0].Has = sample.HasMountWaiting
	want := "server:/export: 3.8 requests waiting on average), which"
	if got := Finding(fuse); !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
}

func TestMountsInJSON(t *testing.T) {
	r := onServer(window.MountUse{Read: done(100, 1<<20, 50*time.Millisecond), Retransmissions: 3, Connections: 4,
		ReadSize: 1 << 20})
	r.Mounts = append(r.Mounts, sample.Mount{ID: 31, Point: "/other", Type: "nfs4", Source: "server:/other"})
	got, err := json.Marshal(NewReport(r).Mounts)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"point":"/data","type":"nfs4","source":"server:/export","read":{"operations":100,"bytes":104857600,` +
		`"time_mean_s":0.05,"round_trip_mean_s":0.05,"queue_mean_s":0},"requests":true,"retransmissions":3,"connections":4,` +
		`"read_size_bytes":1048576},{"point":"/other","type":"nfs4","source":"server:/other"}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The remedies about a mount need operations that explain the wait, and a count of requests.
func TestMountRemediesNeedEvidence(t *testing.T) {
	small := window.MountUse{Read: done(5000, 4<<10, time.Millisecond)} // 5 of the 6 s
	if got := newSituation(onServer(small)).advice().Name; got != "read larger pieces" {
		t.Fatalf("got %s, want read larger pieces", got)
	}
	for name, change := range map[string]func(*window.Report){
		"they took less than half of the wait": func(r *window.Report) { r.MountUses[0].Read.Time = 2 * time.Second },
		"few":                                  func(r *window.Report) { r.MountUses[0].Read.Operations = 99 },
		"calls of programs":                    func(r *window.Report) { r.MountUses[0].Has &^= sample.HasMountRequests },
		"mounted in the window":                func(r *window.Report) { r.MountUses[0].Partial = true },
		"a disk was read as well":              func(r *window.Report) { r.Disks = []window.DiskUse{{Name: "sda"}} },
		"large":                                func(r *window.Report) { r.MountUses[0].Read.Bytes = 5000 << 17 },
		"as large as the mount allows":         func(r *window.Report) { r.MountUses[0].ReadSize = 4 << 10 },
		"the GPU was busy":                     func(r *window.Report) { r.Verdict = window.GPUBound },
	} {
		r := onServer(small)
		change(r)
		if got := newSituation(r).advice().Name; got == "read larger pieces" {
			t.Errorf("%s: got %s, want another remedy", name, got)
		}
	}
	for name, test := range map[string]struct {
		change func(*window.MountUse)
		want   string
	}{
		"one connection":                {func(*window.MountUse) {}, "more connections"},
		"several":                       {func(u *window.MountUse) { u.Connections = 4 }, ""},
		"a session":                     {func(u *window.MountUse) { u.Session = true }, "more slots"},
		"several of a session":          {func(u *window.MountUse) { u.Session, u.Connections = true, 4 }, "more slots"},
		"writes in a session":           {func(u *window.MountUse) { u.Session, u.Write = true, u.Read; u.Write.Queue *= 2 }, "more connections"},
		"lost answers":                  {func(u *window.MountUse) { u.Retransmissions = 5 }, "find why nothing answers"},
		"few lost answers":              {func(u *window.MountUse) { u.Retransmissions = 1; u.Read.Queue *= 100; u.Read.Time *= 100 }, "more connections"},
		"lost answers that cost little": {func(u *window.MountUse) { u.Retransmissions, u.Read.Queue = 5, 0 }, ""},
	} {
		u := window.MountUse{Read: done(200, 128<<10, 50*time.Millisecond), Connections: 1}
		u.Read.Queue = u.Read.Time / 2
		test.change(&u)
		got := newSituation(onServer(u)).advice().Name
		queue := got == "more connections" || got == "more slots" || got == "find why nothing answers"
		if test.want != "" && got != test.want || test.want == "" && queue {
			t.Errorf("%s: got %s, want %q", name, got, test.want)
		}
	}
	mapped := func(f window.Fetch) string {
		r := onServer(window.MountUse{})
		r.Fetch = &f
		return newSituation(r).advice().Name
	}
	if got := mapped(window.Fetch{Bytes: 100 << 20, Called: 9 << 20}); got != "read eagerly" {
		t.Errorf("9 of 100 MiB by calls: got %s, want read eagerly", got)
	}
	for _, f := range []window.Fetch{{Bytes: 100 << 20, Called: 11 << 20}, {Bytes: 15 << 20}} {
		if got := mapped(f); got == "read eagerly" {
			t.Errorf("%+v: got %s, want another remedy", f, got)
		}
	}
}

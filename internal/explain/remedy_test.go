package explain

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// divide sets the ledger of a report of ten seconds.
func divide(r *window.Report, s window.Shares) {
	r.Split, r.End.Mono = true, 10*time.Second
	part := func(share float64) time.Duration { return time.Duration(share * float64(r.End.Mono)) }
	r.Busy, r.Storage, r.CPU, r.Other = part(s.Busy), part(s.Storage), part(s.Work()), part(s.Other)
	r.Ready, r.Network = part(s.Ready), part(s.Network)
}

// serving gives a report a peer that serves data.
func serving(change func(*window.PeerUse)) func(*window.Report) {
	return func(r *window.Report) {
		p := window.PeerUse{Address: "10.0.0.7:443", Serves: true, Received: 200 << 20, Sent: 1 << 20, Messages: 50,
			Opened: 1, Connections: 1, Waited: 6 * time.Second, Each: 50 * time.Millisecond,
			RTT: 200 * time.Microsecond}
		change(&p)
		r.Peers, r.Speedup, r.SpeedupLow, r.SpeedupHigh = []window.PeerUse{p}, 2.4, 2.1, 2.6
	}
}

// situations has one report for every line of the table, in its order. The default is a window of ten seconds with a
// GPU that reads 50 MiB/s from a disk.
func situations() []func(*window.Report) {
	bound := func(v window.Verdict, change func(*window.Report)) func(*window.Report) {
		return func(r *window.Report) {
			r.Verdict = v
			if v == window.CPUBound {
				r.Speedup = 1
			}
			divide(r, map[window.Verdict]window.Shares{
				window.GPUBound: {Busy: 1}, window.StorageBound: {Busy: 0.4, Storage: 0.6},
				window.CPUBound:     {Busy: 0.4, CPU: 0.6},
				window.NetworkBound: {Busy: 0.4, Other: 0.6, Network: 0.6},
				window.Mixed:        {Busy: 0.4, Storage: 0.35, CPU: 0.25}, window.Unknown: {Busy: 0.3, Other: 0.7},
			}[v])
			if change != nil {
				change(r)
			}
		}
	}
	return []func(*window.Report){
		bound(window.Unknown, func(r *window.Report) {
			r.Scope, r.Missing = window.Host, []window.Missing{{Reason: window.ClientGone}}
		}),
		bound(window.Unknown, func(r *window.Report) { r.Scope, r.GPUIDs = window.Host, nil }),
		bound(window.NetworkBound, func(r *window.Report) {
			r.Silence = &window.Silence{Peer: &window.PeerUse{Address: "10.0.0.7:443", Silent: true}, Goes: true}
		}),
		bound(window.GPUBound, nil),
		bound(window.StorageBound, func(r *window.Report) {
			r.GPUIDs = []string{"gpu0", "gpu1"}
			r.Ledgers = []window.GPULedger{{ID: "gpu0", Busy: 2 * time.Second}, {ID: "gpu1", Index: 1,
				Busy: 9800 * time.Millisecond}}
			r.Busy, r.Storage, r.Other, r.Gain, r.Speedup = 11800*time.Millisecond, 8*time.Second, 0,
				400*time.Millisecond, 1.02
		}),
		bound(window.CPUBound, func(r *window.Report) {
			r.Kind, r.Faults = window.ModelLoad, &window.Faults{Count: 200000, Kernel: 2 * time.Second, Share: 0.8}
		}),
		bound(window.CPUBound, func(r *window.Report) {
			r.Kind, r.Load = window.ModelLoad, window.Load{Size: 1, Hit: 1, HasHit: true}
		}),
		bound(window.NetworkBound, serving(func(p *window.PeerUse) { p.Process = "PID 4711 minio" })),
		bound(window.NetworkBound, serving(func(p *window.PeerUse) { p.Late = 0.02 })),
		bound(window.NetworkBound, serving(func(p *window.PeerUse) { p.Messages, p.RTT = 5000, 2*time.Millisecond })),
		bound(window.NetworkBound, serving(func(p *window.PeerUse) { p.Window, p.RTT = 1<<20, 40*time.Millisecond })),
		bound(window.NetworkBound, serving(func(*window.PeerUse) {})),
		bound(window.StorageBound, func(r *window.Report) {
			limit := sample.Limit{Device: "sda", Cgroup: "/jobs/a", Control: sample.IOMax, ReadBytes: 100 << 20}
			reached := &window.Limited{Limit: limit, Kind: sample.ReadBytesLimit}
			r.SlowDevice = &window.SlowDevice{DiskUse: r.Disks[0], Limit: reached}
		}),
		bound(window.StorageBound, func(r *window.Report) {
			r.Squeezed = &window.Squeezed{MemoryLimit: sample.MemoryLimit{Cgroup: "/a", Limit: 1 << 30}, Again: 5 << 30}
		}),
		bound(window.StorageBound, func(r *window.Report) { r.Bypass = &window.Bypass{Read: 5 << 30, Gone: 4 << 30} }),
		bound(window.StorageBound, func(r *window.Report) {
			u := window.MountUse{Read: done(2, 1<<20, 9*time.Second), Retransmissions: 3, Connections: 1}
			u.Read.Queue = u.Read.Time * 9 / 10
			onMount(r, u)
		}),
		bound(window.StorageBound, func(r *window.Report) {
			onMount(r, window.MountUse{})
			r.MountUses, r.Fetch = nil, &window.Fetch{Bytes: 512 << 20, Called: 12 << 10}
		}),
		bound(window.StorageBound, func(r *window.Report) {
			onMount(r, window.MountUse{Other: done(5000, 0, 900*time.Microsecond), Read: done(200, 4<<10,
				time.Millisecond)})
		}),
		bound(window.StorageBound, func(r *window.Report) {
			u := window.MountUse{Read: done(200, 128<<10, 50*time.Millisecond), Connections: 1, Session: true}
			u.Read.Queue = u.Read.Time / 2
			onMount(r, u)
		}),
		bound(window.StorageBound, func(r *window.Report) {
			u := window.MountUse{Read: done(200, 128<<10, 50*time.Millisecond), Connections: 1}
			u.Read.Queue = u.Read.Time / 2
			onMount(r, u)
		}),
		bound(window.StorageBound, func(r *window.Report) {
			onMount(r, window.MountUse{Read: done(5000, 4<<10, time.Millisecond), Connections: 1, ReadSize: 1 << 20})
		}),
		bound(window.StorageBound, func(r *window.Report) { r.NoDevice = true }),
		bound(window.StorageBound, func(r *window.Report) { r.Kind, r.Disks[0].WriteBytes = window.Checkpoint, 1<<40 }),
		bound(window.StorageBound, func(r *window.Report) {
			r.Kind, r.Others, r.OthersByDisk, r.From = window.ModelLoad, 2, []int{2}, []string{"sda"}
		}),
		bound(window.StorageBound, func(r *window.Report) {
			r.Kind = window.ModelLoad
			r.Load = window.Load{Size: 2 << 30, HasHit: true, Evicted: 2 << 30,
				Movers: []window.Reader{{PID: 7, Name: "fio", Bytes: 9 << 30}}}
		}),
		bound(window.StorageBound, func(r *window.Report) {
			r.Kind, r.Load = window.ModelLoad, window.Load{Size: 2 << 30, HasHit: true, Layer: true}
		}),
		bound(window.StorageBound, func(r *window.Report) {
			r.Kind, r.Load = window.ModelLoad, window.Load{Size: 2 << 30, HasHit: true, IdleAhead: time.Minute}
		}),
		bound(window.StorageBound, func(r *window.Report) { r.WhatIf = &window.WhatIf{NoStorage: 2.5, Workers: 2.3} }),
		bound(window.StorageBound, func(r *window.Report) {
			r.Kind, r.Disks[0].ReadCeilingRatioNow = window.ModelLoad,
				0.05
		}),
		bound(window.StorageBound, func(r *window.Report) {
			onMount(r, window.MountUse{Waiting: 11 * time.Second})
			r.Kind, r.WhatIf = window.ModelLoad, &window.WhatIf{NoStorage: 8, TwoWorkers: 1.9}
		}),
		bound(window.StorageBound, func(r *window.Report) {
			r.Kind, r.Disks[0].ReadCeilingRatioNow, r.Disks[0].QueueDepth = window.ModelLoad, 0.05, deepQueue
		}),
		bound(window.Mixed, nil),
		bound(window.StorageBound, func(r *window.Report) {
			r.Disks[0].ReadCeilingRatio, r.Disks[0].ReadFullRatio = 0.83, 0.83
			r.Disks[0].ReadCeilingRatioNow, r.Disks[0].ReadCeiling = 0.83, 60<<20
		}),
		bound(window.CPUBound, func(r *window.Report) { r.Speedup, r.WhatIf = 1.7, &window.WhatIf{Workers: 1.5} }),
		bound(window.CPUBound, func(r *window.Report) { r.Ready = r.CPU / 2 }),
		bound(window.CPUBound, func(r *window.Report) { r.GPUIDs = nil }),
		bound(window.CPUBound, func(r *window.Report) { r.Kind = window.ModelLoad }),
		bound(window.CPUBound, func(r *window.Report) { r.CPUUsed = coresFull }),
		bound(window.CPUBound, func(r *window.Report) { r.WhatIf = &window.WhatIf{Workers: 1.04} }),
		bound(window.Mixed, func(r *window.Report) { r.Storage, r.CPU, r.Speedup = r.CPU, r.Storage, 1.3 }),
		bound(window.Unknown, func(r *window.Report) {
			divide(r, window.Shares{Busy: 0.8, CPU: 0.1, Other: 0.1})
			r.WhatIf = &window.WhatIf{GPU: 1.5}
		}),
		bound(window.Unknown, func(r *window.Report) {
			r.Evidence = window.FromSchedule
			r.OtherReasons = []window.OtherReason{{Kind: window.OtherNetwork, Name: "x", Time: r.Other}}
		}),
		bound(window.Unknown, func(r *window.Report) { r.Starved = r.Duration() / 2 }),
		bound(window.Unknown, func(r *window.Report) { r.Missing = []window.Missing{{Reason: window.NoIOPressure}} }),
		bound(window.Unknown, nil),
	}
}

// done are operations of a size and a time each.
func done(n, size uint64, each time.Duration) window.MountDone {
	return window.MountDone{Operations: n, Bytes: n * size, Time: time.Duration(n) * each,
		RoundTrip: time.Duration(n) * each}
}

// onMount makes a report one of a window whose files are on NFS.
func onMount(r *window.Report, u window.MountUse) {
	at := sample.Mount{ID: 30, Point: "/data", Type: "nfs4", Source: "server:/export", Minor: 50}
	u.Mount = at
	u.Has = sample.HasMountOperations | sample.HasMountRequests | sample.HasMountTime | sample.HasMountTransport
	r.Disks, r.Mounts, r.MountUses = nil, []sample.Mount{at}, []window.MountUse{u}
}

func TestRemedies(t *testing.T) {
	page, err := os.ReadFile("../../docs/verdicts.md")
	if err != nil {
		t.Fatal(err)
	}
	all := situations()
	if len(all) != len(remedies) {
		t.Fatalf("%d situations for %d remedies", len(all), len(remedies))
	}
	_, rest, _ := strings.Cut(string(page), "## The remedies")
	for i, set := range all {
		r := &window.Report{Facts: window.Facts{Scope: window.Process, GPUIDs: []string{"gpu0"},
			Disks: []window.DiskUse{{Name: "sda", ReadBytes: 500 << 20, ReadOperations: 500}}},
			Judgement: window.Judgement{Speedup: 2.5}}
		r.Kind = window.Epoch
		set(r)
		if got := newSituation(r).advice(); got != &remedies[i] {
			t.Errorf("situation %d: %s, want %s", i, got.Name, remedies[i].Name)
		}
		text := Remedy(r)
		if !strings.HasSuffix(text, ".") || strings.Contains(text, "%!") {
			t.Errorf("situation %d: %q, want a sentence", i, text)
		}
		t.Logf("%s: %s", remedies[i].Name, text)
		var found bool
		if _, rest, found = strings.Cut(rest, "\n- "+remedies[i].Name+": "); !found {
			t.Errorf("docs/verdicts.md lacks the line %d, %q, or has it in another place", i, remedies[i].Name)
		}
	}
	words := strings.Join(strings.Fields(string(page)), " ") // a phrase may be broken over two lines
	for _, number := range []string{
		fmt.Sprintf("queue is deep from %.1f", deepQueue), fmt.Sprintf("near its ceiling from %.2f",
			window.NearCeiling),
		fmt.Sprintf("far from it up to %.2f", window.FarCeiling), fmt.Sprintf("from %.2f of all cores' time",
			coresFull),
		fmt.Sprintf("from %.2f of the file in memory, and cold below %.2f", warmLoad, coldLoad),
		fmt.Sprintf("shorter by %.2f of its time more", lateShare),
		fmt.Sprintf("shorter without storage by %.2f of its time", window.Thresholds.Stall),
		fmt.Sprintf("would not help below %.1fx", minHelp), fmt.Sprintf("at least %.2f of what memory", nearlySame),
		fmt.Sprintf("found none for %.2f of the window", window.Thresholds.Stall),
		fmt.Sprintf("less than %.1f of what came from the server", window.MappedShare),
		fmt.Sprintf("that was %d MiB or more", window.MinFetched>>20),
		fmt.Sprintf("at least %d of them", manyOperations), fmt.Sprintf("taken %.1f of the storage stall",
			mountExplains),
		fmt.Sprintf("below %.1f of %d KiB", wholeRead, usefulRead>>10), fmt.Sprintf("spend %.1f of their time",
			queueShare),
	} {
		if !strings.Contains(words, number) {
			t.Errorf("docs/verdicts.md lacks %q", number)
		}
	}
}

// TestRemedyAgreesWithTheStorage: no remedy excludes storage as the limit where it is one of two, and none blames
// storage for a pure CPU window without a GPU.
func TestRemedyAgreesWithTheStorage(t *testing.T) {
	cpu := window.Shares{Storage: 0.01, CPU: 0.97, Other: 0.02}
	late := "; with storage that never waits, about 1.7x faster (1.4 to 2.0)"
	for what, test := range map[string]struct {
		report window.Report
		shares window.Shares
		want   string
	}{
		"a tenth less without storage": {window.Report{Judgement: window.Judgement{Verdict: window.CPUBound,
			Speedup: 1.13, WhatIf: &window.WhatIf{NoStorage: 1.13}}}, cpu,
			"Storage is not the limit: spread the work over more cores, or do less of it."},
		"more sleep than work": {window.Report{Ledger: window.Ledger{OtherReasons: []window.OtherReason{
			{Kind: window.OtherTimer, Name: "sleep", Time: 6 * time.Second}}},
			Judgement: window.Judgement{Verdict: window.CPUBound, Speedup: 1}}, window.Shares{CPU: 0.35, Other: 0.65},
			"Look for pauses in the program: sleeps, polling intervals and rate limits. While it runs, py-spy dump " +
				"--pid PID shows the line of a Python program."},
		"a third is storage": {window.Report{Judgement: window.Judgement{Verdict: window.CPUBound, Speedup: 1.7,
			SpeedupLow: 1.4, SpeedupHigh: 2, WhatIf: &window.WhatIf{NoStorage: 1.7}}}, window.Shares{Storage: 0.32,
			CPU: 0.67, Other: 0.01},
			"Spread the work over more cores, or do less of it" + late +
				", with 9 % of the kernel's work to fetch the data, which counts as on CPU."},
		"a mixed load": {window.Report{Window: window.Window{Kind: window.ModelLoad},
			Judgement: window.Judgement{Verdict: window.Mixed, Speedup: 1.7, SpeedupLow: 1.4, SpeedupHigh: 2},
			Facts:     window.Facts{GPUIDs: []string{"gpu0"}}}, window.Shares{Storage: 0.4, CPU: 0.6},
			"Copy and convert less, or load with more threads" + late + "."},
	} {
		divide(&test.report, test.shares)
		if got := Remedy(&test.report); got != test.want {
			t.Errorf("%s: got %q, want %q", what, got, test.want)
		}
	}
}

// TestStaggerNamesTheSharedDisk: of the disks that a window read from, the remedy names the one with most other
// windows.
func TestStaggerNamesTheSharedDisk(t *testing.T) {
	for want, others := range map[string][]int{
		"another program reads from sdb at": {0, 1}, "2 other programs read from sdb at": {1, 2},
		"another program reads from sda at": {1, 0},
	} {
		r := &window.Report{Facts: window.Facts{From: []string{"sda", "sdb"}}, OthersByDisk: others, Others: others[0] +
			others[1], Judgement: window.Judgement{Verdict: window.StorageBound}}
		divide(r, window.Shares{Storage: 1})
		if got := Remedy(r); !strings.Contains(got, want) {
			t.Errorf("%v: %s, want %q", others, got, want)
		}
	}
}

// TestRemedyWithResetDisk: the rate of a disk counts only if no disk of the window was reset.
func TestRemedyWithResetDisk(t *testing.T) {
	r := &window.Report{Judgement: window.Judgement{Verdict: window.StorageBound},
		Facts: window.Facts{From: []string{"sda"}, Disks: []window.DiskUse{
			{Name: "sda", ReadBytes: 10 << 30, ReadOperations: 1 << 10, ReadCeiling: 1 << 40,
				ReadCeilingRatioNow: 0.001},
		}}}
	divide(r, window.Shares{Storage: 1})
	if got, want := Remedy(r), "more workers: sda read 1 GiB/s"; !strings.Contains(got, want) {
		t.Errorf("%s, want %q", got, want)
	}
	r.Missing = []window.Missing{{Reason: window.DiskReset, Device: "sdb"}}
	if got, want := Remedy(r), "Keep the data in memory or move it"; !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %q", got, want)
	}
}

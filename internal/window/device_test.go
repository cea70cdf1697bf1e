package window

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/sample"
)

// device is what one device did in a window of ten seconds, and what it lies on; nothing for a leaf.
type device struct {
	name    string
	on      string
	layer   bool
	mib     uint64
	reads   uint64
	took    time.Duration // sum over reads
	written bool          // writes instead of reads
}

// slow returns the slow device of a window of ten seconds that waited for storage and moved so many MiB.
func slow(t *testing.T, devices []device, wait time.Duration, mib uint64, change func(*bench)) *Report {
	t.Helper()
	h, err := history.New(history.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Report: &Report{Ledger: Ledger{Split: true, Storage: wait}}, history: h,
		machine: &Machine{Target: ledger.Target{Job: "job"}}}
	written := slices.ContainsFunc(devices, func(d device) bool { return d.written })
	for i := range 3 {
		at := sample.Stamp{Mono: time.Duration(i*5+1) * time.Second}
		disks := &sample.Sample{At: at}
		for _, d := range devices {
			x := sample.Disk{Name: d.name, Leaf: !d.layer, Layer: d.layer, On: d.on, ReadIOs: 1, WriteIOs: 1}
			times, took := uint64(i), time.Duration(float64(d.took)*float64(i)/2)
			x.TimeInQueue = took
			if d.written {
				x.WriteIOs, x.WriteBytes, x.WriteTicks = 1+d.reads*times/2, d.mib<<20*times/2, took
			} else {
				x.ReadIOs, x.ReadBytes, x.ReadTicks = 1+d.reads*times/2, d.mib<<20*times/2, took
			}
			disks.Disks = append(disks.Disks, x)
		}
		job := sample.Job{ID: "job", HasIO: true, ReadBytes: mib << 20 * uint64(i) / 2}
		if written {
			job.ReadBytes, job.WriteBytes = 0, job.ReadBytes
		}
		for _, s := range []*sample.Sample{disks, {At: at, Jobs: []sample.Job{job}}} {
			if err := h.Append(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, d := range devices {
		if d.layer {
			b.machine.Layers = append(b.machine.Layers, Layer{d.name, strings.Fields(d.on)})
		} else {
			b.machine.Leaves = append(b.machine.Leaves, d.name)
		}
	}
	b.Start.Mono, b.End.Mono = time.Second, 11*time.Second
	if change != nil {
		change(b)
	}
	b.Facts = gather(b.view())
	b.Device = blame(b.view(), b.Report)
	return b.Report
}

// bench is what a report is made from, and the report.
type bench struct {
	*Report

	history *history.History
	machine *Machine
}

func (b *bench) view() *view { return &view{&b.Window, b.history, b.machine} }

const s = time.Second

func TestSlowDevice(t *testing.T) {
	stacked := func(top, middle, disk time.Duration) []device {
		return []device{
			{"loop1", "loop0", true, 100, 1000, top, false}, {"loop0", "vda", true, 100, 1000, middle, false},
			{"vda", "", false, 100, 900, disk, false},
		}
	}
	limit := func(l sample.Limit) func(*bench) {
		return func(b *bench) {
			l.Cgroup, l.Control = "/a", sample.IOMax
			b.machine.Limits = []sample.Limit{l}
		}
	}
	for name, c := range map[string]struct {
		devices []device
		wait    time.Duration
		change  func(*bench)
		want    string // "" for none
		limited bool
	}{
		"a disk":                        {[]device{{"vda", "", false, 100, 1000, 8 * s, false}}, 8 * s, nil, "vda", false},
		"a disk with a deep queue":      {[]device{{"vda", "", false, 100, 1000, 60 * s, false}}, 8 * s, nil, "vda", false},
		"a fast disk":                   {[]device{{"vda", "", false, 100, 1000, s / 10, false}}, 8 * s, nil, "", false},
		"a disk that the kernel hides":  {[]device{{"vda", "", false, 100, 1000, 3 * s, false}}, 8 * s, nil, "vda", false},
		"no disk":                       {nil, 8 * s, nil, "", false},
		"the top of a stack":            {stacked(8*s, s/2, s/10), 8 * s, nil, "loop1", false},
		"the top, with read-ahead":      {stacked(60*s, 9*s, 5*s), 2 * s, nil, "loop1", false},
		"the middle of a stack":         {stacked(9*s, 8*s, s/10), 8 * s, nil, "loop0", false},
		"the disk below a stack":        {stacked(9*s, 8*s, 7*s), 8 * s, nil, "vda", false},
		"a stack that explains a part":  {stacked(3*s, s/2, s/10), 8 * s, nil, "loop1", false},
		"a stack that does not explain": {stacked(s, s/2, s/10), 8 * s, nil, "", false},
		"under the path": {
			append(stacked(9*s, 8*s, s/10), device{"dm-0", "vda", true, 100, 1000, 60 * s, false}), 8 * s,
			func(b *bench) {
				b.Seen.Under, b.Seen.Above = []string{"vda"}, []string{"loop1", "loop0", "vda1"}
			}, "loop0", false,
		},
		"another stack on the same disk, by open files": {
			append(stacked(9*s, 8*s, s/10), device{"dm-0", "vda", true, 900, 1000, 60 * s, false}), 8 * s,
			func(b *bench) { b.machine.Devices = [][]string{{"loop1"}} }, "loop0", false,
		},
		"a disk next to a stack, by open files": {
			append(stacked(9*s, 8*s, s/10), device{"sdb", "", false, 100, 1000, 8 * s, false}), 8 * s,
			func(b *bench) { b.machine.Devices = [][]string{{"sdb"}} }, "sdb", false,
		},
		"another stack on the same disk, by bytes": {
			append(stacked(9*s, 8*s, s/10), device{"dm-0", "vda", true, 900, 1000, 60 * s, false}), 8 * s, nil, "loop0", false,
		},
		"a busy disk next to a stack, by bytes": {
			append(stacked(9*s, 8*s, s/10), device{"sdb", "", false, 900, 1000, 60 * s, false}), 8 * s, nil, "loop0", false,
		},
		"a stack on a disk that others load": {
			[]device{{"loop0", "vda", true, 100, 1000, 8 * s, false}, {"vda", "", false, 1000, 1000, 10 * s, false}},
			8 * s, nil,
			"loop0", false,
		},
		"both disks of an array": {
			[]device{
				{"md0", "sda sdb", true, 100, 1000, 8 * s, false}, {"sda", "", false, 50, 500, 3 * s, false},
				{"sdb", "", false, 50, 500, 4 * s, false},
			}, 8 * s, nil, "sdb", false,
		},
		"one of several devices of a file system": {
			[]device{
				{"loop0", "", true, 34, 340, s / 10, false}, {"loop1", "", true, 33, 330, 8 * s, false},
				{"loop2", "", true, 33, 330, s / 10, false}, {"vda", "", false, 1, 10, s / 10, false},
			}, 8 * s, func(b *bench) { b.machine.Devices = [][]string{{"loop0", "loop1", "loop2"}, {"vda"}} }, "loop1", false,
		},
		"a slow disk that gave a third": {
			[]device{{"vda", "", false, 70, 1000, s / 10, false}, {"sdb", "", false, 30, 300, 7 * s, false}},
			8 * s, func(b *bench) { b.machine.Devices = [][]string{{"vda"}, {"sdb"}} }, "sdb", false,
		},
		"a slow layer that gave nothing": {
			[]device{{"vda", "", false, 100, 1000, s / 10, false}, {"loop0", "", true, 30, 300, 7 * s, false}},
			8 * s, func(b *bench) { b.machine.Devices = [][]string{{"vda"}, {"loop0"}} }, "", false,
		},
		"a slow layer that gave a third, on the disk of the rest": {
			[]device{{"vda", "", false, 100, 1000, s / 10, false}, {"loop0", "vda", true, 30, 300, 7 * s, false}},
			8 * s, func(b *bench) { b.machine.Devices = [][]string{{"vda"}, {"loop0"}} }, "loop0", false,
		},
		"a limit on what gave a third": {
			[]device{{"vda", "", false, 70, 1000, s / 10, false}, {"sdb", "", false, 30, 300, s / 10, false}},
			8 * s, func(b *bench) {
				b.machine.Devices = [][]string{{"vda"}, {"sdb"}}
				limit(sample.Limit{Device: "sdb", ReadBytes: 3 << 20})(b)
			}, "sdb", true,
		},
		"a layer in memory": {
			[]device{{"loop0", "", true, 100, 1000, 8 * s, false}, {"vda", "", false, 1, 10, s / 10, false}},
			8 * s, nil, "loop0",
			false,
		},
		"mostly others' reads": {[]device{{"vda", "", false, 10000, 1000, 8 * s, false}}, 4 * s, func(b *bench) {
			b.Seen.Under = []string{"vda"}
		}, "vda", false},
		"writes":           {[]device{{"vda", "", false, 100, 1000, 8 * s, true}}, 8 * s, nil, "vda", false},
		"too short a wait": {[]device{{"vda", "", false, 100, 1000, s / 10, false}}, s, nil, "", false},
		"a limit in bytes": {
			[]device{{"vda", "", false, 100, 1000, s / 10, false}}, 8 * s,
			limit(sample.Limit{Device: "vda", ReadBytes: 10 << 20}), "vda", true,
		},
		"a limit in operations": {
			[]device{{"vda", "", false, 100, 1000, s / 10, false}},
			8 * s, limit(sample.Limit{Device: "vda", Reads: 105}), "vda", true,
		},
		"a limit between other work": {
			[]device{{"vda", "", false, 100, 1000, s / 10, false}}, 3 * s,
			limit(sample.Limit{Device: "vda", ReadBytes: 34 << 20}), "vda", true,
		},
		"a limit below a layer": {stacked(8*s, s/2, s/10), 8 * s, limit(sample.Limit{Device: "loop0", Reads: 110}), "loop0", true},
		"a limit on writes": {
			[]device{{"vda", "", false, 100, 1000, s / 10, true}}, 8 * s,
			limit(sample.Limit{Device: "vda", WriteBytes: 10 << 20, Reads: 1}), "vda", true,
		},
		"a limit far above": {
			[]device{{"vda", "", false, 100, 1000, 8 * s, false}},
			8 * s, limit(sample.Limit{Device: "vda", ReadBytes: 100 << 20}),
			"vda", false,
		},
		"a limit that did not hold": {
			[]device{{"vda", "", false, 100, 1000, 8 * s, false}},
			8 * s, limit(sample.Limit{Device: "vda", ReadBytes: 5 << 20}),
			"vda", false,
		},
		"a limit above the rate of a slow disk": {
			[]device{{"vda", "", false, 100, 1000, 4 * s, false}},
			4 * s, limit(sample.Limit{Device: "vda", ReadBytes: 25 << 20}),
			"vda", false,
		},
		"a limit on another device": {
			[]device{{"vda", "", false, 100, 1000, 8 * s, false}},
			8 * s, limit(sample.Limit{Device: "vdb", ReadBytes: 10 << 20}),
			"vda", false,
		},
	} {
		r := slow(t, c.devices, c.wait, 100, c.change)
		got, limited := "", false
		if r.SlowDevice != nil {
			got, limited = r.SlowDevice.Name, r.SlowDevice.Limit != nil
		}
		if got != c.want || limited != c.limited {
			t.Errorf("%s: got %q, limited %v; want %q, %v", name, got, limited, c.want, c.limited)
		}
		if explains := c.want != "" || c.wait < 2*s; r.NoDevice == explains {
			t.Errorf("%s: got NoDevice %v, want %v", name, r.NoDevice, !explains)
		}
	}
}

// Whatever the stack: a device is named only if its operations took long enough, one below it never took as long, and
// the order of the devices has no influence.
func TestSlowDeviceAtRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		devices := []device{{"vda", "", false, 100, 1000, time.Duration(random.Int64N(int64(20 * s))), false}}
		below := "vda"
		for i := range random.IntN(5) {
			name := "dm-" + string(rune('0'+i))
			devices = append(devices, device{name, below, true, 100, 1000, time.Duration(random.Int64N(int64(20 * s))), false})
			below = name
		}
		wait := 2*s + time.Duration(random.Int64N(int64(8*s)))
		r := slow(t, devices, wait, 100, nil)
		random.Shuffle(len(devices), func(i, j int) { devices[i], devices[j] = devices[j], devices[i] })
		again := slow(t, devices, wait, 100, nil)
		if (r.SlowDevice == nil) != r.NoDevice || r.NoDevice != again.NoDevice ||
			r.SlowDevice != nil && r.SlowDevice.Name != again.SlowDevice.Name {
			t.Fatalf("%v: got %+v and %+v in another order", devices, r.SlowDevice, again.SlowDevice)
		}
		if r.NoDevice {
			continue
		}
		named := r.SlowDevice.ReadTime.Seconds()
		if least := unexplained * wait.Seconds(); named < least-0.01 {
			t.Errorf("%v, wait %v: got %s with %.2f s, want at least %.2f s", devices, wait, r.SlowDevice.Name, named, least)
		}
		for _, d := range r.SlowDevice.Below {
			if most := max(explained*named, unexplained*wait.Seconds()); d.ReadTime.Seconds() > most+0.01 {
				t.Errorf("%v, wait %v: got %s, want %s below it", devices, wait, r.SlowDevice.Name, d.Name)
			}
		}
	}
}

// A stack in a recording may be a cycle.
func TestCycleOfLayers(t *testing.T) {
	r := slow(t, []device{
		{"dm-0", "dm-1", true, 100, 1000, 8 * s, false}, {"dm-1", "dm-0", true, 100, 1000, 8 * s, false},
	}, 8*s, 100, nil)
	if r.SlowDevice != nil && r.SlowDevice.Name == "" {
		t.Errorf("got %+v, want a name or nothing", r.SlowDevice)
	}
}

// TestWorkersNeedTheDevice: more workers cannot read faster than a limit, or than the disk ever did.
func TestWorkersNeedTheDevice(t *testing.T) {
	disk := []device{{"vda", "", false, 100, 1000, 8 * s, false}}
	for name, c := range map[string]struct {
		change func(*bench)
		want   float64
	}{
		"no limit": {func(*bench) {}, 1.9},
		"a limit of 11 MiB/s, which 100 MiB in 10 s are below": {func(b *bench) {
			b.machine.Limits = []sample.Limit{{Device: "vda", Cgroup: "/a", Control: sample.IOMax, ReadBytes: 11 << 20}}
		}, 1.1},
		"a limit of 10 MiB/s": {func(b *bench) {
			b.machine.Limits = []sample.Limit{{Device: "vda", Cgroup: "/a", Control: sample.IOMax, ReadBytes: 10 << 20}}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			report := slow(t, disk, 8*s, 100, func(b *bench) {
				c.change(b)
			})
			w := WhatIf{Workers: 1.9}
			w.bound(report.most)
			if got := w.Workers; math.Abs(got-c.want) > 0.01 {
				t.Errorf("got %.2f with twice the workers, want %.2f", got, c.want)
			}
		})
	}
}

// Where the kernel counts no time for a device, nothing follows from its zeros: neither that no device explains the
// wait, nor that the wait was shorter.
func TestUntimedDevices(t *testing.T) {
	for name, c := range map[string]struct {
		devices []device
		want    string
	}{
		"a disk":              {[]device{{"vda", "", false, 100, 1000, 0, false}}, ""},
		"a disk that wrote":   {[]device{{"vda", "", false, 100, 1000, 0, true}}, ""},
		"an array of disks":   {[]device{{"md0", "vda", true, 100, 1000, 0, false}, {"vda", "", false, 100, 1000, 8 * s, false}}, "vda"},
		"of fast ones":        {[]device{{"md0", "vda", true, 100, 1000, 0, false}, {"vda", "", false, 100, 1000, s / 10, false}}, ""},
		"with a slow top":     {[]device{{"dm-0", "vda", true, 100, 1000, 8 * s, false}, {"vda", "", false, 100, 1000, 0, false}}, "dm-0"},
		"a stack without any": {[]device{{"md0", "vda", true, 100, 1000, 0, false}, {"vda", "", false, 100, 1000, 0, false}}, ""},
	} {
		r := slow(t, c.devices, 8*s, 100, func(b *bench) {
			b.Facts = gather(b.view())
			if most, known := b.view().longestWait(b.Report, &b.Ledger); known && most < 8*s {
				t.Errorf("%s: got a storage stall of at most %v, want no bound", name, most)
			}
		})
		got := ""
		if r.SlowDevice != nil {
			got = r.SlowDevice.Name
		}
		if got != c.want || r.NoDevice {
			t.Errorf("%s: got %q, NoDevice %v; want %q, without a claim", name, got, r.NoDevice, c.want)
		}
	}
}

// A disk that the kernel does not count, or that could not be read, may be the one that the job waited for. A
// limit on another device, which others reached, does not explain it.
func TestUncountedDevice(t *testing.T) {
	for name, c := range map[string]struct {
		devices []device
		change  func(*bench)
		want    bool
	}{
		"counted":     {nil, func(b *bench) { b.machine.Leaves = []string{"vda"} }, true},
		"not counted": {nil, func(b *bench) { b.machine.Lacks = DeviceFields{"vda": sample.Uncounted | sample.LacksTimes} }, false},
		"not read":    {nil, func(b *bench) { b.machine.Devices = [][]string{{"vda"}} }, false},
		"another one limited": {[]device{{"loop0", "", true, 40, 1000, s / 10, false}}, func(b *bench) {
			b.machine.Devices = [][]string{{"vda"}}
			b.machine.Limits = []sample.Limit{{Device: "loop0", Cgroup: "/", Reads: 100}}
		}, false},
	} {
		r := slow(t, c.devices, 8*s, 100, c.change)
		if r.NoDevice != c.want || r.SlowDevice != nil {
			t.Errorf("%s: got NoDevice %v, %+v; want %v, without a device", name, r.NoDevice, r.SlowDevice, c.want)
		}
	}
}

// How long a disk took is known only if its numbers cover all of the window.
func TestPartlyCounted(t *testing.T) {
	for _, partial := range []bool{false, true} {
		r := slow(t, []device{{"vda", "", false, 100, 1000, s / 10, false}}, 8*s, 100, func(b *bench) {
			for i := range 3 {
				at := sample.Stamp{Mono: time.Duration(i*5+21) * time.Second}
				n := uint64(i)
				disk := sample.Disk{Name: "vda", Leaf: true, ReadIOs: 2000 + 500*n, ReadBytes: 1<<30 + n*50<<20,
					ReadTicks: s + time.Duration(i)*s/20, TimeInQueue: s + time.Duration(i)*s/20, WriteIOs: 1}
				if partial && i == 2 {
					disk.Reset.Mono = 27 * time.Second
				}
				job := sample.Job{ID: "job", HasIO: true, ReadBytes: 1<<30 + n*50<<20}
				for _, x := range []sample.Sample{{At: at, Disks: []sample.Disk{disk}}, {At: at, Jobs: []sample.Job{job}}} {
					if err := b.history.Append(&x); err != nil {
						t.Fatal(err)
					}
				}
			}
			b.Start.Mono, b.End.Mono = 21*time.Second, 31*time.Second
		})
		if r.NoDevice == partial || r.SlowDevice != nil {
			t.Errorf("partial %v: got NoDevice %v", partial, r.NoDevice)
		}
	}
}

// The utilization of a disk is at most its queue, and what the kernel does not count is absent.
func TestImpossibleUse(t *testing.T) {
	use := func(reads uint64, took, busy time.Duration, lacks sample.Fields) DiskUse {
		r := slow(t, []device{{"vda", "", false, 100, reads, took, false}}, 8*s, 100, func(b *bench) {
			b.machine.Lacks = DeviceFields{"vda": lacks}
			for i := range 3 {
				at := sample.Stamp{Mono: time.Duration(i*5+21) * time.Second}
				part := func(d time.Duration) time.Duration { return d / 2 * time.Duration(i) }
				if err := b.history.Append(&sample.Sample{At: at, Disks: []sample.Disk{{
					Name: "vda", Leaf: true, ReadIOs: 2000 + reads*uint64(i)/2, ReadBytes: 1<<30 + uint64(i)<<20, WriteIOs: 1,
					ReadTicks: 90*s + part(took), TimeInQueue: 90*s + part(took), IOTicks: part(busy),
				}}}); err != nil {
					t.Fatal(err)
				}
			}
			b.Start.Mono, b.End.Mono = 21*s, 31*s
		})
		return r.Disks[0]
	}
	d := use(20, 10*time.Millisecond, 10*s, 0)
	if math.Abs(d.BusyRatio-0.001) > 1e-4 || d.Lacks&sample.LacksIOTicks != 0 {
		t.Errorf("io_ticks of 100 %% with a queue of 0.001: got %v, lacking %b; want 0.001", d.BusyRatio, d.Lacks)
	}
	if d := use(2000, 4*s, 2*s, 0); math.Abs(d.BusyRatio-0.2) > 1e-9 || math.Abs(d.QueueDepth-0.4) > 1e-9 || d.Lacks != 0 {
		t.Errorf("an SSD: got %v and %v, lacking %b; want 0.2, 0.4", d.BusyRatio, d.QueueDepth, d.Lacks)
	}
	if d := use(2000, 80*s, 14*s, 0); d.BusyRatio != 0 || d.Lacks&sample.LacksIOTicks == 0 || d.QueueDepth != 8 {
		t.Errorf("over 100 %%: got %v, lacking %b; want none", d.BusyRatio, d.Lacks)
	}
	if d := use(2000, 0, 0, 0); d.Lacks&sample.LacksTimes != sample.LacksReadTime|sample.LacksQueue {
		t.Errorf("no times: lacking %b", d.Lacks)
	}
	if d := use(20, 0, 0, sample.LacksReadTime|sample.LacksQueue); d.Lacks&sample.LacksQueue == 0 {
		t.Errorf("few reads of a device that is known to have none: lacking %b", d.Lacks)
	}
	if _, ok := (&DiskUse{ReadOperations: 20, Lacks: sample.LacksReadTime}).Await(true); ok {
		t.Error("got an await, want none")
	}
}

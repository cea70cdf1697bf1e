package window

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/ledger/chain"
	"github.com/stallspan/stallspan/internal/sample"
)

// TestThresholdsAreDocumented compares the numbers of docs/verdicts.md with the code.
func TestThresholdsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/verdicts.md")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(string(page)), " ") // a phrase may be broken over two lines
	r := Thresholds
	for _, row := range []string{
		fmt.Sprintf("| `gpu_bound` | busy >= %.2f |", r.Busy),
		fmt.Sprintf("| `wait_bound` | rest >= %.2f, and at least %g times the largest stall; half of", r.Other,
			r.Ratio),
		fmt.Sprintf("3 s or more while the job waited, up to the window's end or for at least %.2f of it", silentShare),
		fmt.Sprintf("no thread of the job did anything else for %.2f of the time", waitsAll),
		fmt.Sprintf("| `unknown` | rest >= %.2f, and at least %g times the largest stall |", r.Other, r.Ratio),
		fmt.Sprintf("| `storage_bound` | storage stall >= %.2f, and at least %g times each other stall |", r.Stall,
			r.Ratio),
		fmt.Sprintf("| `network_bound` | network >= %.2f, and at least %g times each other stall |", r.Stall, r.Ratio),
		fmt.Sprintf("| `cpu_bound` | CPU stall >= %.2f, and at least %g times each other stall |", r.Stall, r.Ratio),
		fmt.Sprintf("| `mixed` | the largest stall >= %.2f |", r.Stall),
		fmt.Sprintf("received at least %d MiB", Serving.Bytes>>20),
		fmt.Sprintf("at least %g times what it sent", Serving.Ratio),
		fmt.Sprintf("more than %d bytes for each message", Serving.Packet),
		fmt.Sprintf("at least %d KiB for each second of waiting", int(Serving.Rate)>>10),
		fmt.Sprintf("less certain than %.2f", r.Doubt),
		fmt.Sprintf("storage took more than %.2f of its GPU time", r.Slow),
	} {
		if !strings.Contains(words, row) {
			t.Errorf("docs/verdicts.md lacks: %s", row)
		}
	}
}

// TestExamplesAreTrue: the ledgers that docs/verdicts.md shows add up, and have the verdicts next to them.
func TestExamplesAreTrue(t *testing.T) {
	page, err := os.ReadFile("../../docs/verdicts.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| `+"`(\\w+)`").
		FindAllStringSubmatch(string(page), -1)
	if len(rows) != 3 {
		t.Fatalf("got %d ledgers on the page, want 3", len(rows))
	}
	for _, row := range rows {
		var x [5]float64
		for i := range x {
			if x[i], err = strconv.ParseFloat(row[i+1], 64); err != nil {
				t.Fatal(err)
			}
		}
		shares := Shares{Busy: x[0], Storage: x[1], CPU: x[2], Network: x[3], Other: x[3] + x[4]}
		if sum := x[0] + x[1] + x[2] + x[3] + x[4]; math.Abs(sum-1) > 1e-9 {
			t.Errorf("%s: got a sum of %g, want 1", row[0], sum)
		}
		if got := shares.Verdict(); string(got) != row[6] {
			t.Errorf("%s: got %s", row[0], got)
		}
	}
}

// edge is where something changes: it holds on one side of a number, and not on the other.
type edge struct {
	at    float64
	holds func(x float64) bool
}

// of is x seconds.
func of(x float64) time.Duration { return time.Duration(x * float64(s)) }

// TestThresholds has a case at the edge of each threshold. Times are in s, counts lie between two numbers.
func TestThresholds(t *testing.T) {
	serves := func(p PeerUse, others ...PeerUse) bool {
		return p.serves(append([]PeerUse{p}, others...))
	}
	for name, e := range map[string]edge{
		"Busy":  {0.9, func(x float64) bool { return Shares{Busy: x}.Verdict() == GPUBound }},
		"Stall": {0.15, func(x float64) bool { return Shares{Storage: x}.Verdict() == StorageBound }},
		"Ratio": {2, func(x float64) bool { return Shares{Storage: 0.2 * x, CPU: 0.2}.Verdict() == StorageBound }},
		"Other": {0.5, func(x float64) bool { return Shares{Storage: 0.2, Other: x}.Verdict() == Unknown }},
		"Slow": {0.5, func(x float64) bool {
			return judged(t, 100,
				func(r *Report) { r.Storage = of(100 * x) }).Slow
		}},
		"Doubt": {0.2, func(x float64) bool {
			return judged(t, 100, func(r *Report) { r.Busy, r.width = 100*s, x }).Verdict == Unknown
		}},
		"MinDuration": {2, func(length float64) bool {
			use := GPUUse{ID: "GPU-1", Busy: 1, Means: means(map[history.Detail]float64{history.TensorActive: 0.01})}
			r := epochOf(use)
			r.End.Mono = of(length)
			findings(t, r)
			return r.Finding(TensorIdle) != nil
		}},
		"Serving.Bytes": {1 << 20, func(x float64) bool { return serves(PeerUse{Received: uint64(x), Messages: 1}) }},
		"Serving.Ratio": {4, func(x float64) bool {
			return serves(PeerUse{Received: 10 << 20,
				Sent: uint64(10 << 20 / x)})
		}},
		"Serving.Packet": {1460, func(x float64) bool {
			return serves(PeerUse{Received: 10 << 20, Messages: uint64(10 << 20 / x)})
		}},
		"Serving.Rate": {32 << 10, func(x float64) bool {
			return serves(PeerUse{Received: 10 << 20,
				Waited: of(10 << 20 / x)})
		}},
		"similar": {2, func(x float64) bool {
			return serves(PeerUse{Received: 10 << 20}, PeerUse{Sent: uint64(10 << 20 / x)})
		}},

		"MinJudged": {0.2, func(length float64) bool {
			return judged(t, length, func(r *Report) { r.Busy = of(length) }).Verdict == GPUBound
		}},
		"cpuTick": {0.01, func(x float64) bool { return ledgerOf(t, history.Scheduled{}, nil).Uncertainty*10 < x }},
		"maxUnread": {0.5, func(x float64) bool {
			return ledgerOf(t, history.Scheduled{}, func(r *Report) { r.Unread = of(10 * x) }).Split
		}},
		"maxReasons": {3.5, func(n float64) bool {
			scheduled := history.Scheduled{Time: 10 * s}
			for i := range int(math.Round(n)) {
				scheduled.Other[i] = s
			}
			return len(ledgerOf(t, scheduled, nil).OtherReasons) == int(math.Round(n))
		}},
		"minReason": {0.005, func(x float64) bool {
			scheduled := history.Scheduled{Time: 10 * s}
			scheduled.Other[0] = of(10 * x)
			return len(ledgerOf(t, scheduled, nil).OtherReasons) > 0
		}},
		"minFed": {0.02, func(x float64) bool {
			return ledgerOf(t, history.Scheduled{Time: 10 * s, Fed: of(10 * x)}, nil).WhatIf.Workers > 0
		}},
		"unevenShare": {0.1, func(x float64) bool {
			r := &Report{Ledger: Ledger{Ledgers: []GPULedger{{Busy: 0}, {Busy: of(10 * x)}}}}
			r.End.Mono = 10 * s
			least, _ := r.Uneven()
			return least != nil
		}},
		"RecentTime": {5, func(length float64) bool {
			_, longer := (&Window{End: sample.Stamp{Mono: of(length)}}).Tail()
			return longer
		}},
		"minOverlap": {0.1, func(x float64) bool {
			w, other := Window{ID: "a", End: sample.Stamp{Mono: s}}, Window{ID: "b", Kind: ModelLoad}
			other.Start.Mono = of(1 - x)
			return w.Overlaps(&other, 3*s)
		}},

		"minMovedShare": {0.1, func(x float64) bool {
			f := Facts{Disks: []DiskUse{
				{Name: "sda", ReadBytes: uint64(1000 * (1 - x))}, {Name: "sdb", ReadBytes: uint64(1000 * x)},
			}}
			return f.worksWith("sdb", nil)
		}},
		"maxRead": {1.1, func(x float64) bool {
			return (&Report{Facts: Facts{Disks: []DiskUse{{ReadBytes: 1000}}}}).CanHaveRead(uint64(1000 * x))
		}},
		"outrun": {1.05, func(x float64) bool {
			disks := []DiskUse{{Name: "sda", ReadBytes: uint64(10000 * x)}}
			w := &Window{End: sample.Stamp{Mono: 10 * s}, Ceilings: []sample.Ceiling{{Disk: "sda", Read: 1000}}}
			(&view{Window: w, machine: &Machine{}}).addCeilings(disks)
			return disks[0].ReadCeilingRatio > 0
		}},
		"NearCeiling": {0.8, func(x float64) bool {
			return (&DiskUse{ReadCeilingRatio: x,
				ReadFullRatio: x}).NearCeiling()
		}},
		"FarCeiling": {0.5, func(x float64) bool { return (&DiskUse{ReadCeilingRatioNow: x}).FarFromCeiling() }},

		"explained": {0.5, func(x float64) bool {
			r := slow(t, []device{
				{"loop0", "vda", true, 100, 1000, 10 * s, false}, {"vda", "", false, 100, 1000, of(10 * x), false},
			}, 8*s, 100, nil)
			return r.SlowDevice.Name == "vda"
		}},
		"unexplained": {0.25, func(x float64) bool {
			return slow(t, []device{{"vda", "", false, 100, 1000, of(8 * x), false}}, 8*s, 100, nil).SlowDevice != nil
		}},
		"atLimit":   {0.85, func(x float64) bool { return limitedFor(t, 8*x) }},
		"overLimit": {1.25, func(x float64) bool { return limitedFor(t, 10*x) }},
		"halfBytes": {0.5, func(x float64) bool {
			r := slow(t, []device{
				{"loop0", "vda", true, uint64(100 * x), 1000, 8 * s, false}, {"vda", "", false, 100, 1000, s / 10,
					false},
			}, 8*s, 100, nil)
			return r.SlowDevice != nil
		}},
		"same": {0.02, func(x float64) bool {
			of := &stack{read: jobPart{1e6, true}}
			return of.movedTheSame(&DiskUse{ReadBytes: uint64(1e6 * (1 + x))})
		}},

		"MaxMountAge": {6, func(age float64) bool {
			w := &Window{Start: sample.Stamp{Mono: 20 * s}}
			v := &view{w, newHistory(t), &Machine{Mounts: []sample.Mount{{LastSeen: 20*s - of(age)}}}}
			return len(v.mounts()) > 0
		}},
		"MappedShare": {0.1, func(x float64) bool {
			return (&Fetch{Bytes: 1 << 30,
				Called: uint64(x * (1 << 30))}).Mapped()
		}},
		"MinFetched": {16 << 20, func(x float64) bool { return (&Fetch{Bytes: uint64(x)}).Mapped() }},
		"minGrown": {0.5, func(x float64) bool {
			return onNFS(t, 9000, func(w *Window, m *Machine) {
				m.Counted[0].Has = sample.HasMountWaiting
				w.Kind = ModelLoad
				w.Seen = Seen{Size: 1 << 30, HasCached: true, After: uint64(x * (1 << 30)), HasAfter: true}
			}).Fetch != nil
		}},
		"maxMemoryShare": {0.01, func(x float64) bool { return fromMemory(t, 100<<20, x*(100<<20)) }},
		"maxMemoryBytes": {4 << 20, func(x float64) bool { return fromMemory(t, 100<<30, x) }},

		"muchKernel": {0.4, func(x float64) bool { return faultsOf(t, of(10*x), 10*s, 1e6) != nil }},
		"minKernel":  {0.2, func(x float64) bool { return faultsOf(t, of(x), of(x), 1e6) != nil }},
		"maxFault":   {50e-6, func(x float64) bool { return faultsOf(t, of(1e5*x), of(1e5*x), 1e5) != nil }},

		"muchAgain": {0.25, func(x float64) bool {
			h := newHistory(t)
			for i := range uint64(2) {
				job := sample.Job{ID: "job", HasIO: true, ReadBytes: i * 1000, Memory: sample.MemoryLimit{Limit: 9}}
				job.Memory.Refaulted = i * uint64(1000*x)
				add(t, h, &sample.Sample{At: sample.Stamp{Mono: time.Duration(i) * 10 * s}, Jobs: []sample.Job{job}})
			}
			m := &Machine{Target: ledger.Target{Job: "job"}, Memory: sample.MemoryLimit{Limit: 9}}
			return (&view{&Window{End: sample.Stamp{Mono: 10 * s}}, h, m}).squeezed() != nil
		}},
		"muchGone":    {0.5, func(x float64) bool { return bypassOf(t, 1<<30, (1-x)*(1<<30), 0) != nil }},
		"minGone":     {64 << 20, func(x float64) bool { return bypassOf(t, x, 0, 0) != nil }},
		"silentShare": {0.1, func(x float64) bool { return (&Silence{Until: of(100 * x)}).counts(100 * s) }},
		"waitsAll": {0.9, func(x float64) bool {
			p := PeerUse{Waited: s}
			p.hush(10, 10*x, 0)
			return p.Silent
		}},
		"silenceEdge": {0.1, func(x float64) bool { return silentDisk(t, x) }},
		"idleWorkers": {0.05, func(x float64) bool { return endedOf(t, 10*s, 2*s, 9, x) }},
		"beforeWait":  {2, func(x float64) bool { return endedOf(t, 10*s-of(x), 2*s, 0, 0) }},
		"helperLives": {1, func(x float64) bool { return endedOf(t, 10*s, of(x), 1<<8, 0) }},
		"hushed":      {0.01, func(x float64) bool { return quietOf(t, 10<<20, x).From == 2*s }},
		"trickle":     {1 << 20, func(x float64) bool { return silenceOf(t, uint64(x)) == nil }},
		"minServed": {0.8, func(x float64) bool {
			h := newHistory(t)
			peers := []sample.Peer{{Job: "job", Address: "10.0.0.7:443"}, {Job: "job", Address: "10.0.0.8:9000"}}
			for at := time.Duration(0); at <= 10*s; at += 10 * s {
				add(t, h, &sample.Sample{At: sample.Stamp{Mono: at}, Peers: peers})
				of := history.LedgerTotals{ID: ledger.ID("job", ""), HasGain: true,
					Scheduled: &history.Scheduled{Time: at}}
				of.Scheduled.Other[1] = at
				if err := h.AppendLedgers(at, []history.LedgerTotals{of}); err != nil {
					t.Fatal(err)
				}
				peers[0].Received, peers[1].Received, peers[1].Sent = 1<<30, 1<<20, 1<<20
			}
			m := &Machine{Target: ledger.Target{Job: "job"}, Peers: peers, Waits: map[string]ledger.Waits{"": {
				{Reason: chain.Reason{Kind: chain.ForNetwork, From: peers[0].Address}, Time: x},
				{Reason: chain.Reason{Kind: chain.ForNetwork, From: peers[1].Address}, Time: 1 - x},
			}}}
			r := &Report{Window: Window{End: sample.Stamp{Mono: 10 * s}}}
			l := Ledger{Evidence: FromSchedule, Other: 10 * s}
			l.addPeers(&view{&r.Window, h, m}, r)
			return l.served
		}},
		"maxPeers": {8.5, func(n float64) bool {
			return len(mainPeers(make([]PeerUse, int(math.Round(n))))) == int(math.Round(n))
		}},
		"minOwn": {0.05, func(x float64) bool {
			r := &Report{Facts: Facts{GPUIDs: []string{"gpu0"}}, Ledger: Ledger{Storage: of(10 * x)}}
			return r.twoWorkers(10, 4) > 0
		}},
		"guessDoubt": {0.6, func(x float64) bool { // half of 100 s would be saved
			r := judged(t, 100, func(r *Report) {
				r.Evidence, r.Storage, r.CPU, r.Gain = FromPressure, 50*s, 50*s,
					50*s
			})
			return (50-1-100/r.SpeedupHigh)/50 < x
		}},

		"longShare": {0.98, func(x float64) bool { return intervals(apart(3, 0.2, 0.2, x))[1].long }},
		"minLong":   {0.3, func(length float64) bool { return intervals(apart(3, length/3, length/3, 1))[1].long }},
		"minStallGap": {0.2, func(gap float64) bool {
			return len(stretches(intervals(apart(2, 0.1+gap, 0.1, 0.5)))) == 1
		}},
		"minStretch": {0.2, func(length float64) bool {
			all, _ := stallsIn(apart(1, length, length, 0.5))
			return len(all) > 0
		}},
		"minPart": {2, func(length float64) bool {
			all, _ := stallsIn(apart(20, length/20, length/20, 0.5))
			return len(all) == 2
		}},
	} {
		if below, above := e.holds(0.9*e.at), e.holds(1.1*e.at); below == above {
			t.Errorf("%s: got %v below and above %g, want a change", name, below, e.at)
		}
	}
}

// judged is the verdict on a window of one GPU, with evidence of threads.
func judged(t *testing.T, length float64, change func(*Report)) *Report {
	r := &Report{Ledger: Ledger{Evidence: FromSchedule, Split: true},
		Facts: Facts{Scope: Process, GPUIDs: []string{"gpu0"}}}
	r.End.Mono = of(length)
	change(r)
	r.Judgement = judge(&view{&r.Window, newHistory(t), &Machine{Pressure: true}}, r)
	return r
}

// ledgerOf is the ledger of 10 s of a job without a GPU that shares its cgroup, with what the scheduler reported.
func ledgerOf(t *testing.T, scheduled history.Scheduled, change func(*Report)) *Report {
	return ledgerWith(t, scheduled, func(r *Report, _ *Machine) {
		if change != nil {
			change(r)
		}
	})
}

func ledgerWith(t *testing.T, scheduled history.Scheduled, change func(*Report, *Machine)) *Report {
	h := newHistory(t)
	for at := time.Duration(0); at <= 10*s; at += 10 * s {
		totals := history.LedgerTotals{ID: ledger.ID("job", ""), HasGain: true, Scheduled: &history.Scheduled{}}
		if at > 0 {
			totals.Scheduled = &scheduled
		}
		if err := h.AppendLedgers(at, []history.LedgerTotals{totals}); err != nil {
			t.Fatal(err)
		}
	}
	r := &Report{Window: Window{End: sample.Stamp{Mono: 10 * s}}, Facts: Facts{Scope: Process}}
	m := &Machine{Target: ledger.Target{Job: "job"}, Pressure: true}
	change(r, m)
	v := &view{&r.Window, h, m}
	r.Ledger = divide(v, r)
	r.Judgement = judge(v, r)
	return r
}

// limitedFor reports whether a limit explains 8 s of waiting in a window of 10 s, if the I/O takes so long under it.
func limitedFor(t *testing.T, took float64) bool {
	r := slow(t, []device{{"vda", "", false, 100, 1000, s / 10, false}}, 8*s, 100, func(b *bench) {
		b.machine.Limits = []sample.Limit{{Device: "vda", ReadBytes: uint64(100 << 20 / took)}}
	})
	return r.SlowDevice != nil && r.SlowDevice.Limit != nil
}

// fromMemory reports whether a load of a file in memory is one that cannot have waited, if its job fetched so much.
func fromMemory(t *testing.T, size uint64, fetched float64) bool {
	h := newHistory(t)
	for i := range uint64(2) {
		add(t, h, &sample.Sample{At: sample.Stamp{Mono: time.Duration(i) * 10 * s},
			Jobs: []sample.Job{{ID: "job", HasIO: true, ReadBytes: i * uint64(fetched)}}})
	}
	w := &Window{Kind: ModelLoad, Seen: Seen{Size: size, Device: InMemory}, End: sample.Stamp{Mono: 10 * s}}
	return (&view{w, h, &Machine{Target: ledger.Target{Job: "job"}}}).readMemory()
}

func add(t *testing.T, h *history.History, s *sample.Sample) {
	t.Helper()
	if err := h.Append(s); err != nil {
		t.Fatal(err)
	}
}

// apart are reading intervals of a length, which begin so many seconds apart, with a share of waiting.
func apart(n int, every, length, share float64) (all []history.Step) {
	for i := range n {
		at := of(float64(i) * every)
		all = append(all, history.Step{Start: at, End: at + of(length), Grown: share * length})
	}
	return all
}

// faultsOf are the page faults of a load of 10 s whose job used the CPU for so long, in the kernel and in all.
func faultsOf(t *testing.T, kernel, cpu time.Duration, count float64, change ...func(*sample.Job)) *Faults {
	h := newHistory(t)
	job := sample.Job{ID: "job", HasIO: true}
	add(t, h, &sample.Sample{Jobs: []sample.Job{job}})
	job.SystemTime, job.CPUTime, job.Faults = kernel, cpu, uint64(count)
	for _, f := range change {
		f(&job)
	}
	add(t, h, &sample.Sample{At: sample.Stamp{Mono: 10 * s}, Jobs: []sample.Job{job}})
	w := &Window{Kind: ModelLoad, End: sample.Stamp{Mono: 10 * s}}
	return (&view{w, h, &Machine{Target: ledger.Target{Job: "job"}}}).faults()
}

// bypassOf is that of a window in which a job read files past the page cache. It fetched some bytes, and the page cache
// kept a part.
func bypassOf(t *testing.T, fetched, kept float64, drops uint64, change ...func(*Machine)) *Bypass {
	h := newHistory(t)
	job := sample.Job{ID: "job", HasIO: true}
	add(t, h, &sample.Sample{Jobs: []sample.Job{job}})
	job.ReadBytes, job.PageCache.Kept = uint64(fetched), int64(kept)
	job.PageCache.Drops = drops
	add(t, h, &sample.Sample{At: sample.Stamp{Mono: 10 * s}, Jobs: []sample.Job{job}})
	m := &Machine{Target: ledger.Target{Job: "job"}, PageCache: true, Direct: 2 * s,
		Memory: sample.MemoryLimit{Free: 8 << 30}}
	for _, f := range change {
		f(m)
	}
	return (&view{&Window{End: sample.Stamp{Mono: 10 * s}}, h, m}).bypass()
}

// What the page cache did not keep is no bypass where memory was short, or where that is not known.
func TestBypass(t *testing.T) {
	for name, c := range map[string]struct {
		kept   float64
		drops  uint64
		change func(*Machine)
		want   *Bypass
	}{
		"direct":             {1 << 20, 0, func(*Machine) {}, &Bypass{1 << 30, 1<<30 - 1<<20, false}},
		"others lost more":   {-4 << 30, 0, func(*Machine) {}, &Bypass{1 << 30, 1 << 30, false}},
		"dropped":            {0, 1, func(m *Machine) { m.Direct = 0 }, &Bypass{1 << 30, 1 << 30, true}},
		"neither":            {0, 0, func(m *Machine) { m.Direct = 0 }, nil},
		"it stayed":          {1 << 30, 1, func(*Machine) {}, nil},
		"memory is short":    {0, 0, func(m *Machine) { m.Memory.Free = 1 << 29 }, nil},
		"free is not known":  {0, 0, func(m *Machine) { m.Memory.Free = 0 }, nil},
		"not counted":        {0, 0, func(m *Machine) { m.PageCache = false }, nil},
		"reads are not read": {0, 0, func(m *Machine) { m.NoJobReads = true }, nil},
	} {
		got := bypassOf(t, 1<<30, c.kept, c.drops, c.change)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

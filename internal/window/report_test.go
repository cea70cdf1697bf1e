package window

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/sample"
)

const tick = 100 * time.Millisecond

// machine plays readings of one disk, one GPU and one job into a history, and keeps the truth.
type machine struct {
	t       testing.TB
	history *history.History
	ledger  *ledger.Pressure
	target  ledger.Target
	now     time.Duration

	disk     sample.Disk
	some     time.Duration
	core     sample.Core
	job      sample.Job
	gpu      time.Duration
	withGPU  bool
	pressure bool

	withoutJob bool // it has left
}

func newMachine(t testing.TB, withGPU bool) *machine {
	t.Helper()
	return newMachineOf(t, withGPU, true)
}

// newMachineWithoutPressure has a kernel without PSI.
func newMachineWithoutPressure(t testing.TB, withGPU bool) *machine {
	t.Helper()
	return newMachineOf(t, withGPU, false)
}

func newMachineOf(t testing.TB, withGPU, pressure bool) *machine {
	t.Helper()
	h, err := history.New(history.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, history: h, ledger: ledger.NewPressure(h), withGPU: withGPU, pressure: pressure, now: tick,
		disk:   sample.Disk{Name: "sda", Leaf: true, ReadIOs: 1},
		target: ledger.Target{Job: "job"}, job: sample.Job{ID: "job", HasIO: true}}
	if withGPU {
		m.target.GPU = "gpu0"
	}
	m.ledger.SetTargets([]ledger.Target{m.target})
	m.read(h)
	return m
}

func (m *machine) samples() []sample.Sample {
	at := sample.Stamp{Mono: m.now, Wall: time.Unix(1_700_000_000, 0).Add(m.now)}
	all := []sample.Sample{
		{At: at, Disks: []sample.Disk{m.disk}},
		{At: at, Cores: []sample.Core{m.core}},
	}
	if !m.withoutJob {
		all = append(all, sample.Sample{At: at, Jobs: []sample.Job{m.job}})
	}
	if m.pressure {
		all = append(all, sample.Sample{At: at, Pressures: []sample.Pressure{{Resource: sample.IO, Some: m.some, Full: m.some / 2}}})
	}
	if m.withGPU {
		all = append(all, sample.Sample{At: at, GPUs: []sample.GPU{{ID: "gpu0", Busy: m.gpu}}})
	}
	return all
}

func (m *machine) read(h *history.History) {
	m.t.Helper()
	for _, s := range m.samples() {
		if err := h.Append(&s); err != nil {
			m.t.Fatal(err)
		}
	}
	if _, err := m.ledger.Advance(nil); err != nil {
		m.t.Fatal(err)
	}
}

// step lets a tick pass in which the GPU worked, the job waited for the disk and worked on the CPU for so long.
func (m *machine) step(busy, waited, cpu time.Duration) {
	m.t.Helper()
	m.now += tick
	m.gpu += busy
	m.some += waited
	m.core.Name, m.core.User, m.core.Idle = "cpu0", m.core.User+cpu, m.core.Idle+tick-cpu
	m.job.CPUTime += cpu
	if waited > 0 {
		m.disk.ReadIOs += 25
		m.disk.ReadBytes += 25 * 4096
		m.disk.ReadTicks += waited
		m.disk.IOTicks += waited
		m.disk.TimeInQueue += waited
		m.job.ReadBytes += 25 * 4096
		m.job.ReadChars += 25 * 4096
	}
	m.read(m.history)
}

func (m *machine) edge() (sample.Stamp, *history.Edge) {
	e := &history.Edge{}
	for _, s := range m.samples() {
		m.history.Observe(e, &s)
	}
	m.ledger.Estimate(history.Point{At: m.now, Edge: e})
	return m.samples()[0].At, e
}

func (m *machine) report(w Window) *Report { return m.reportAs(w, Process, false) }

// reportAs says whose time it is, and whether what the job reads cannot be told.
func (m *machine) reportAs(w Window, scope Scope, unseen bool) *Report {
	w.End, w.EndEdge = m.edge()
	info := Machine{Leaves: []string{"sda"}, Target: m.target, Pressure: m.pressure, Scope: scope, Unseen: unseen}
	if m.withGPU {
		info.GPUs = []string{"gpu0"}
	}
	return Make(m.history, &w, info)
}

func (m *machine) begin(kind Kind) Window {
	w := Window{Kind: kind, Job: "job"}
	w.Start, w.StartEdge = m.edge()
	return w
}

func TestReportOfStorageBoundEpoch(t *testing.T) {
	m := newMachine(t, true)
	w := m.begin(Epoch)
	for range 20 {
		m.step(40*time.Millisecond, 0, 0)
		m.step(0, 90*time.Millisecond, 5*time.Millisecond)
	}
	r := m.report(w)
	if r.Verdict != StorageBound || r.Uncertainty > 0.01 {
		t.Fatalf("%s, uncertainty %v: %s", r.Verdict, r.Uncertainty, r.Finding)
	}
	if r.Busy+r.Storage+r.CPU+r.Other != r.GPUTime() {
		t.Errorf("the ledger does not add up: %v %v %v %v", r.Busy, r.Storage, r.CPU, r.Other)
	}
	if d := (r.Storage - 1800*time.Millisecond).Abs(); d > time.Millisecond {
		t.Errorf("storage stall %v, want 1.8 s", r.Storage)
	}
	if len(r.Disks) != 1 || r.Disks[0].ReadOperations != 500 || r.Disks[0].ReadBytes != 500*4096 {
		t.Errorf("disks %+v", r.Disks)
	}
	if r.Speedup < 1.8 || r.Speedup > 1.85 {
		t.Errorf("speed-up bound %v, want 4/2.2", r.Speedup)
	}
}

func TestStallsAreStretches(t *testing.T) {
	m := newMachine(t, true)
	w := m.begin(ModelLoad)
	for _, stalled := range []int{5, 1, 0, 40} { // ticks of stall, ten ticks of work after each
		for range stalled {
			m.step(0, tick, 0)
		}
		for range 10 {
			m.step(tick, 0, 0)
		}
	}
	r := m.report(w)
	if len(r.Stalls) != 2 {
		t.Fatalf("%+v, want the stretches of 0.5 and of 4 s", r.Stalls)
	}
	if first := r.Stalls[0]; first.End-first.Start != 5*tick || first.Waited != 5*tick {
		t.Errorf("first stretch %+v", first)
	}
}

func TestManyStallsAreBounded(t *testing.T) {
	m := newMachine(t, true)
	w := m.begin(Epoch)
	for i := range 100 {
		for range 3 + i%3 {
			m.step(0, tick, 0)
		}
		for range 4 {
			m.step(tick, 0, 0)
		}
	}
	if r := m.report(w); len(r.Stalls) != mostStalls {
		t.Fatalf("%d stretches, want %d", len(r.Stalls), mostStalls)
	}
}

func TestSharedPressureNeedsOwnIO(t *testing.T) {
	m := newMachine(t, true)
	w := m.begin(Epoch)
	for range 20 { // somebody else waits for the disk; the job does not read
		m.now += tick
		m.some += 90 * time.Millisecond
		m.disk.ReadIOs += 10
		m.disk.ReadBytes += 40960
		m.read(m.history)
	}
	if r := m.report(w); r.Storage != 0 || r.Verdict != Unknown {
		t.Fatalf("a stranger's waiting became the job's: %v %s", r.Storage, r.Verdict)
	}
}

// TestStorageWithoutADisk: read calls that move no disk of this machine are of a network file system where the job has files
// open on one, and of pipes otherwise.
func TestStorageWithoutADisk(t *testing.T) {
	for _, remote := range []bool{false, true} {
		m := newMachine(t, true)
		w := m.begin(Epoch)
		target := m.target
		target.Remote = remote
		m.ledger.SetTargets([]ledger.Target{target})
		for range 20 {
			m.now += tick
			m.some += 90 * time.Millisecond
			m.job.ReadChars += 40960
			m.read(m.history)
		}
		r := m.report(w)
		if want := map[bool]Verdict{true: StorageBound, false: Unknown}[remote]; r.Verdict != want || len(r.Disks) != 0 {
			t.Errorf("remote %v: %s with %+v", remote, r.Verdict, r.Disks)
		}
	}
}

// TestGoneSourceDoesNotFreezeTheLedger: when the last job has left, the machine's own ledger goes on in small cells, in
// which waiting and idleness that took turns are told apart.
func TestGoneSourceDoesNotFreezeTheLedger(t *testing.T) {
	m := newMachine(t, true)
	m.target = ledger.Target{GPU: "gpu0"}
	m.ledger.SetTargets([]ledger.Target{m.target})
	m.step(0, 0, 0)
	m.withoutJob = true
	for range 30 {
		m.step(0, 0, 0)
	}
	w := m.begin(Epoch)
	w.Job = ""
	for range 20 {
		m.step(tick, tick, 0) // somebody waits for the disk while the GPU works
		m.step(0, 0, 0)
	}
	if r := m.report(w); r.Storage > 50*time.Millisecond {
		t.Errorf("waiting while the GPU worked was taken for a stall of %v", r.Storage)
	}
}

func TestUnusedGPUIsLeftOut(t *testing.T) {
	m := newMachine(t, true)
	w := m.begin(Epoch)
	for range 20 {
		m.step(95*time.Millisecond, 0, 0)
	}
	w.End, w.EndEdge = m.edge()
	r := Make(m.history, &w, Machine{Leaves: []string{"sda"}, GPUs: []string{"gpu0", "gpu1"}, Target: m.target, Pressure: true})
	if r.Verdict != GPUBound || len(r.GPUIDs) != 1 {
		t.Errorf("%s on %v: %s", r.Verdict, r.GPUIDs, r.Finding)
	}
}

func TestWithoutPressureTheQueueSpeaks(t *testing.T) {
	m := newMachineWithoutPressure(t, true)
	w := m.begin(Epoch)
	for range 20 {
		m.step(0, 90*time.Millisecond, 0)
	}
	if r := m.report(w); r.Verdict != StorageBound || r.Pressure != nil {
		t.Fatalf("%s, pressure %+v", r.Verdict, r.Pressure)
	}
}

func TestWithoutGPU(t *testing.T) {
	m := newMachine(t, false)
	w := m.begin(Epoch)
	for range 20 {
		m.step(0, 60*time.Millisecond, 40*time.Millisecond)
	}
	r := m.report(w)
	if len(r.GPUIDs) != 0 || r.Busy != 0 || r.Storage+r.CPU+r.Other != r.Duration() {
		t.Fatalf("%+v", r)
	}
	var out map[string]any
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	if _, has := out["gpu"]; has || out["process"] == nil || out["epoch"] != nil {
		t.Fatalf("%s", text)
	}
	if _, has := out["stall"].(map[string]any)["cpu_s"]; has {
		t.Errorf("a CPU stall without a GPU: %s", text)
	}
}

// TestLedgerAddsUp plays random ticks: the parts add up to the window, to the nanosecond, whatever happened.
func TestLedgerAddsUp(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		m := newMachine(t, seed%2 == 0)
		m.step(0, 0, 0)
		w := m.begin(Epoch)
		for range 50 {
			d := func() time.Duration { return time.Duration(rng.Int64N(int64(2 * tick))) }
			m.step(d(), d(), d())
			if rng.IntN(20) == 0 { // the disk is unplugged and comes back from zero, the GPU's counter resets
				m.disk = sample.Disk{Name: "sda", Leaf: true, ReadIOs: 1}
				m.gpu = 0
			}
		}
		r := m.report(w)
		if r.Busy < 0 || r.Storage < 0 || r.CPU < 0 || r.Other < 0 || r.Busy+r.Storage+r.CPU+r.Other != r.GPUTime() {
			t.Fatalf("seed %d: %v + %v + %v + %v is not %v", seed, r.Busy, r.Storage, r.CPU, r.Other, r.GPUTime())
		}
	}
}

// TestClockStep lets NTP set the clock back by an hour in the middle of a window.
func TestClockStep(t *testing.T) {
	m := newMachine(t, true)
	w := m.begin(Epoch)
	for range 10 {
		m.step(tick, 0, 0)
	}
	r := m.report(w)
	r.End.Wall = r.End.Wall.Add(-time.Hour)
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var out struct {
		Start, End time.Time
		Duration   float64 `json:"duration_s"`
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	if out.Duration != 1 || out.End.Sub(out.Start) != time.Second {
		t.Fatalf("%s", text)
	}
}

func BenchmarkReport(b *testing.B) {
	m := newMachine(b, true)
	w := m.begin(Epoch)
	for range 6_000 {
		m.step(40*time.Millisecond, 50*time.Millisecond, 10*time.Millisecond)
	}
	w.End, w.EndEdge = m.edge()
	info := Machine{GPUs: []string{"gpu0"}, Target: m.target, Pressure: true}
	for range 10 {
		info.Leaves = append(info.Leaves, "sda")
	}
	b.ReportAllocs()
	for b.Loop() {
		Make(m.history, &w, info)
	}
}

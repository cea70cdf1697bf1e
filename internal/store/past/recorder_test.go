package past

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/store"
	"github.com/stallspan/stallspan/internal/trust"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/fixture/tape"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// zero is the wall time of monotonic zero.
var zero = time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)

func stamp(mono time.Duration) sample.Stamp { return sample.Stamp{Mono: mono, Wall: zero.Add(mono)} }

// machine fills a history with the readings of a machine in which all counters grow evenly.
type machine struct {
	history     *history.History
	gpus, disks int
}

func newMachine(t testing.TB, gpus, disks int) *machine {
	t.Helper()
	h, err := history.New(history.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return &machine{h, gpus, disks}
}

// Rates of a machine.
const (
	readRate = 100e6 // bytes/s of each disk
	readOps  = 1000  // operations/s
	await    = 2 * time.Millisecond
	burst    = 3 // factor of the rates in every tenth second
)

// read adds the readings at a time, ten a second. In every tenth second the disks are faster, and the GPUs idle.
func (m *machine) read(t testing.TB, at time.Duration) {
	t.Helper()
	at += time.Minute                           // counters are above 0
	part := func(whole time.Duration) float64 { // of the bursts that are over
		return float64(whole/period) + min(time.Second, whole%period).Seconds()
	}
	bursts := part(at)
	worked := at.Seconds() + (burst-1)*bursts
	for _, s := range []sample.Sample{
		{Disks: m.disksAt(worked)},
		{Pressures: []sample.Pressure{{Resource: sample.IO, Some: at / 4, Full: at / 8}}},
		{Cores: []sample.Core{{Name: "cpu0", User: at / 2, Idle: at / 2}}},
		{Jobs: []sample.Job{{ID: "j", CPUTime: at, ReadBytes: uint64(at.Seconds() * readRate), HasIO: true}}},
		m.gpusAt(at, at-time.Duration(bursts*float64(time.Second))),
	} {
		s.At = stamp(at - time.Minute)
		for i := range s.GPUDetails {
			s.GPUDetails[i].At = s.At.Mono
		}
		if err := m.history.Append(&s); err != nil {
			t.Fatal(err)
		}
	}
	ledgers := []history.LedgerTotals{{ID: "\x00", Busy: at / 2, Storage: at / 4, CPU: at / 8}}
	for i := range m.gpus {
		ledgers = append(ledgers, history.LedgerTotals{ID: "j\x00" + gpuID(i), Busy: at / 2, Storage: at / 4, CPU: at / 8,
			Scheduled: &history.Scheduled{Time: at, Ready: at / 16}})
	}
	if err := m.history.AppendLedgers(at-time.Minute, ledgers); err != nil {
		t.Fatal(err)
	}
}

func gpuID(i int) string { return fmt.Sprintf("GPU-%d", i) }

func (m *machine) disksAt(worked float64) (all []sample.Disk) {
	for i := range m.disks {
		busy := time.Duration(worked * readOps * float64(await))
		all = append(all, sample.Disk{Name: fmt.Sprintf("nvme%dn1", i), Leaf: true,
			ReadIOs: uint64(worked * readOps), ReadBytes: uint64(worked * readRate), ReadTicks: busy,
			IOTicks: busy / 8, TimeInQueue: busy})
	}
	return all
}

func (m *machine) gpusAt(at, busy time.Duration) (s sample.Sample) {
	for i := range m.gpus {
		s.GPUs = append(s.GPUs, sample.GPU{ID: gpuID(i), Index: i, Busy: busy, Temperature: 60, Power: 400,
			MemoryUsed: 64 << 30, MemoryTotal: 80 << 30, Has: sample.HasMemory | sample.HasTemperature | sample.HasPower})
		if at%time.Second == 0 {
			s.GPUDetails = append(s.GPUDetails, sample.GPUDetail{GPU: gpuID(i)})
		}
	}
	return s
}

// fill adds readings up to a time.
func (m *machine) fill(t testing.TB, from, to time.Duration) {
	t.Helper()
	for at := from; at <= to; at += 100 * time.Millisecond {
		m.read(t, at)
	}
}

// begun is a recorder without a goroutine, and the problems that it reports.
func begun(t testing.TB, h *history.History, folder string) (*Recorder, *[]string) {
	t.Helper()
	problems := new([]string)
	r := New(store.Options{Folder: folder, MaxSize: store.DefaultMaxSize, MaxAge: store.DefaultMaxAge})
	r.of, r.report = h, func(err error) { *problems = append(*problems, err.Error()) }
	r.begin(stamp(0))
	return r, problems
}

// curve is what a folder holds of one curve, by the start of the interval.
type curve map[time.Time]float64

func read(t testing.TB, folder string) (curves map[string]curve, entries []store.Entry) {
	t.Helper()
	curves = map[string]curve{}
	err := store.Each(folder, time.Time{}, time.Time{}, func(_ string, file io.Reader) error {
		r := store.NewReader(file)
		for {
			item, err := r.Next()
			if errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			entries = append(entries, item.Entries...)
			if item.Rows == nil {
				continue
			}
			for c, column := range item.Rows.Columns {
				key := string(column.Of) + " " + column.ID + " " + column.Quantity
				if curves[key] == nil {
					curves[key] = curve{}
				}
				for i, start := range item.Rows.Starts {
					curves[key][time.Unix(start, 0).UTC()] = item.Rows.Values[c][i]
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return curves, entries
}

func TestCurves(t *testing.T) {
	m := newMachine(t, 2, 2)
	folder := filepath.Join(t.TempDir(), "history")
	r, problems := begun(t, m.history, folder)
	for at := time.Duration(0); at < 3*time.Minute; at += period {
		m.fill(t, at, at+period-1)
		r.round(stamp(at + period))
	}
	r.close(stamp(3 * time.Minute))
	if len(*problems) > 0 {
		t.Errorf("got the problems %q, want none", *problems)
	}
	curves, _ := read(t, folder)
	at := zero.Add(time.Minute)
	const mean = (9 + burst) / 10.0
	for key, want := range map[string]float64{
		"disk nvme1n1 read_bytes_per_s":     mean * readRate,
		"disk nvme1n1 read_bytes_max_per_s": burst * readRate,
		"disk nvme1n1 reads_per_s":          mean * readOps,
		"disk nvme1n1 read_await_s":         await.Seconds(),
		"disk nvme1n1 read_await_max_s":     await.Seconds(),
		"disk nvme1n1 write_bytes_per_s":    0,
		"disk nvme1n1 write_await_s":        math.NaN(),
		"disk nvme1n1 queue_depth":          mean * readOps * await.Seconds(),
		"disk nvme1n1 queue_depth_max":      burst * readOps * await.Seconds(),
		"disk nvme1n1 utilization_ratio":    mean * readOps * await.Seconds() / 8,
		"gpu GPU-1 busy_ratio":              0.9,
		"gpu GPU-1 busy_min_ratio":          0,
		"gpu GPU-1 busy_max_ratio":          1,
		"gpu GPU-1 power_watts":             400,
		"gpu GPU-1 power_max_watts":         400,
		"gpu GPU-1 temperature_celsius":     60,
		"gpu GPU-1 memory_used_bytes":       64 << 30,
		"gpu GPU-1 sm_active_ratio":         math.NaN(),
		"machine  busy_cores":               0.5,
		"machine  busiest_core_ratio":       0.5,
		"machine  io_some_ratio":            0.25,
		"machine  io_full_ratio":            0.125,
		"machine  storage_ratio":            0.25,
		"job j busy_ratio":                  0.5,
		"job j storage_ratio":               0.25,
		"job j cpu_ratio":                   0.125,
		"job j no_core_ratio":               0.0625,
		"job j busy_cores":                  1,
		"job j read_bytes_per_s":            readRate,
	} {
		got, known := curves[key][at]
		if !known || math.Abs(got-want) > 0.002*max(1, want) || math.IsNaN(got) != math.IsNaN(want) {
			t.Errorf("%s: got %v (%v), want %v", key, got, known, want)
		}
	}
	for start := range curves["machine  busy_cores"] {
		if start.Unix()%10 != 0 {
			t.Errorf("got an interval from %v on, want multiples of 10 s", start)
		}
	}
	if n := len(curves["machine  busy_cores"]); n < 16 || n > 18 {
		t.Errorf("got %d intervals of three minutes, want nearly 18", n)
	}
}

// The means of the curves are those of the history that they are made from.
func TestRecordedMachine(t *testing.T) {
	h := tape.Play(t, filepath.Join("..", "..", "..", "testdata", "recordings", "gpu.jsonl.gz"),
		func(*monitor.Monitor, *recording.Entry) {}).History()
	first, _ := h.First(history.DiskReadBytes)
	i := interval{h, first + time.Second, first + 5*time.Second}
	gpu := h.IDs(history.GPUBusyTime)[0]
	for _, test := range []struct {
		of     store.Kind
		id     string
		name   string
		series history.Series
	}{
		{store.Disk, "vda", store.ReadBytes, history.DiskReadBytes},
		{store.Disk, "vda", store.Queue, history.DiskTimeInQueue},
		{store.GPU, gpu, store.Busy, history.GPUBusyTime},
		{store.Machine, "", store.IOSome, history.IOSome},
	} {
		c := i.devices()
		at := slices.IndexFunc(c.columns, func(c store.Column) bool {
			return c.Of == test.of && c.ID == test.id && c.Quantity == test.name
		})
		key := history.Key{Series: test.series, ID: test.id}
		want, ok := h.Between(key, history.Point{At: i.start}, history.Point{At: i.end})
		if at < 0 || !ok || want.Value == 0 {
			t.Errorf("%s: got column %d, and %v (%v) in the history, want both", test.name, at, want, ok)
			continue
		}
		if got := c.values[at] * (i.end - i.start).Seconds(); math.Abs(got-want.Value) > 1e-6*want.Value {
			t.Errorf("%s: got %v, want %v", test.name, got, want.Value)
		}
	}
	if jobs := i.jobs(); len(jobs.columns) != len(quantities[store.Job]) || jobs.columns[0].ID != "train" {
		t.Errorf("got the jobs %+v, want train", jobs.columns)
	}
}

func TestClockIsSet(t *testing.T) {
	for name, step := range map[string]time.Duration{
		"ahead": time.Hour + 3*time.Second, "back": -time.Hour - 3*time.Second, "by little": 20 * time.Millisecond,
	} {
		m := newMachine(t, 0, 1)
		folder := t.TempDir()
		r, _ := begun(t, m.history, folder)
		moved := func(at sample.Stamp) sample.Stamp { at.Wall = at.Wall.Add(step); return at }
		for at := time.Duration(0); at < 4*time.Minute; at += period {
			m.fill(t, at, at+period-1)
			now := stamp(at + period)
			if at > 2*time.Minute {
				now = moved(now)
			}
			r.round(now)
		}
		r.close(moved(stamp(4 * time.Minute)))
		curves, _ := read(t, folder)
		if n := len(curves["machine  busy_cores"]); n < 21 || n > 23 {
			t.Errorf("%s: got %d intervals of four minutes, want all but those at the step and at the end", name, n)
		}
	}
}

func TestWindowsAndEvents(t *testing.T) {
	m := newMachine(t, 0, 1)
	folder := t.TempDir()
	r, problems := begun(t, m.history, folder)
	const most = 1024 // of 4 KiB each, that wait in the writer
	report := func(id string, slow bool) *window.Report {
		w := &window.Report{Window: window.Window{ID: id, Kind: window.Epoch, Client: "uid 7"}}
		w.Slow = slow
		w.Start, w.End = stamp(time.Second), stamp(2*time.Second)
		return w
	}
	r.Window(report("first", false))
	r.Event(zero.Add(time.Second), "uid 8", trust.Lane("uid 8"), []byte(`{"name":"stallspan.window.slow"}`+"\n"))
	r.round(stamp(flushEvery))
	r.Window(report("slow", true))
	for range 3 * most {
		r.Window(report("many", false))
	}
	for range 3 * most {
		r.Event(zero, "", "", []byte(`{}`))
	}
	r.close(stamp(flushEvery + period))
	_, entries := read(t, folder)
	if want := 2 + most; len(entries) != want {
		t.Fatalf("got %d entries, want %d", len(entries), want)
	}
	texts := ""
	for _, e := range entries {
		texts += string(e.Text)
	}
	if !strings.Contains(texts, `"id":"slow"`) || !strings.Contains(texts, `"id":"first"`) {
		t.Error("got no slow window, want it in spite of the others")
	}
	if e := entries[0]; e.Client != "uid 7" || !e.At.Equal(zero.Add(2*time.Second)) {
		t.Errorf("got a window of %q at %v, want uid 7 and its end", e.Client, e.At)
	}
	first := slices.IndexFunc(entries, func(e store.Entry) bool { return e.Kind == store.Event })
	if e := entries[max(first, 0)]; e.Kind != store.Event || e.Client != "uid 8" || !e.At.Equal(zero.Add(time.Second)) {
		t.Errorf("got the %s of %q at %v, want the event of uid 8 at its time", e.Kind, e.Client, e.At)
	}
	if len(*problems) != 1 || !strings.Contains((*problems)[0], "came too fast") {
		t.Errorf("got the problems %q, want the loss", *problems)
	}
}

// A folder that cannot be used is reported, and tried again. What happened meanwhile is written then.
func TestFolderThatComesLater(t *testing.T) {
	m := newMachine(t, 0, 1)
	parent := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(parent, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(parent, "history")
	r, problems := begun(t, m.history, folder)
	if err := r.Copy(io.Discard, time.Time{}, time.Time{}, nil); err == nil {
		t.Error("got a copy before anything is written, want an error")
	}
	for at := time.Duration(0); at < 5*time.Minute; at += period {
		if at == 3*time.Minute {
			if err := os.Remove(parent); err != nil {
				t.Fatal(err)
			}
		}
		m.fill(t, at, at+period-1)
		r.round(stamp(at + period))
	}
	if len(*problems) != 3 || !strings.Contains((*problems)[0], "the history is not written") {
		t.Errorf("got the problems %q, want one a minute", *problems)
	}
	r.close(stamp(5 * time.Minute))
	curves, _ := read(t, folder)
	if n := len(curves["machine  busy_cores"]); n < 28 {
		t.Errorf("got %d intervals of five minutes, want nearly 30", n)
	}
}

func TestStartAndStop(t *testing.T) {
	m := newMachine(t, 0, 1)
	m.fill(t, 0, time.Second)
	folder := filepath.Join(t.TempDir(), "history")
	r := New(store.Options{Folder: folder, MaxSize: store.DefaultMaxSize, MaxAge: store.DefaultMaxAge})
	r.Start(m.history, Times{}, func(err error) { t.Error(err) })
	r.Event(time.Now(), "", "", []byte(`{}`))
	r.Stop()
	if _, entries := read(t, folder); len(entries) != 1 {
		t.Errorf("got %d entries, want the event", len(entries))
	}
	var none *Recorder
	none.Start(m.history, Times{}, nil)
	none.Window(nil)
	none.Event(time.Now(), "", "", nil)
	none.Stop()
}

// One operation is a minute of 8 GPUs, 8 disks and a job: six intervals, and a block of them.
func BenchmarkMinute(b *testing.B) {
	m := newMachine(b, 8, 8)
	m.fill(b, 0, 3*time.Minute)
	r, _ := begun(b, m.history, b.TempDir())
	now := stamp(2 * time.Minute)
	b.ReportAllocs()
	for b.Loop() {
		r.done, r.flush = now.Mono-lag-time.Minute, now.Mono
		r.round(now)
	}
	b.ReportMetric(100*float64(b.Elapsed())/float64(b.N)/float64(time.Minute), "%core")
}

// Reports and events of one client, as many and as large as the API takes, cost no curve, no event of the machine, and
// nothing of another client.
func TestNoisyClient(t *testing.T) {
	for _, size := range []int{5_000, 60_000} {
		m := newMachine(t, 0, 1)
		folder := t.TempDir()
		r, _ := begun(t, m.history, folder)
		noise := []byte(`{"x":"` + strings.Repeat("x", size) + `"}`)
		for at := time.Duration(0); at < 3*time.Minute; at += period {
			m.fill(t, at, at+period-1)
			keep := func(client string, text []byte) {
				r.Keep(zero.Add(at), client, text)
				r.Event(zero.Add(at), client, trust.Lane(client), text)
			}
			keep("uid 2", []byte(`{}`))
			r.Event(zero.Add(at), "", "", []byte(`{"name":"stallspan.gpu.lost"}`))
			for range 100 {
				keep("uid 1", noise)
			}
			keep("uid 2", []byte(`{}`))
			r.round(stamp(at + period))
		}
		r.close(stamp(3 * time.Minute))
		curves, entries := read(t, folder)
		if n := len(curves["machine  busy_cores"]); n < 16 {
			t.Errorf("%d bytes: got %d intervals, want nearly 18", size, n)
		}
		of := map[string]int{}
		for _, e := range entries {
			of[e.Kind.String()+" of "+e.Client]++
		}
		if of["window of uid 2"] != 36 || of["event of uid 2"] != 36 || of["event of "] != 18 || of["window of uid 1"] == 0 {
			t.Errorf("%d bytes: got %v, want 36 windows and events of uid 2, 18 events of the machine, some of uid 1", size, of)
		}
	}
}

// What a disk does not count is in no curve.
func TestUntimedDisk(t *testing.T) {
	h, err := history.New(history.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for at := range 11 {
		n := uint64(at)
		reads := time.Duration(n) * time.Millisecond
		if err := h.Append(&sample.Sample{At: sample.Stamp{Mono: time.Duration(at+1) * second}, Disks: []sample.Disk{
			{Name: "vda", Leaf: true, ReadIOs: 41000 + 2000*n, ReadBytes: 8e6 * n},
			{Name: "nvme0n1", Leaf: true, ReadIOs: 1 + 2*n, ReadTicks: reads, TimeInQueue: reads, IOTicks: time.Duration(n) * second},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	i := interval{from: h, start: second, end: 11 * second}
	values := i.disk("vda")
	if values[store.Reads] != 2000 || values[store.ReadBytes] != 8e6 {
		t.Errorf("got %v, want 2000 reads of 8 MB a second", values)
	}
	for _, name := range []string{store.ReadAwait, store.ReadAwaitMax, store.Queue, store.QueueMax, store.Utilization} {
		if v, known := values[name]; known {
			t.Errorf("%s: got %v, want none", name, v)
		}
	}
	if got := i.disk("nvme0n1")[store.Utilization]; math.Abs(got-0.001) > 1e-9 {
		t.Errorf("got a utilization of %v, want the queue, 0.001", got)
	}
}

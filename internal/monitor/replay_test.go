package monitor

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

var dawn = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)

// round is the i-th round of readings of a machine whose GPU is busy for half of the time while its job waits for
// storage in the other half: four sources, one after another.
func round(i int) []*sample.Sample {
	const tick = 100 * time.Millisecond
	spent := time.Duration(i) * tick
	at := func(late time.Duration) sample.Stamp {
		return sample.Stamp{Mono: time.Hour + spent + late, Wall: dawn.Add(spent + late)}
	}
	n := uint64(i)
	return []*sample.Sample{
		{At: at(0), Pressures: []sample.Pressure{{Scope: "/job", Resource: sample.IO, Some: spent / 2, Full: spent / 2}}},
		{At: at(1), GPUs: []sample.GPU{{ID: "GPU-1", Busy: spent / 2}}},
		{At: at(2), Jobs: []sample.Job{{ID: "train", Scope: "/job", OwnScope: true, HasIO: true, ReadBytes: n << 20, ReadChars: n << 20, Processes: 1}}},
		{At: at(3), Disks: []sample.Disk{{Name: "vda", Leaf: true, ReadIOs: n, ReadBytes: n << 20, ReadTicks: spent / 2, TimeInQueue: spent / 2}}},
	}
}

func TestReplay(t *testing.T) {
	m, err := New(Config{Recorded: true, Boot: dawn.Add(-time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Stop()
	feed := func(from, to int) {
		for i := from; i < to; i++ {
			for _, s := range round(i) {
				feedSample(t, m, s)
			}
			if err := m.Feed(&recording.Entry{Mark: &recording.Mark{Op: recording.Tick}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	follow := &recording.Mark{Op: recording.Follow, ID: "train", Scope: "/job", OwnScope: true}
	if err := m.Feed(&recording.Entry{Mark: follow}); err != nil {
		t.Fatal(err)
	}
	feed(0, 11)
	id, err := m.Windows.Begin(window.Window{Kind: window.Epoch, Job: "train"}, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	feed(11, 31)
	if running := m.Windows.Running(); len(running) != 1 || running[0].Duration() != 2*time.Second {
		t.Errorf("running: %+v", running)
	}
	r, err := m.Windows.End(id, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	if r.Duration() != 2*time.Second || !r.Start.Wall.Equal(dawn.Add(time.Second+3)) {
		t.Errorf("from %v for %v", r.Start.Wall, r.Duration())
	}
	near := func(got time.Duration) bool { return math.Abs(got.Seconds()-1) < 0.001 }
	if !near(r.Busy) || !near(r.Storage) || r.Verdict != window.StorageBound {
		t.Errorf("busy %v, storage %v: %s", r.Busy, r.Storage, explain.Finding(r))
	}
	if len(r.Disks) != 1 || r.Disks[0].ReadOperations != 20 || r.Uncertainty != 0 {
		t.Errorf("disks %+v, uncertainty %v", r.Disks, r.Uncertainty)
	}
	if latest := m.Collect(); !latest.Boot.Equal(dawn.Add(-time.Hour)) || latest.Disks.Disks[0].ReadIOs != 30 {
		t.Errorf("latest: %+v", latest)
	}
	if m.Jobs.Follow("x", 1, "", false) == nil {
		t.Error("a process of this machine is followed in a recording")
	}
	m.Jobs.Unfollow("train") // its windows still have their ledger
	if ended := m.Windows.Ended(); len(ended) != 1 {
		t.Errorf("%d reports", len(ended))
	}
	feed(40_000, 40_001) // 66 minutes later by the recording's clock
	if ended := m.Windows.Ended(); len(ended) != 0 {
		t.Errorf("%d reports after an hour", len(ended))
	}
	for _, problem := range m.Problems() {
		t.Errorf("got the problem %v, want none", problem)
	}
}

func feedSample(t *testing.T, m *Monitor, s *sample.Sample) {
	t.Helper()
	if err := m.Feed(&recording.Entry{Source: "some", Sample: s}); err != nil {
		t.Fatal(err)
	}
}

func TestConfig(t *testing.T) {
	for _, config := range []Config{{Interval: 1}, {Interval: time.Hour}, {Recorded: true, Accelerator: nothing{}}} {
		if _, err := New(config); err == nil {
			t.Errorf("%+v was taken", config)
		}
	}
}

type nothing struct{}

func (nothing) Read(*sample.Sample) error { return nil }

// What is recorded on this machine comes back as it was taken, windows and all.
func TestRecord(t *testing.T) {
	p := newTape(t)
	m := p.ofThisProcess()
	first, err := m.Windows.Begin(window.Window{
		Kind: window.Epoch, Epoch: 1, HasEpoch: true, Job: "job", Attributes: map[string]string{"a": "b"},
	}, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	m.Tick()
	second, err := m.Windows.Begin(window.Window{Kind: window.ModelLoad, Model: "m", Path: "/p", Job: "job"}, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	for range 50 { // something to account for
		m.Tick()
		m.Windows.Running()
	}
	at := m.Now()
	if _, err := m.Windows.End(first, at); err != nil {
		t.Fatal(err)
	}
	m.Windows.Drop(second)
	third, err := m.Windows.Begin(window.Window{Kind: window.Custom, Name: "third"}, at)
	if err != nil {
		t.Fatal(err)
	}
	m.Tick()
	m.Jobs.Unfollow("job")
	if _, err := m.Windows.Cut(third, m.Now(), window.Outcome{Unfinished: true}); err != nil {
		t.Fatal(err)
	}
	m.Stop()
	again := p.replaysTheSame()
	if len(p.was) != 2 || len(again.Collect().Jobs.Jobs) != 0 {
		t.Errorf("%d windows, then the jobs %v", len(p.was), again.Collect().Jobs.Jobs)
	}
	for _, problem := range m.Problems() {
		t.Log(problem)
	}
}

// tape is a recording that is made, and the reports that a replay of it has to give again.
type tape struct {
	*testing.T
	file bytes.Buffer
	w    *recording.Writer
	was  map[string]string // by window
}

func newTape(t *testing.T) *tape {
	t.Helper()
	p := &tape{T: t, was: map[string]string{}}
	var err error
	if p.w, err = recording.NewWriter(&p.file, recording.ThisMachine(time.Time{}, 0, "")); err != nil {
		t.Fatal(err)
	}
	return p
}

// ofThisProcess returns a monitor that is recorded, samples when Tick is called, and follows this process as "job".
func (p *tape) ofThisProcess() *Monitor { return p.follows(os.Getpid(), "") }

// follows is ofThisProcess with another process, and with the cgroup that has this process alone, if it has one.
func (p *tape) follows(pid int, group string) *Monitor {
	p.Helper()
	m, err := New(Config{Journal: p.w, Reports: p.add})
	if err != nil {
		p.Fatal(err)
	}
	m.Tick()
	if err := m.Jobs.Follow("job", pid, group, group != ""); err != nil {
		p.Fatal(err)
	}
	return m
}

// fed is a monitor that replays what feed records.
func (p *tape) fed(also func(*window.Report)) (m *Monitor, feed func(recording.Entry)) {
	p.Helper()
	m, err := New(Config{Recorded: true, Boot: dawn, Reports: func(r *window.Report) {
		p.add(r)
		also(r)
	}})
	if err != nil {
		p.Fatal(err)
	}
	return m, func(e recording.Entry) {
		p.Helper()
		if err := p.w.Write(&e); err != nil {
			p.Fatal(err)
		}
		if err := m.Feed(&e); err != nil {
			p.Fatal(err)
		}
	}
}

func (p *tape) add(r *window.Report) { p.was[r.ID] = text(p.T, r) }

// replaysTheSame holds the reports of a replay against those that were. The monitor that was recorded has stopped.
func (p *tape) replaysTheSame() *Monitor {
	p.Helper()
	if err := p.w.Close(); err != nil {
		p.Fatal(err)
	}
	is := map[string]string{}
	again := replay(p.T, p.file.Bytes(), history.Config{}, func(r *window.Report) { is[r.ID] = text(p.T, r) })
	for id, want := range p.was {
		if is[id] != want {
			p.Errorf("was %s\n is %s", want, is[id])
		}
	}
	return again
}

func text(t *testing.T, r *window.Report) string {
	t.Helper()
	line, err := json.Marshal(explain.NewReport(r))
	if err != nil {
		t.Error(err)
	}
	return string(line)
}

// replay feeds a recording to a monitor, up to where it ends or is damaged, with a window from each reading to the
// next.
func replay(t *testing.T, file []byte, rings history.Config, ended func(*window.Report)) *Monitor {
	t.Helper()
	config := Config{Recorded: true, History: rings, Reports: ended}
	r, err := recording.NewReader(bytes.NewReader(file))
	if err == nil {
		config.Boot = r.Header().Boot
	}
	m, failed := New(config)
	if failed != nil {
		t.Fatalf("got %v from New, want a monitor", failed)
	}
	if err != nil {
		return m
	}
	var e recording.Entry
	var open string
	for r.Next(&e) == nil {
		_ = m.Feed(&e) // whatever the entry says, the next one is taken
		now := m.Now()
		if report, err := m.Windows.End(open, now); err == nil {
			if report.Split && report.Busy+report.Storage+report.CPU+report.Other != report.GPUTime() {
				t.Errorf("the ledger does not add up: %+v", report)
			}
			if _, err := json.Marshal(explain.NewReport(report)); err != nil {
				t.Error(err)
			}
		}
		if open, err = m.Windows.Begin(window.Window{Kind: window.Epoch, Job: "j"}, now); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// cpuTime returns the CPU time of this program.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// A recording takes time in proportion to its size, whatever its edges are.
func TestReplayIsLinear(t *testing.T) {
	edges := func(count int, step int) []byte {
		var lines bytes.Buffer
		zip := gzip.NewWriter(&lines)
		fmt.Fprintf(zip, "{\"stallspan_recording\":1}\n"+
			`{"source":"a","sample":{"at":{"mono":1000000000,"wall":"2026-01-02T03:04:05Z"},"gpus":[{"id":"g","busy":5}]}}`+"\n")
		for i := range count {
			fmt.Fprintf(zip, `{"mark":{"op":"edge","edge":%d,"at":{"mono":%d,"wall":"2026-01-02T03:04:05Z"}}}`+"\n",
				i+1, 3_000_000_000+i*step)
		}
		_ = zip.Close()
		return lines.Bytes()
	}
	feed := func(file []byte) time.Duration {
		m, err := New(Config{Recorded: true})
		if err != nil {
			t.Fatal(err)
		}
		r, err := recording.NewReader(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		start := cpuTime(t)
		var e recording.Entry
		for r.Next(&e) == nil {
			_ = m.Feed(&e)
		}
		return cpuTime(t) - start
	}
	for name, step := range map[string]int{"descending": -10, "ascending": 10, "at one time": 0} {
		short, long := feed(edges(20_000, step)), feed(edges(80_000, step))
		if long > 8*short+100*time.Millisecond {
			t.Errorf("%s: 20,000 edges took %v, 80,000 took %v, want about 4 times that", name, short, long)
		}
	}
}

// FuzzReplay feeds whatever the lines of a recording may say.
func FuzzReplay(f *testing.F) {
	for _, lines := range []string{
		`{"source":"a","sample":{"at":{"mono":100000000,"wall":"2026-01-02T03:04:05Z"},"gpus":[{"id":"g","busy":5}],"disks":[{"name":"d","leaf":true,"reads":1}]}}
{"source":"a","sample":{"at":{"mono":900000000,"wall":"2026-01-02T03:04:06Z"},"gpus":[{"id":"g","busy":9}],"disks":[{"name":"d","leaf":true,"reads":7,"weighted_time":9223372036854775807}]}}
`,
		`{"source":"a","sample":{"at":{"mono":1,"wall":"2026-01-02T03:04:05Z"},"jobs":[{"id":"j","scope":"/c","own_scope":true,"cpu_time":-5}],"pressures":[{"resource":"io","scope":"/c","some":-9}],"cores":[{"name":"cpu0","user":-1}]}}
{"source":"a","sample":{"at":{"mono":9223372036854775807,"wall":"1990-01-02T03:04:05Z"},"jobs":[{"id":"j","scope":"/c","cpu_time":9223372036854775807}],"pressures":[{"resource":"io","some":9223372036854775807}]}}
`,
		`{"source":"a","sample":{"at":{"mono":100000000,"wall":"2026-01-02T03:04:05Z"},"gpus":[{"id":"g","busy":5}],"gpu_details":[{"gpu":"g","at":-5,"values":{"tensor_active":-1}},{"gpu":"g","at":9,"values":{"tensor_active":1e308,"throttled_power":3}}]}}
{"source":"a","sample":{"at":{"mono":9000000000,"wall":"2026-01-02T03:04:14Z"},"gpus":[{"id":"g","busy":9}],"gpu_details":[{"gpu":"g","at":9223372036854775807,"values":{"tensor_active":0.1,"throttled_power":1e300}},{"gpu":"h","at":5,"values":{}}]}}
`,
		`{"mark":{"op":"follow","id":"j","scope":"/c","own_scope":true}}
{"mark":{"op":"edge","edge":1,"at":{"mono":5,"wall":"2026-01-02T03:04:05Z"}}}
{"mark":{"op":"begin","edge":1,"id":"w","at":{"mono":5,"wall":"2026-01-02T03:04:05Z"},"window":{"kind":"epoch","job":"j"}}}
{"source":"a","sample":{"at":{"mono":1000,"wall":"2026-01-02T03:04:05Z"},"gpus":[{"id":"g","busy":5}]}}
{"source":"a","edge":2,"sample":{"at":{"mono":900,"wall":"2026-01-02T03:04:05Z"},"disks":[{"name":"d","leaf":true,"reads":7}]}}
{"mark":{"op":"tick"}}
{"mark":{"op":"edge","edge":2,"at":{"mono":2000,"wall":"2026-01-02T03:04:05Z"}}}
{"mark":{"op":"end","edge":2,"id":"w","at":{"mono":2000,"wall":"2026-01-02T03:04:05Z"}}}
{"mark":{"op":"leave","id":"j"}}
`,
	} {
		f.Add(lines)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		var file bytes.Buffer
		zip := gzip.NewWriter(&file)
		_, _ = zip.Write([]byte(`{"stallspan_recording":1}` + "\n" + lines))
		_ = zip.Close()
		start := cpuTime(t)
		small := history.Config{Tiers: []history.Tier{{Rows: 32}, {Period: time.Second, Rows: 32}}} // small rings
		replay(t, file.Bytes(), small, func(*window.Report) {})
		if took, most := cpuTime(t)-start, 2*time.Second+time.Duration(len(lines))*100*time.Microsecond; took > most {
			t.Errorf("%d bytes took %v of CPU time, want at most %v", len(lines), took, most)
		}
	})
}

package top

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/gdamore/tcell/v3"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/agent/internal/stat"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/test/fixture"
)

var update = flag.Bool("update", false, "rewrite the expected screens")

func TestMain(m *testing.M) {
	time.Local = time.UTC // frames show the time of day
	os.Exit(m.Run())
}

// framesOf returns a frame for each second of a recording of testdata, as if it were live.
func framesOf(t testing.TB, name string) (frames []*Frame) {
	t.Helper()
	path := filepath.Join("testdata", name+".jsonl.gz")
	if _, err := os.Stat(path); err != nil {
		path = fixture.File(t, "recordings", name+".jsonl.gz")
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	reader, err := recording.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	header := reader.Header()
	m, err := monitor.New(monitor.Config{Recorded: true, Boot: header.Boot, Interval: header.Interval})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Stop()
	b := builder{monitor: m, host: header.Host, name: func(int) string { return "" }, parent: func(int) int { return 0 }}
	var jobs []*watched
	var due time.Duration
	take := func() *Frame {
		f := b.frame(jobs)
		for _, w := range m.Windows.Running() {
			f.Windows = append(f.Windows, Window{explain.NewReport(w), "", true})
		}
		for _, w := range m.Windows.Ended() {
			f.Windows = append(f.Windows, Window{explain.NewReport(w), "", false})
		}
		f.Windows = newestWindows(f.Windows)
		return f
	}
	for {
		var e recording.Entry
		if err := reader.Next(&e); errors.Is(err, io.EOF) {
			return append(frames, take())
		} else if err != nil {
			t.Fatal(err)
		}
		if e.Mark != nil && e.Mark.Op == recording.Leave {
			now := m.Collect()
			for _, j := range jobs {
				b.job(j, &now)
				j.ended = true
			}
		}
		if err := m.Feed(&e); err != nil {
			t.Fatal(err)
		}
		if e.Mark == nil {
			continue
		}
		switch e.Mark.Op {
		case recording.Follow:
			now := m.Collect()
			jobs = append(jobs, &watched{id: e.Mark.ID, name: e.Mark.ID, since: newest(&now)})
		case recording.Begin:
			if w := e.Mark.Window; w.Job != "" && w.Run != "" {
				for _, j := range jobs {
					j.name, j.pid = w.Run, cmp.Or(w.PID, j.pid)
				}
			}
		case recording.Tick:
			now := m.Collect()
			at := newest(&now).Mono
			if at < due {
				continue
			}
			for _, j := range jobs {
				if j.since.Mono == 0 {
					j.since = newest(&now)
				}
			}
			if f := take(); due > 0 { // there is an interval
				frames = append(frames, f)
			}
			due = at + time.Second
		}
	}
}

// shown returns a view of all frames of a recording, at the last one.
func shown(t testing.TB, name string) *View {
	t.Helper()
	v := NewView(time.Second, false)
	for _, f := range framesOf(t, name) {
		v.Add(f)
	}
	return v
}

// keyOf is a key as the terminal reports it.
func keyOf(name string) *tcell.EventKey {
	for key, text := range tcell.KeyNames {
		if text == name {
			return tcell.NewEventKey(key, "", tcell.ModNone)
		}
	}
	return tcell.NewEventKey(tcell.KeyRune, name, tcell.ModNone)
}

func (v *View) press(names ...string) {
	for _, name := range names {
		v.key(keyOf(name))
	}
}

// The screens over recordings, for all widths and pages.
func TestScreens(t *testing.T) {
	for _, test := range []struct {
		name, recording string
		width, height   int
		ascii           bool
		keys            []string
	}{
		{"epochs_60x16", "epochs", 60, 16, false, nil},
		{"epochs_60x40", "epochs", 60, 40, false, nil},
		{"epochs_80x24", "epochs", 80, 24, false, nil},
		{"epochs_120x40", "epochs", 120, 40, false, nil},
		{"epochs_200x50", "epochs", 200, 50, false, nil},
		{"epochs_250x60", "epochs", 250, 60, false, nil},
		{"epochs_ascii", "epochs", 120, 30, true, nil},
		{"epochs_back", "epochs", 120, 30, false, []string{"Left", "Left", "Left"}},
		{"epochs_details", "epochs", 100, 30, false, []string{"Left", "Left", "Left", "Enter"}},
		{"epochs_processes", "epochs", 100, 24, false, []string{"Left", "Left", "Left", "F5"}},
		{"epochs_help", "epochs", 100, 30, false, []string{"h"}},
		{"epochs_help_60", "epochs", 60, 40, true, []string{"h"}},
		{"epochs_filter", "epochs", 100, 24, false, []string{"/", "x", "y"}},
		{"gpu_100x30", "gpu", 100, 30, false, nil},
		{"cpu_only_100x30", "cpu_only", 100, 30, false, nil},
		{"small", "cpu_only", 59, 15, false, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := shown(t, test.recording)
			v.ASCII = test.ascii
			v.press(test.keys...)
			c := v.draw(test.width, test.height)
			got := c.text()
			golden := filepath.Join("testdata", test.name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("not as in %s (run with -update to take it): got\n%s\nwant\n%s", golden, got, want)
			}
			check(t, c, test.ascii)
		})
	}
}

// text is the screen without styles and without blanks at the ends of lines.
func (c *canvas) text() string {
	var all strings.Builder
	for y := range c.height {
		var line strings.Builder
		for _, at := range c.cells[y*c.width : (y+1)*c.width] {
			if at.char != 0 {
				line.WriteRune(at.char)
			}
		}
		all.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return all.String()
}

// check reports cells that a terminal would not show as they are meant.
func check(t *testing.T, c *canvas, ascii bool) {
	t.Helper()
	for y, line := range strings.Split(strings.TrimSuffix(c.text(), "\n"), "\n") {
		if output.Columns(line) > c.width {
			t.Errorf("line %d has %d columns, want at most %d: %q", y, output.Columns(line), c.width, line)
		}
		for _, r := range line {
			if !unicode.IsGraphic(r) || ascii && r > unicode.MaxASCII {
				t.Errorf("line %d has %q, want only characters that move no cursor: %q", y, r, line)
			}
		}
	}
}

// crowded is a machine with more devices and jobs than fit, with names that try to break the screen.
func crowded() *Frame {
	names := []string{"a", "a-very-long-name-of-a-device-that-fits-nowhere", "\x1b[31mred\r\n", "模型/通义千问", "é\u0301\u202e"}
	f := &Frame{At: time.Unix(1_800_000_000, 0), Host: "\x1b]0;host\a", CPU: 1, Cores: 256,
		BusiestCore: &stat.Core{Name: "cpu255", Utilization: 1}, Pressure: &stat.Pressure{Some: 1}}
	for i := range 40 {
		name := names[i%len(names)]
		f.GPUs = append(f.GPUs, GPU{stat.GPU{ID: fmt.Sprint(i), Index: i, Name: name, Utilization: new(1.0),
			MemoryUsed: new(uint64(1 << 50)), MemoryTotal: new(uint64(1 << 50)), Power: new(1e9), Temperature: new(1e9),
			GPUUse: stat.GPUUse{SMActive: new(1.0), TensorActive: new(1.0), Throttled: new(1.0), ThrottledBy: "power_brake"}},
			[]Holder{{PID: 1 << 22, Name: name, Memory: 1 << 50, Has: true}, {PID: 1}}})
		f.Disks = append(f.Disks, Disk{stat.Disk{Name: name, ReadBytesPerSecond: 1e15, WriteBytesPerSecond: 1e15,
			Await: new(1e9), QueueDepth: new(1e9), Utilization: new(1.0), ReadsPerSecond: 1e12}, 1e12, 1e12})
		l := Ledger{Length: Recent, Split: true, GPUs: i % 2, Busy: 0.25, Storage: 0.25, CPU: 0.25, Other: 0.25,
			Verdict: "storage_bound", Finding: strings.Repeat(name+" ", 40), Remedy: strings.Repeat(name, 40),
			Reasons: []string{name}, Evidence: name,
			Disks: []DiskUse{{Name: name, Read: 1e15, Queue: new(1e9), Await: time.Hour}}}
		f.Jobs = append(f.Jobs, Job{ID: fmt.Sprint(i), PID: 1 << 22, Name: name, Watched: 1e6 * time.Hour, CPU: 1e6,
			Read: 1e15, HasIO: true, Recent: l, Whole: l, Members: []Member{{PID: 1 << 22, Name: name, CPU: 1e6, Read: 1e15}}})
		f.Windows = append(f.Windows, Window{From: name, Open: i%2 == 0,
			Report: &explain.Report{Name: name, Duration: 1e9, Verdict: "storage_bound", Slow: true}})
		f.Notes = append(f.Notes, name)
	}
	return f
}

// Keys in any order, on a terminal of any size, break nothing.
func FuzzKeys(f *testing.F) {
	f.Add([]byte("jjjkk/ab\x01\x02\x03h?p s<>I+-"), uint16(120), uint16(40))
	f.Add([]byte("\x02\x02\x02\x02\x02jj\x01jjj"), uint16(60), uint16(16))
	f.Add([]byte(""), uint16(0), uint16(0))
	keys := []string{"Enter", "Down", "Up", "Left", "Right", "PgUp", "PgDn", "Home", "End", "Esc", "Backspace"}
	frames := []*Frame{crowded(), crowded(), {}}
	f.Fuzz(func(t *testing.T, presses []byte, width, height uint16) {
		v := NewView(time.Second, len(presses)%2 == 0)
		v.draw(int(width%300), int(height%100))
		for n, b := range presses[:min(len(presses), 100)] {
			v.Add(frames[n%len(frames)])
			if int(b) < len(keys) {
				v.press(keys[b])
			} else {
				v.press(string(rune(b)))
			}
			c := v.draw(int(width%300), int(height%100))
			if c.width > 0 && c.height > 0 {
				check(t, c, v.ASCII)
			}
		}
	})
}

// A view that stands at an earlier frame stays there, and one at the present goes on.
func TestSeek(t *testing.T) {
	v := NewView(time.Second, false)
	for range keptFrames + 10 {
		v.Add(&Frame{})
	}
	if v.at != keptFrames-1 || len(v.frames) != keptFrames {
		t.Fatalf("got frame %d of %d; want the last of %d", v.at, len(v.frames), keptFrames)
	}
	v.press("PgUp")
	stood := v.frame()
	v.Add(&Frame{Host: "later"})
	if v.frame() != stood || !v.paused {
		t.Errorf("got another frame, or not paused; want the same one")
	}
	v.press("End")
	if v.frame().Host != "later" || v.paused {
		t.Errorf("end: got %q, paused %v; want the newest, which goes on", v.frame().Host, v.paused)
	}
	v.press("Home", "Left")
	if v.at != 0 {
		t.Errorf("home: got frame %d, want 0", v.at)
	}
	v.press("p")
	if v.frame().Host != "later" {
		t.Errorf("after the pause: got frame %d, want the present", v.at)
	}
}

// The job that lost most is above the others, and those with a GPU above those without.
func TestOrder(t *testing.T) {
	job := func(id string, gpus int, busy, storage float64) Job {
		return Job{ID: id, Name: id, Holds: gpus, Recent: Ledger{Split: true, GPUs: gpus, Busy: busy, Storage: storage,
			Other: 1 - busy - storage}}
	}
	f := &Frame{Jobs: []Job{job("sleeps", 0, 0, 0), job("reads", 0, 0, 0.9), job("works", 1, 0.95, 0),
		job("waits", 1, 0.2, 0.7),
		{ID: "gone", Name: "gone", Ended: true}}}
	v := NewView(time.Second, false)
	for keys, want := range map[string]string{
		"": "waits works reads sleeps gone", "s": "reads sleeps waits works gone", "ss": "works waits reads sleeps gone",
		"sss": "reads waits sleeps works gone", "I": "sleeps reads works waits gone",
	} {
		v.order, v.reverse = sortLost, false
		v.press(strings.Split(keys, "")...)
		var got []string
		for _, j := range v.jobs(f) {
			got = append(got, j.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("keys %q: got %v, want %s", keys, got, want)
		}
	}
}

// A fault in the source ends the view with an error.
func TestFault(t *testing.T) {
	s := &screen{view: NewView(time.Second, false), results: make(chan result, 1),
		source: func(context.Context) *Frame { panic("broken") }}
	s.ask(t.Context())
	if err := s.take(t.Context(), <-s.results); err == nil || !strings.Contains(err.Error(), "broken") ||
		!strings.Contains(err.Error(), "view_test.go") {
		t.Errorf("got %v, want the fault and its place", err)
	}
}

// A frame is drawn once a second: what that allocates is what the collector has to do.
func BenchmarkDraw(b *testing.B) {
	v := shown(b, "epochs")
	b.ReportAllocs()
	for b.Loop() {
		v.draw(120, 40)
	}
}

package monitor

import (
	"fmt"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// stormyMachine plays a machine with two disks and jobs that each wait for one of them all the time.
type stormyMachine struct {
	*Monitor
	t    testing.TB
	jobs []string
	now  int
}

// maxConcurrent is the bound of the windows registry.
const maxConcurrent = 32

func newStormy(t testing.TB, jobs ...string) *stormyMachine {
	m, err := New(Config{Recorded: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	s := &stormyMachine{m, t, jobs, 0}
	for _, j := range jobs {
		s.feed(&recording.Entry{Mark: &recording.Mark{Op: recording.Follow, ID: j, Scope: "/" + j, OwnScope: true}})
	}
	s.pass(2)
	return s
}

func (s *stormyMachine) feed(e *recording.Entry) {
	s.t.Helper()
	if err := s.Feed(e); err != nil {
		s.t.Fatal(err)
	}
}

// pass lets tenths of a second pass.
func (s *stormyMachine) pass(n int) {
	s.t.Helper()
	for range n {
		s.now++
		spent := time.Duration(s.now) * 100 * time.Millisecond
		bytes := uint64(s.now) << 20
		at := sample.Stamp{Mono: spent, Wall: dawn.Add(spent)}
		disk := sample.Disk{Name: "sda", Leaf: true, ReadIOs: uint64(s.now), ReadBytes: bytes * 3, ReadTicks: spent,
			TimeInQueue: spent}
		other := disk
		other.Name = "sdb"
		job, wait := &sample.Sample{At: at}, &sample.Sample{At: at}
		for _, j := range s.jobs {
			job.Jobs = append(job.Jobs, sample.Job{
				ID: j, Scope: "/" + j, OwnScope: true, HasIO: true, ReadBytes: bytes, ReadChars: bytes, Processes: 1,
			})
			wait.Pressures = append(wait.Pressures, sample.Pressure{
				Scope: "/" + j, Resource: sample.IO, Some: spent * 9 / 10, Full: spent * 9 / 10,
			})
		}
		for _, x := range []*sample.Sample{wait, job, {At: at, Disks: []sample.Disk{disk, other}}} {
			s.feed(&recording.Entry{Source: "some", Sample: x})
		}
		s.feed(&recording.Entry{Mark: &recording.Mark{Op: recording.Tick}})
	}
}

func (s *stormyMachine) begin(job string, disks ...string) string {
	s.t.Helper()
	w := window.Window{Kind: window.ModelLoad, Model: job, Job: job, Seen: window.Seen{Under: disks}}
	id, err := s.Windows.Begin(w, s.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func (s *stormyMachine) end(id string) *window.Report {
	s.t.Helper()
	r, err := s.Windows.End(id, s.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	if !r.Slow {
		s.t.Fatalf("%s: %s", r.Verdict, explain.Finding(r))
	}
	return r
}

// Two concurrent slow loads from one disk are a storm. It is reported once for any number of loads.
func TestStorm(t *testing.T) {
	s := newStormy(t, "a", "b", "c", "d")
	a := s.begin("a", "sda")
	s.pass(5)
	b, c, d := s.begin("b", "sda"), s.begin("c", "sda"), s.begin("d", "sdb")
	s.pass(10)
	if r := s.end(a); len(r.Storms) != 0 || r.Others != 2 {
		t.Errorf("the first: %+v, %d others", r.Storms, r.Others)
	}
	r := s.end(b)
	if len(r.Storms) != 1 || r.Storms[0] != (window.Storm{Disk: "sda", Windows: 3, Since: r.Start.Mono}) {
		t.Errorf("the second: %+v, began %v", r.Storms, r.Start.Mono)
	}
	if r := s.end(d); len(r.Storms) != 0 || r.Others != 0 {
		t.Errorf("on another disk: %+v, %d others", r.Storms, r.Others)
	}
	s.pass(5)
	e := s.begin("d", "sda")
	s.pass(10)
	if r := s.end(c); len(r.Storms) != 0 {
		t.Errorf("the third: %+v", r.Storms)
	}
	if r := s.end(e); len(r.Storms) != 0 || r.Others != 1 {
		t.Errorf("one that overlaps the third: %+v, %d others", r.Storms, r.Others)
	}
	a = s.begin("a", "sda")
	s.pass(10)
	if r := s.end(a); len(r.Storms) != 0 || r.Others != 0 {
		t.Errorf("one alone: %+v, %d others", r.Storms, r.Others)
	}
	s.pass(600) // over
	a, b = s.begin("a", "sda"), s.begin("b", "sda")
	s.pass(10)
	if one, other := s.end(a), s.end(b); len(one.Storms) != 0 || len(other.Storms) != 1 {
		t.Errorf("the next storm: %+v, %+v", one.Storms, other.Storms)
	}
}

// longDetected reports a detected checkpoint that ended ten minutes ago, and had lasted for an hour and a half.
func (s *stormyMachine) longDetected(job string) {
	end := s.Now().At.Mono - 10*time.Minute
	s.Windows.Detected([]detect.Found{{Kind: window.Checkpoint, Job: job, Start: end - 90*time.Minute, End: end}})
}

// A checkpoint is detected after its end. Windows that have ended meanwhile count as if it were not there.
func TestStormAroundDetected(t *testing.T) {
	s := newStormy(t, "a", "b", "c")
	s.now = 3 * 36_000 // tenths of a second
	s.pass(10)
	a, b := s.begin("a", "sda"), s.begin("b", "sda")
	s.pass(10)
	s.end(a)
	s.longDetected("c")
	if r := s.end(b); r.Others != 1 || len(r.Storms) != 1 {
		t.Errorf("got %d others and the storms %v, want one of each", r.Others, r.Storms)
	}
}

// A detected load that was announced is left out, also if a detected checkpoint that ended before was reported
// meanwhile.
func TestAnnouncedBeforeDetected(t *testing.T) {
	s := newStormy(t, "a", "b")
	s.now = 3 * 36_000
	s.pass(10)
	b := s.begin("b", "sda")
	s.pass(50)
	r := s.end(b)
	s.longDetected("a")
	s.Windows.Detected([]detect.Found{{Kind: window.ModelLoad, Job: "b", Start: r.Start.Mono - 1, End: r.End.Mono + 1}})
	counts := map[window.Kind]int{}
	for _, r := range s.Windows.Ended() {
		counts[r.Kind]++
	}
	if counts[window.ModelLoad] != 1 || counts[window.Checkpoint] != 1 {
		t.Errorf("got %v, want the announced load and the checkpoint", counts)
	}
}

// A detected window is listed for an hour after it was found, however long ago it ended.
func TestDetectedIsKept(t *testing.T) {
	s := newStormy(t, "a")
	s.now = 4 * 36_000
	s.pass(10)
	end := s.Now().At.Mono - 70*time.Minute
	s.Windows.Detected([]detect.Found{{Kind: window.Checkpoint, Job: "a", Start: end - 70*time.Minute, End: end}})
	for _, c := range []struct{ minutes, want int }{{0, 1}, {59, 1}, {2, 0}} {
		s.now += c.minutes * 600
		s.pass(1)
		if n := len(s.Windows.Ended()); n != c.want {
			t.Errorf("%d minutes later: got %d reports, want %d", c.minutes, n, c.want)
		}
	}
}

// A storm on several disks is reported once: for the disk with the most windows, with their number.
func TestStormOnSeveralDisks(t *testing.T) {
	s := newStormy(t, "a", "b", "c", "d")
	a, b, c := s.begin("a", "sda", "sdb"), s.begin("b", "sda", "sdb"), s.begin("c", "sdb")
	s.pass(10)
	if r := s.end(a); len(r.Storms) != 0 || r.Others != 2 {
		t.Errorf("the first: %+v, %d others", r.Storms, r.Others)
	}
	r := s.end(b)
	if len(r.Storms) != 1 || r.Storms[0] != (window.Storm{Disk: "sdb", Windows: 3, Since: r.Start.Mono}) {
		t.Errorf("the second: %+v", r.Storms)
	}
	if r := s.end(c); len(r.Storms) != 0 || r.Others != 2 {
		t.Errorf("on one of them: %+v, %d others", r.Storms, r.Others)
	}
	s.pass(600) // over
	a, b = s.begin("a", "sda", "sdb"), s.begin("d", "sda")
	s.pass(10)
	one, other := s.end(b), s.end(a)
	if len(one.Storms) != 0 || len(other.Storms) != 1 || other.Storms[0].Disk != "sda" || other.Storms[0].Windows != 2 {
		t.Errorf("the next storm: %+v, %+v", one.Storms, other.Storms)
	}
}

// Many open windows are not compared with each other. A window that ends is compared with a bounded number of them.
func TestStormsAreBounded(t *testing.T) {
	var jobs, open []string
	for i := range 3 * maxConcurrent {
		jobs = append(jobs, fmt.Sprint("job", i))
	}
	s := newStormy(t, jobs...)
	for _, job := range jobs {
		open = append(open, s.begin(job, "sda"))
	}
	s.pass(10)
	for _, r := range s.Windows.Running() {
		if r.Others != 0 {
			t.Fatalf("%d others", r.Others)
		}
	}
	if r := s.end(open[0]); r.Others != maxConcurrent {
		t.Errorf("%d others", r.Others)
	}
	if r := s.end(open[1]); r.Others != maxConcurrent+1 || len(r.Storms) != 1 {
		t.Errorf("%d others, %v", r.Others, r.Storms)
	}
}

// Windows of one program read from the same disk at the same time, and are no storm. The steps of an epoch know it.
func TestNoStormOfOneProgram(t *testing.T) {
	s := newStormy(t, "a")
	begin := func(kind window.Kind) string {
		w := window.Window{Kind: kind, Job: "a", Seen: window.Seen{Under: []string{"sda"}}}
		id, err := s.Windows.Begin(w, s.Now())
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	epoch := begin(window.Epoch)
	s.pass(1)
	for range 2 {
		steps := begin(window.Steps)
		s.pass(10)
		if r := s.Windows.Report(steps); r.Within != epoch {
			t.Errorf("open steps: got them within %q, want within the epoch %q", r.Within, epoch)
		}
		if r := s.end(steps); r.Others != 0 || len(r.Storms) != 0 || r.Within != epoch {
			t.Errorf("steps: got %d other windows, %v, within %q, want none, within the epoch %q", r.Others, r.Storms,
				r.Within, epoch)
		}
	}
	load := s.begin("a", "sda")
	s.pass(1)
	if r := s.end(epoch); r.Others != 0 || len(r.Storms) != 0 || r.Within != "" {
		t.Errorf("the epoch: got %d other windows, %v, within %q, want none", r.Others, r.Storms, r.Within)
	}
	s.pass(10)
	if r := s.end(load); r.Within != "" {
		t.Errorf("a load that outlasts the epoch: got it within %q, want within nothing", r.Within)
	}
}

// Ceilings are learned from readings alone, and a window knows those from before it.
func TestCeilings(t *testing.T) {
	s := newStormy(t, "a")
	id := s.begin("a", "sda")
	s.pass(30)
	if r := s.end(id); len(r.Ceilings) != 0 || fmt.Sprintf("%.1f", r.Disks[0].ReadCeiling/(1<<20)) != "30.0" {
		t.Errorf("%+v, before %v", r.Disks[0], r.Ceilings)
	}
	id = s.begin("a", "sda")
	s.pass(20)
	r := s.end(id)
	if len(r.Ceilings) != 2 || r.Ceilings[0].Disk != "sda" {
		t.Errorf("before: %v", r.Ceilings)
	}
	if got := s.Collect().Ceilings; len(got) != 2 || got[0].Read < 29<<20 || got[0].Write != 0 {
		t.Errorf("got %+v, want two disks with over 29 MiB/s", got)
	}
}

// The end of a storm is reported once, a minute after its last window, and before the next storm of its disk. Receivers
// of events do not change any report.
func TestStormEnds(t *testing.T) {
	for name, listens := range map[string]bool{"without a receiver": false, "with a receiver": true} {
		t.Run(name, func(t *testing.T) {
			s := newStormy(t, "a", "b")
			var over []alert.Event
			look := func() {}
			if listens {
				s.OnEvent(func(e alert.Event) {
					if e.Kind == alert.IOStorm {
						over = append(over, e)
					}
				})
				look = func() {
					s.alerts.check(s.readings.Present(), s.Monitor)
				}
			}
			pair := func(tenths int) []window.Storm {
				a, b := s.begin("a", "sda"), s.begin("b", "sda")
				s.pass(tenths)
				s.end(a)
				return s.end(b).Storms
			}
			first := pair(10)
			if len(first) != 1 {
				t.Fatalf("got the storms %+v, want one", first)
			}
			for range 3 { // one pair more every half a minute
				s.pass(300)
				look()
				if storms := pair(10); len(storms) != 0 {
					t.Errorf("in the same storm: %+v", storms)
				}
			}
			last := s.now
			s.pass(595)
			look()
			if len(over) != 0 {
				t.Errorf("too early: %+v", over)
			}
			next := pair(10) // it ends after the minute, before the next check
			if len(next) != 1 {
				t.Errorf("the next storm: %+v", next)
			}
			want := 0
			if listens {
				want = 1
			}
			if len(over) != want {
				t.Fatalf("when the next one began: %+v", over)
			}
			for range 700 {
				s.pass(1)
				look()
			}
			if len(over) != 2*want {
				t.Fatalf("got the ends %+v, want %d", over, 2*want)
			}
			if listens {
				ended := dawn.Add(time.Duration(last) * 100 * time.Millisecond)
				e, began := over[0], dawn.Add(first[0].Since)
				if !e.Resolved || e.Disk != "sda" || e.Count != 2 || !e.Began.Equal(began) || !e.At.Equal(ended) {
					t.Errorf("got %+v, want 2 windows on sda from %v to %v", e, began, ended)
				}
			}
		})
	}
}

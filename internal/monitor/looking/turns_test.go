package looking

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/monitor/sampling"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/window"
)

// crowd is a Looker at several jobs of several processes each, which all have a model open.
type crowd struct {
	t        *testing.T
	looker   *Looker
	readings *sampling.Readings
	at       time.Duration
	reading  []sample.Process
	queried  map[process.Key]int
	maps     int
	mapsLate bool
	left     map[string]bool
	stirred  []string
	kept     map[string]bool
	busy     bool
	idle     bool // the jobs do nothing
	watched  map[string]bool
	newest   map[string]detect.Facts
	ends     []detect.Found // what a detector finds at the end of its job
	found    []detect.Found
}

func (c *crowd) ModelFiles(of process.Key, want process.FilesWanted) (process.Files, error) {
	if want.Maps {
		c.maps++
		if c.mapsLate {
			return process.Files{}, syscall.ETIMEDOUT
		}
	}
	c.queried[of]++
	return process.Files{List: []process.File{{FD: 3, Path: "/models/a.safetensors", Size: 1 << 30}}}, nil
}

func (c *crowd) Watch(job string, on bool) {
	if c.watched == nil {
		c.watched = map[string]bool{}
	}
	c.watched[job] = on
}

func (c *crowd) EachStirred(mark func(string)) {
	for _, id := range c.stirred {
		mark(id)
	}
	c.stirred = nil
}

func (c *crowd) Keep(id string)        { c.kept[id] = true }
func (c *crowd) Left(id string) bool   { return c.left[id] }
func (c *crowd) Release(id string)     { delete(c.kept, id) }
func (*crowd) Owner(pid int) string    { return "uid " + strconv.Itoa(pid) }
func (c *crowd) take(f []detect.Found) { c.found = append(c.found, f...) }

type member struct{ *crowd }

func (m member) Look(f *detect.Facts) []detect.Found {
	kept := *f
	kept.Processes, kept.Files = slices.Clone(f.Processes), slices.Clone(f.Files)
	m.newest[f.Job] = kept
	return nil
}

func (m member) Close(f *detect.Facts) []detect.Found {
	for i := range m.ends {
		m.ends[i].Unfinished = f.Stopping
	}
	return m.ends
}
func (m member) Busy() bool { return m.busy }

func newCrowd(t *testing.T, jobs, processes int, busy bool) *crowd {
	t.Helper()
	r, err := sampling.New(sampling.Config{Interval: 100 * time.Millisecond}, &sampling.Problems{})
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{t: t, readings: r, at: time.Minute, queried: map[process.Key]int{}, left: map[string]bool{},
		kept: map[string]bool{}, busy: busy, newest: map[string]detect.Facts{}}
	root := t.TempDir()
	for n := range jobs {
		job := fmt.Sprint("job ", n)
		r.Apply(&recording.Entry{Mark: &recording.Mark{Op: recording.Follow, ID: job}})
		for range processes {
			pid := len(c.reading) + 1
			dir := filepath.Join(root, "proc", strconv.Itoa(pid))
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "statm"), []byte("1000 900 100 1 0 2 0\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			c.reading = append(c.reading, sample.Process{PID: pid, Job: job, Started: time.Duration(pid) * time.Second})
		}
	}
	c.looker = New(Config{
		Root: root, Readings: r, Jobs: c, New: func(string) detect.Detector { return member{c} },
		Found: c.take, Owner: c.Owner, Now: func() time.Duration { return c.at },
	})
	c.looker.direct = c
	return c
}

// look is one after a tenth of a second, in which each job worked, or did nothing.
func (c *crowd) look() {
	c.at += often
	s := sample.Sample{At: sample.Stamp{Mono: c.at, Wall: time.Unix(1000, 0).Add(c.at)}}
	for i := range c.reading {
		p := &c.reading[i]
		if !c.idle {
			p.CPUTime += 50 * time.Millisecond
		}
		if len(s.Jobs) == 0 || s.Jobs[len(s.Jobs)-1].ID != p.Job {
			s.Jobs = append(s.Jobs, sample.Job{ID: p.Job})
		}
		j := &s.Jobs[len(s.Jobs)-1]
		j.Processes++
		j.CPUTime += p.CPUTime
	}
	s.Processes = c.reading
	c.readings.Apply(&recording.Entry{Source: "process", Sample: &s})
	c.looker.Look()
}

// However many jobs are busy, and however many processes they have, only so many are asked, and each in its turn.
func TestBusyTakeTurns(t *testing.T) {
	for name, size := range map[string]struct{ jobs, processes int }{
		"many jobs": {48, 2}, "a large job": {1, 400}, "both": {20, 50},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t, size.jobs, size.processes, true)
			const seconds = 60
			most := 0
			for range seconds * 10 {
				before := 0
				for _, n := range c.queried {
					before += n
				}
				c.look()
				after := 0
				for _, n := range c.queried {
					after += n
				}
				most = max(most, after-before)
			}
			if most > maxAsks {
				t.Errorf("got %d processes asked in a look, want %d at most", most, maxAsks)
			}
			all, least, largest := 0, 1<<30, 0
			for i := range c.reading {
				n := c.queried[process.KeyOf(&c.reading[i])]
				all, least, largest = all+n, min(least, n), max(largest, n)
			}
			if limit := seconds * (maxAsks + 10*maxQuick); all > limit {
				t.Errorf("got %d questions in %d s, want %d at most", all, seconds, limit)
			}
			if c.maps > seconds*2*maxMaps {
				t.Errorf("got %d lists of mappings in %d s, want %d at most", c.maps, seconds, seconds*2*maxMaps)
			}
			if least == 0 || largest > 2*least {
				t.Errorf("got %d questions to one process, and %d to another, want about the same", least, largest)
			}
			for job, f := range c.newest {
				if len(f.Files) != size.processes {
					t.Errorf("%s: got %d files, want those of all %d processes", job, len(f.Files), size.processes)
				}
				for _, p := range f.Processes {
					if p.At > f.At || p.Last > p.At || p.Last == 0 {
						t.Errorf("%s: got files from %v, known before up to %v, in a look at %v", job, p.At, p.Last, f.At)
					}
				}
			}
		})
	}
}

// Each process is asked by when it started: another one that got its number does not answer for it.
func TestAsksByStart(t *testing.T) {
	c := newCrowd(t, 1, 1, false)
	c.look()
	want := process.Key{PID: 1, Start: 100}
	if c.queried[want] != 1 || len(c.queried) != 1 {
		t.Errorf("got questions for %v, want one for %v", c.queried, want)
	}
}

// A job that was left stays until what its end ends is reported, with the owner of a process that has ended. What is
// found of a process that was never seen is dropped.
func TestReportsAfterTheEnd(t *testing.T) {
	c := newCrowd(t, 1, 1, false)
	c.ends = []detect.Found{
		{Kind: window.ModelLoad, Job: "job 0", PID: 1}, {Kind: window.ModelLoad, Job: "job 0", PID: 99},
	}
	c.look()
	if !c.kept["job 0"] {
		t.Fatal("the job is not kept, want it to be")
	}
	c.reading[0].PID = 2 // the first one has ended
	for range 10 {
		c.look()
	}
	c.left["job 0"] = true
	c.look()
	if len(c.found) != 1 || c.found[0].Owner != "uid 1" || !c.found[0].Unfinished {
		t.Errorf("got %+v, want one window of uid 1, unfinished: its job goes on", c.found)
	}
	if c.kept["job 0"] && c.looker.jobs["job 0"] == nil {
		t.Error("the job is kept after its report")
	}
}

// A process whose mappings the kernel does not list is asked for its open files, and for mappings after a while.
func TestMapsLate(t *testing.T) {
	c := newCrowd(t, 1, 1, false)
	c.mapsLate = true
	for range 5 * 10 {
		c.look()
	}
	if f := c.newest["job 0"]; len(f.Files) != 1 || f.Processes[0].Denied {
		t.Errorf("got %+v, want its open file", f)
	}
	if c.maps != 1 {
		t.Errorf("got %d questions for mappings in 5 s, want 1", c.maps)
	}
	for range 10 * 10 {
		c.look()
	}
	if c.maps != 2 {
		t.Errorf("got %d questions for mappings in 15 s, want 2", c.maps)
	}
}

// A process that has ended is of no look, also while the newest reading still has it.
func TestEndedProcesses(t *testing.T) {
	c := newCrowd(t, 1, 2, true)
	c.look()
	for name, text := range map[string]string{"not waited for": "0 0 0 0 0 0 0\n", "gone": ""} {
		t.Run(name, func(t *testing.T) {
			statm := filepath.Join(c.looker.config.Root, "proc", "2", "statm")
			if err := os.WriteFile(statm, []byte("1000 900 100 1 0 2 0\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			c.look()
			if got := len(c.newest["job 0"].Processes); got != 2 {
				t.Fatalf("got %d processes, want 2", got)
			}
			var err error
			if text == "" {
				err = os.Remove(statm)
			} else {
				err = os.WriteFile(statm, []byte(text), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			c.look()
			if got := c.newest["job 0"].Processes; len(got) != 1 || got[0].PID != 1 {
				t.Errorf("got %+v, want process 1 alone", got)
			}
		})
	}
}

// The counters of a job are read often while a load may be going on.
func TestWatchedWhileBusy(t *testing.T) {
	c := newCrowd(t, 1, 1, false)
	for _, busy := range []bool{true, false} {
		c.busy = busy
		for range 11 {
			c.look()
		}
		if c.watched["job 0"] != busy {
			t.Errorf("counters are read often: got %v, want %v", !busy, busy)
		}
	}
}

// A job that has just been followed is looked at before the next second.
func TestNewJobAtOnce(t *testing.T) {
	c := newCrowd(t, 1, 1, false)
	c.looker.full = c.at + 900*time.Millisecond
	c.look()
	if got := c.queried[process.KeyOf(&c.reading[0])]; got != 1 {
		t.Errorf("got %d looks, want one", got)
	}
	c.look()
	if got := c.queried[process.KeyOf(&c.reading[0])]; got != 1 {
		t.Errorf("got %d looks, want no other one in this second", got)
	}
}

// Programs load models at their start: a job that is followed since a short time is looked at often while it does
// something.
func TestYoungJobOften(t *testing.T) {
	c := newCrowd(t, 1, 1, false)
	c.at = 0
	looks := func(seconds int) (n int) {
		before := c.queried[process.KeyOf(&c.reading[0])]
		for range seconds * 10 {
			c.look()
		}
		return c.queried[process.KeyOf(&c.reading[0])] - before
	}
	if got := looks(10); got < 90 {
		t.Errorf("got %d looks in the first 10 s, want ten a second", got)
	}
	c.idle = true
	looks(1)
	if got := looks(9); got > 9 {
		t.Errorf("got %d looks in 9 s in which it did nothing, want one a second at most", got)
	}
	c.idle = false
	if got := looks(5); got < 49 {
		t.Errorf("got %d looks in 5 s in which it works again, want ten a second", got)
	}
	looks(15)
	if got := looks(10); got > 11 {
		t.Errorf("got %d looks in 10 s after the first 35, want one a second", got)
	}
}

// Mappings are listed at once if the address space grew as by a model.
func TestMapsOfALargerProcess(t *testing.T) {
	for pages, want := range map[int]int{1000 + 512: 0, 1000 + model/4096 + 1: 1} {
		c := newCrowd(t, 1, 1, true)
		c.look()
		before := c.maps
		statm := filepath.Join(c.looker.config.Root, "proc", "1", "statm")
		text := fmt.Appendf(nil, "%d 900 100 1 0 2 0\n", pages*4096/os.Getpagesize())
		if err := os.WriteFile(statm, text, 0o600); err != nil {
			t.Fatal(err)
		}
		c.look()
		if got := c.maps - before; got != want {
			t.Errorf("%d pages: got %d lists of mappings in a tenth of a second, want %d", pages, got, want)
		}
	}
}

// A job that begins to read much is looked at ten times a second for a second, and once a second then.
func TestStirred(t *testing.T) {
	c := newCrowd(t, 1, 1, false)
	looks := func(of int) (n int) {
		for range of {
			clear(c.queried)
			c.look()
			if len(c.queried) > 0 {
				n++
			}
		}
		return n
	}
	c.look()
	c.at += youngFor
	if got := looks(50); got != 5 {
		t.Errorf("got %d looks in 5 s, want 5", got)
	}
	c.stirred = []string{"job 0", "another"}
	if got := looks(10); got != 10 {
		t.Errorf("after it began to read: got %d looks in a second, want 10", got)
	}
	if got := looks(50); got > 6 {
		t.Errorf("a second later: got %d looks in 5 s, want one a second", got)
	}
}

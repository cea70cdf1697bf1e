package scenario

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// complete is a reading of everything that may be left out.
func complete() *recording.Entry {
	return &recording.Entry{Sample: &sample.Sample{
		Pressures: []sample.Pressure{{Resource: sample.IO, Some: 1}},
		Disks:     []sample.Disk{{Name: "sda", ReadIOs: 1}},
		Cores:     []sample.Core{{Name: "cpu0", User: 1}},
		GPUs:      []sample.GPU{{ID: "g", Busy: 1}},
		Jobs: []sample.Job{
			{
				ID:          "a",
				CPUTime:     1,
				HasIO:       true,
				ReadBytes:   1,
				ReadChars:   1,
				WriteBytes:  1,
				LeaderTime:  1,
				LeaderReady: 1,
				ReaderTime:  1,
				ReaderWork:  1,
			},
			{
				ID:          "b",
				CPUTime:     1,
				HasIO:       true,
				ReadBytes:   1,
				ReadChars:   1,
				WriteBytes:  1,
				LeaderTime:  1,
				LeaderReady: 1,
				ReaderTime:  1,
				ReaderWork:  1,
			},
		},
	}}
}

// The replay removes one kind of evidence and keeps all others.
func TestWithout(t *testing.T) {
	for _, lacks := range AllEvidence {
		left, want := complete(), complete()
		blind := lack{Evidence: lacks}
		blind.without(left)
		switch lacks {
		case Pressure:
			want.Sample.Pressures = nil
		case Disks:
			want.Sample.Disks = nil
		case Moments: // the first reading has no driver's period to its end
			want.Sample.GPUs[0].Period = driverPeriod
		}
		for i := range want.Sample.Jobs {
			j := &want.Sample.Jobs[i]
			switch lacks {
			case Reads:
				*j = sample.Job{ID: j.ID, CPUTime: 1, LeaderTime: 1, LeaderReady: 1}
			case Threads:
				*j = sample.Job{ID: j.ID, CPUTime: 1, HasIO: true, ReadBytes: 1, ReadChars: 1, WriteBytes: 1}
			}
		}
		if !reflect.DeepEqual(left, want) {
			t.Errorf("without %s:\n%+v, want\n%+v", lacks, left.Sample, want.Sample)
		}
		blind.without(&recording.Entry{Mark: &recording.Mark{Op: recording.Tick}}) // has no readings
	}
	whole := complete()
	(&lack{}).without(whole)
	if !reflect.DeepEqual(whole, complete()) {
		t.Errorf("%+v, and nothing was to be left out", whole.Sample)
	}
}

func TestOutcome(t *testing.T) {
	void := judged(window.CPUBound, window.StorageBound)
	void.Void = "too near"
	s := Sum([]*Result{
		judged(
			window.StorageBound,
			window.StorageBound,
		), judged(window.Unknown, window.Unknown), judged(window.CPUBound, window.CPUBound),
		judged(
			window.StorageBound,
			window.Unknown,
		), judged(window.CPUBound, window.Unknown), judged(window.GPUBound, window.StorageBound), void,
	})
	if right, unknown, wrong := s.outcome(); right != 3 || unknown != 2 || wrong != 1 {
		t.Errorf("%d right, %d unknown, %d wrong", right, unknown, wrong)
	}
	table := WithoutTable([]Lacking{{Pressure, s}, {Disks, Sum(nil)}})
	for _, want := range []string{"| pressure | 3 | 2 | 1 | 1 |", "| disks | 0 | 0 | 0 | 0 | -, - points |"} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is not in\n%s", want, table)
		}
	}
}

// The page has the marks between which the tables are written.
func TestMarksOfThePage(t *testing.T) {
	text, err := os.ReadFile("../../docs/internals/results.md")
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(t.TempDir(), "results.md")
	if err := os.WriteFile(page, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"own cgroup", "shared cgroup", "without"} {
		if err := Rewrite(page, name, "new"); err != nil {
			t.Error(err)
		}
	}
}

// Every recording is replayed for each kind of evidence.
func TestReplayWithout(t *testing.T) {
	whole, err := Replay("testdata", every)
	if err != nil {
		t.Fatal(err)
	}
	all, err := ReplayWithout("testdata", every)
	if err != nil || len(all) != len(AllEvidence) {
		t.Fatalf("%d kinds, %v", len(all), err)
	}
	for i, l := range all {
		if l.Evidence != AllEvidence[i] || len(l.Score.Cases) != len(whole) {
			t.Errorf("without %s: %d windows of %d", l.Evidence, len(l.Score.Cases), len(whole))
		}
	}
}

// TestMoments: the driver's samples are at the ends of its periods, and a window waits for its last ones.
func TestMoments(t *testing.T) {
	l := lack{Evidence: Moments}
	reading := func(at time.Duration, edge uint64) *sample.Sample {
		s := &sample.Sample{At: sample.Stamp{Mono: at}, GPUs: []sample.GPU{{ID: "a", Busy: at / 2}}}
		l.without(&recording.Entry{Source: "accelerator", Edge: edge, Sample: s})
		return s
	}
	for _, c := range []struct {
		at, want time.Duration
		edge     uint64
	}{
		{at: 2 * driverPeriod, want: 2 * driverPeriod},
		{at: 2*driverPeriod + 100*time.Millisecond},
		{at: 3*driverPeriod + 30*time.Millisecond, want: 3 * driverPeriod},
		{at: 3*driverPeriod + 60*time.Millisecond, edge: 1},
	} {
		s := reading(c.at, c.edge)
		switch {
		case c.want == 0 && len(s.GPUs) > 0:
			t.Errorf("at %v: got %+v, want nothing from the driver", c.at, s.GPUs)
		case c.want > 0 && (len(s.GPUs) != 1 || s.At.Mono != c.want || s.GPUs[0].Busy != c.want/2):
			t.Errorf("at %v: got %+v at %v, want half of %v busy", c.at, s.GPUs, s.At.Mono, c.want)
		}
	}
	fed := 0
	for _, op := range []recording.Op{recording.End, recording.Tick, recording.Tick, recording.Tick} {
		fed += len(l.hold(&recording.Entry{Mark: &recording.Mark{Op: op}}))
	}
	if last := len(l.hold(&recording.Entry{Mark: &recording.Mark{Op: recording.Tick}})); fed != 3 || last != 2 {
		t.Errorf("got %d and then %d entries, want three ticks, and then one with the end", fed, last)
	}
}

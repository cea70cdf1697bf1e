package sample

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counting is a source that counts its readings. Each takes some time.
type counting struct {
	takes time.Duration
	err   error
	reads int
}

func (c *counting) Read(s *Sample) error {
	c.reads++
	time.Sleep(c.takes)
	s.At = Now()
	s.Cores = append(s.Cores, Core{Name: "cpu0"})
	return c.err
}

// runFor runs a sampler on the clock of synctest.
func runFor(d time.Duration, s *Sampler, sink Sink, tick func()) {
	ctx, stop := context.WithTimeout(context.Background(), d)
	defer stop()
	s.Run(ctx, sink, tick)
}

func TestSamplerReadsEverySourceAtEachTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &counting{}, &counting{err: errors.New("half of it")}
		s := NewSampler(100*time.Millisecond, []Named{{"a", a}, {"b", b}})
		ticks, kept := 0, 0
		runFor(time.Second-time.Millisecond, s, func(source string, got *Sample, err error) {
			if (source == "b") != (err != nil) {
				t.Errorf("source %s: got error %v, want one of b only", source, err)
			}
			kept += len(got.Cores) // also with an error
		}, func() { ticks++ })
		if a.reads != 10 || b.reads != 10 || ticks != 10 || kept != 20 {
			t.Errorf("got %d and %d readings, %d ticks, %d samples; want 10, 10, 10 and 20", a.reads, b.reads, ticks, kept)
		}
		if s.Late() != 0 {
			t.Errorf("got %d late ticks, want 0", s.Late())
		}
	})
}

func TestSlowSourceIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &counting{takes: 350 * time.Millisecond}
		s := NewSampler(100*time.Millisecond, []Named{{"slow", slow}})
		runFor(3500*time.Millisecond, s, func(string, *Sample, error) {}, func() {})
		if slow.reads > 11 || s.Late() == 0 {
			t.Errorf("got %d readings in 3.5 s, %d late; want at most 11, some late", slow.reads, s.Late())
		}
	})
}

func TestConcurrentReadings(t *testing.T) {
	s := NewSampler(time.Millisecond, []Named{{"a", &counting{}}})
	ctx, stop := context.WithCancel(context.Background())
	var ran sync.WaitGroup
	ran.Go(func() { s.Run(ctx, func(string, *Sample, error) {}, func() {}) })
	for range 8 {
		ran.Go(func() {
			for range 100 {
				s.Read(func(_ string, got *Sample, _ error) {
					if len(got.Cores) != 1 {
						t.Errorf("got %d cores, want 1: two readings shared a sample", len(got.Cores))
					}
				})
			}
		})
	}
	time.Sleep(5 * time.Millisecond)
	stop()
	ran.Wait()
}

func TestSnapshotKeepsTheNewestOfEachKind(t *testing.T) {
	var n Snapshot
	n.Learn(&Sample{At: Stamp{Mono: 1}, Disks: []Disk{{Name: "sda"}}})
	n.Learn(&Sample{At: Stamp{Mono: 2}, GPUs: []GPU{{ID: "gpu0"}}})
	kept := n.Clone()
	n.Learn(&Sample{At: Stamp{Mono: 3}, Disks: []Disk{{Name: "sdb"}}})
	if kept.Disks.Disks[0].Name != "sda" || kept.Disks.At.Mono != 1 {
		t.Errorf("clone: got %+v, want sda at 1", kept.Disks)
	}
	if n.Disks.Disks[0].Name != "sdb" || n.GPUs.At.Mono != 2 {
		t.Errorf("got disks %+v and GPUs at %v, want sdb and 2", n.Disks, n.GPUs.At.Mono)
	}
}

func TestSnapshotKeepsEndedProcesses(t *testing.T) {
	var n Snapshot
	read := func(pids ...int) {
		s := Sample{Jobs: []Job{{ID: "job"}}}
		for _, pid := range pids {
			s.Processes = append(s.Processes, Process{PID: pid, ReadBytes: uint64(pid)})
		}
		n.Learn(&s)
	}
	read(1, 2, 3)
	read(1, 2, 3)
	read(3)
	read(3, 4)
	if now := n.Clone(); len(now.Ended) != 2 || now.Ended[0].PID != 1 || now.Ended[1].ReadBytes != 2 {
		t.Errorf("got ended processes %+v, want 1 and 2", now.Ended)
	}
	n.Forget()
	for pid := range 3 * maxEnded {
		read(10 + pid)
	}
	if len(n.Ended) != maxEnded || n.Ended[maxEnded-1].PID != 10+3*maxEnded-2 {
		t.Errorf("got %d ended processes, want the newest %d", len(n.Ended), maxEnded)
	}
}

func TestProblems(t *testing.T) {
	var p Problems
	if p.Err() != nil {
		t.Fatalf("without problems: got error %v, want nil", p.Err())
	}
	p.Add(fs.ErrNotExist)
	p.Add(nil)
	for range 3 {
		p.Add(errors.New("the same"))
	}
	for _, words := range []string{"b", "c", "d", "e"} {
		p.Add(errors.New(words))
	}
	err := p.Err()
	if want := "file does not exist; the same; b; c; and 2 more like these"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %q, want one line that is fs.ErrNotExist", err)
	}
	p.Reset()
	if p.Err() != nil {
		t.Errorf("after Reset: got error %v, want nil", p.Err())
	}
}

//go:build linux

package pipeline

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

func look(t testing.TB, s sample.Source) (at, busy time.Duration) {
	t.Helper()
	var now sample.Sample
	if err := s.Read(&now); err != nil {
		t.Fatal(err)
	}
	if len(now.GPUs) != 1 || now.GPUs[0].ID != "emulated-0" {
		t.Fatalf("GPUs: got %+v, want emulated-0 alone", now.GPUs)
	}
	return now.At.Mono, now.GPUs[0].Busy
}

// precision is how well the clocks of two processes agree.
const precision = time.Microsecond

func TestAcceleratorIsExactFromAnotherProcess(t *testing.T) {
	p, paths := start(t), shards(t)
	for _, spin := range []bool{false, true} {
		plan := Plan{
			Files:   paths,
			Record:  4096,
			Batch:   1,
			Steps:   20,
			Compute: 5 * time.Millisecond,
			Spin:    spin,
			Sync:    time.Millisecond,
		}
		if err := p.Prepare(plan); err != nil {
			t.Fatal(err)
		}
		a := p.Accelerator()
		_, before := look(t, a)
		if err := p.Begin(); err != nil {
			t.Fatal(err)
		}
		at, busy := look(t, a)
		middle := 0
		for len(p.replies) == 0 {
			nextAt, next := look(t, a)
			if next < busy || next-busy > nextAt-at+precision {
				t.Fatalf("busy went from %v to %v within %v", busy, next, nextAt-at)
			}
			if next > busy && next-busy >= nextAt-at-precision {
				middle++
			}
			at, busy = nextAt, next
			time.Sleep(100 * time.Microsecond)
		}
		truth, err := p.End(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		consistent(t, plan, truth)
		if _, after := look(t, a); after-before != truth.Busy {
			t.Errorf("spin %t: busy for %v, the program says %v", spin, after-before, truth.Busy)
		}
		if middle == 0 {
			t.Errorf("spin %t: never seen in the middle of a computing", spin)
		}
	}
}

func TestAcceleratorOfAProgramThatDied(t *testing.T) {
	p := start(t)
	if err := p.Prepare(Plan{Files: shards(t), Record: 4096, Batch: 1, Steps: 1, Compute: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if err := p.Begin(); err != nil {
		t.Fatal(err)
	}
	for busy := time.Duration(0); busy == 0; _, busy = look(t, p.Accelerator()) {
		time.Sleep(time.Millisecond)
	}
	if err := p.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.ended
	_, busy := look(t, p.Accelerator())
	time.Sleep(10 * time.Millisecond)
	if _, later := look(t, p.Accelerator()); later != busy || busy == 0 {
		t.Errorf("busy for %v and then %v after its end", busy, later)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, later := look(t, p.Accelerator()); later != busy {
		t.Errorf("busy for %v and %v once it was closed", busy, later)
	}
}

func TestUnfinishedPage(t *testing.T) {
	var p page
	p.version.Store(1)
	if _, err := p.read(func() time.Duration { return 0 }); err == nil {
		t.Error("no error for a page in the middle of a change")
	}
}

func BenchmarkAcceleratorRead(b *testing.B) {
	p := start(b)
	var s sample.Sample
	b.ReportAllocs()
	for b.Loop() {
		s.Reset()
		_ = p.Accelerator().Read(&s)
	}
}

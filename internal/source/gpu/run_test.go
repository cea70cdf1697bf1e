package gpu

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// checkRows checks that rows come every 100 ms, at most maxLag late, with Busy growing no faster than time.
func checkRows(t *testing.T, rows []emittedRow) {
	t.Helper()
	for i, row := range rows {
		if behind := row.came - row.At.Mono; behind < 0 || behind > maxLag+110*time.Millisecond {
			t.Errorf("row %d: got a lag of %v, want at most %v", i, behind, maxLag+110*time.Millisecond)
		}
		if i == 0 {
			continue
		}
		if step := row.At.Mono - rows[i-1].At.Mono; step != 100*time.Millisecond {
			t.Errorf("row %d: got %v after the row before, want 100ms", i, step)
		}
		if len(row.GPUs) != len(rows[i-1].GPUs) {
			continue
		}
		for j, g := range row.GPUs {
			if grew := g.Busy - rows[i-1].GPUs[j].Busy; grew < 0 || grew > 100*time.Millisecond {
				t.Errorf("row %d: got %s busy for %v more, want 0 to 100ms", i, g.ID, grew)
			}
		}
	}
}

func near(got, want time.Duration) bool {
	return math.Abs(float64(got-want)) < float64(time.Millisecond)
}

func TestReadInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		d.gpu("a", 0.3)
		d.gpu("b", 0.9).period = time.Second / 60
		d.gpu("c", 0.5).period = time.Second
		time.Sleep(30 * time.Second)
		p := startRun(t.Context(), d)
		time.Sleep(10*time.Second + 500*time.Millisecond)
		p.stop()
		if d.utilizationCalls() > 3*13 || d.sessionsBegun() != 1 || d.closes != 1 {
			t.Errorf("got %d calls, %d sessions begun, %d ended, want at most 39, 1, 1",
				d.utilizationCalls(), d.sessionsBegun(), d.closes)
		}
		rows := p.take()
		checkRows(t, rows)
		first, last, processes := rows[0], rows[len(rows)-1], 0
		elapsed := last.At.Mono - first.At.Mono
		for i, share := range []float64{0.3, 0.9, 0.5} {
			grew := last.GPUs[i].Busy - first.GPUs[i].Busy
			if want := time.Duration(share * float64(elapsed)); !near(grew, want) {
				t.Errorf("GPU %d: got busy %v, want %v", i, grew, want)
			}
			if joules := last.GPUs[i].Energy - first.GPUs[i].Energy; math.Abs(joules-100*elapsed.Seconds()) > 60 {
				t.Errorf("GPU %d: got %v J in %v, want 100 W", i, joules, elapsed)
			}
		}
		for _, row := range rows {
			if row.GPUProcessesRead {
				processes++
			}
			if row.err != nil {
				t.Errorf("got error %v, want none", row.err)
			}
		}
		if processes != 2 || elapsed < 9*time.Second {
			t.Errorf("got processes %d times in %v, want twice in at least 9s", processes, elapsed)
		}
	})
}

// Processes are listed soon after a program came or went, which shows in the used memory.
func TestProcessesAfterAJumpOfMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		g := d.gpu("a", 0.3)
		p := startRun(t.Context(), d)
		lists := func(used uint64, length time.Duration) (n int) {
			d.set(func() { g.used = used })
			time.Sleep(length)
			for _, row := range p.take() {
				if row.GPUProcessesRead {
					n++
				}
			}
			return n
		}
		if n := lists(0, 3*time.Second); n != 1 {
			t.Errorf("at first: got %d lists, want 1", n)
		}
		if n := lists(jump-1, 3*time.Second); n != 0 {
			t.Errorf("after a small change: got %d lists, want none", n)
		}
		if n := lists(2*jump, 3*time.Second); n != 1 {
			t.Errorf("after a jump: got %d lists, want 1", n)
		}
		if n := lists(0, 3*time.Second); n != 1 {
			t.Errorf("after a jump back: got %d lists, want 1", n)
		}
		p.stop()
	})
}

// The reading that sees a program come lists its processes, too, so that it may be followed while it loads a model.
func TestProcessesOfAProgramThatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		g := d.gpu("a", 0)
		g.unused = true
		p := startRun(t.Context(), d)
		time.Sleep(15*time.Second + 300*time.Millisecond)
		p.take()
		for i, used := range []uint64{2 * jump, 0, 2 * jump} { // it goes, and the next one comes
			began := sample.Now().Mono
			d.set(func() {
				g.used, g.unused = used, used == 0
			})
			time.Sleep([]time.Duration{4 * time.Second, 1500 * time.Millisecond, 4 * time.Second}[i])
			listed := time.Duration(0)
			for _, row := range p.take() {
				if row.GPUProcessesRead && listed == 0 {
					listed = row.came - began
				}
			}
			if longest := readInterval + 2*minReadInterval; listed == 0 || listed > longest {
				t.Errorf("used %d: got a list after %v, want one within %v", used, listed, longest)
			}
		}
		p.stop()
	})
}

func TestCatchUpIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		d.gpu("a", 1)
		p := startRun(t.Context(), d)
		p.CatchUp(t.Context())
		time.Sleep(5 * time.Second)
		calls := d.utilizationCalls()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				for range 20 {
					begin := sample.Now().Mono
					p.CatchUp(t.Context())
					if took := sample.Now().Mono - begin; took > 2*minRoundInterval {
						t.Errorf("CatchUp took %v, want at most %v", took, 2*minRoundInterval)
					}
					if behind := begin - p.last().At.Mono; behind > time.Second/6+100*time.Millisecond {
						t.Errorf("got a lag of %v after CatchUp", behind)
					}
				}
			})
		}
		all.Wait()
		if d.utilizationCalls()-calls > 21 {
			t.Errorf("got %d calls for 20 rounds, want at most 21", d.utilizationCalls()-calls)
		}
		p.stop()
		rows := p.take()
		for i := 1; i < len(rows); i++ { // the grid, and a partial row for each CatchUp
			if gap := rows[i].At.Mono - rows[i-1].At.Mono; gap <= 0 || gap > 100*time.Millisecond {
				t.Errorf("row %d: got %v after the row before, want at most 100ms", i, gap)
			}
		}
		p.CatchUp(context.Background()) // returns without a run
	})
}

func TestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		var gpus []*fakeGPU
		for _, name := range []string{"a", "b", "c", "d"} {
			gpus = append(gpus, d.gpu(name, 0.5))
		}
		p := startRun(t.Context(), d)
		time.Sleep(5 * time.Second)
		hang := make(chan struct{})
		for n := 1; n <= 4; n++ {
			d.set(func() { gpus[n-1].wait = hang })
			time.Sleep(5 * time.Second)
			for i, g := range p.last().GPUs {
				want := sample.GPUWorks
				if i < n {
					want = sample.GPUHung
				}
				if g.Status != want {
					t.Errorf("%d hang: got status %q of %s, want %q", n, g.Status, g.ID, want)
				}
			}
		}
		began := sample.Now().Mono
		p.CatchUp(t.Context())
		if took := sample.Now().Mono - began; took > minReadInterval {
			t.Errorf("CatchUp took %v without a GPU to read, want at most %v", took, minReadInterval)
		}
		d.set(func() {
			for _, g := range gpus {
				g.wait = nil
			}
		})
		close(hang)
		time.Sleep(2 * time.Second)
		for _, g := range p.last().GPUs {
			if g.Status != "" {
				t.Errorf("it works again: got status %q of %s, want none", g.Status, g.ID)
			}
		}
		p.stop()
		rows := p.take()
		checkRows(t, rows)
		first, last := rows[20], rows[len(rows)-1]
		for i, hung := range []time.Duration{20 * time.Second, 15 * time.Second, 10 * time.Second, 5 * time.Second} {
			grew, elapsed := last.GPUs[i].Busy-first.GPUs[i].Busy, last.At.Mono-first.At.Mono
			if least := (elapsed - hung - 3*time.Second) / 2; grew < least || grew > elapsed/2 {
				t.Errorf("GPU %d: got busy %v of %v, want half of it without the %v in which it hung", i, grew, elapsed, hung)
			}
		}
		errorText := ""
		for _, row := range rows {
			if row.err != nil {
				errorText += row.err.Error()
			}
		}
		for _, g := range gpus {
			if strings.Count(errorText, "GPU "+g.uuid+" hangs") != 1 {
				t.Errorf("got errors %q, want one hang of %s", errorText, g.uuid)
			}
		}
	})
}

// More GPUs hang than calls may be under way: the others are not reported as hung, but as unknown.
func TestNoRoomForAnotherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		hang := make(chan struct{})
		for i := range maxCalls + 2 {
			d.gpu(strconv.Itoa(i), 0.5)
		}
		p := startRun(t.Context(), d)
		time.Sleep(5 * time.Second)
		set := func(wait chan struct{}) {
			d.set(func() {
				for _, g := range d.listed {
					g.wait = wait
				}
			})
		}
		set(hang)
		time.Sleep(20 * time.Second)
		count := func() map[sample.GPUStatus]int {
			n := map[sample.GPUStatus]int{}
			for _, g := range p.last().GPUs {
				n[g.Status]++
			}
			return n
		}
		if n := count(); n[sample.GPUHung] != maxCalls || n[sample.GPUUnknown] != 2 {
			t.Errorf("got %v, want %d hung and 2 unknown", n, maxCalls)
		}
		set(nil)
		close(hang)
		time.Sleep(3 * time.Second)
		if n := count(); n[sample.GPUWorks] != maxCalls+2 {
			t.Errorf("it works again: got %v, want all working", n)
		}
		p.stop()
	})
}

// A GPU about which the list hangs hides none of the others.
func TestHangWhileListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		hang := make(chan struct{})
		d.gpu("a", 0.5).listWait = hang
		d.gpu("b", 0.5)
		p := startRun(t.Context(), d)
		time.Sleep(30 * time.Second)
		if gpus := p.last().GPUs; len(gpus) != 1 || gpus[0].ID != "b" || gpus[0].Status != sample.GPUWorks {
			t.Errorf("a hangs: got %+v, want b working", gpus)
		}
		close(hang)
		time.Sleep(2 * time.Second)
		if gpus := p.last().GPUs; len(gpus) != 2 || gpus[0].Status != "" || gpus[1].Status != "" {
			t.Errorf("it works again: got %+v, want both working", gpus)
		}
		p.stop()
		said := 0
		for _, row := range p.take() {
			if row.err != nil && strings.Contains(row.err.Error(), "GPU number 0") {
				said++
			}
		}
		if said != 1 {
			t.Errorf("got %d reports of GPU number 0, want 1", said)
		}
	})
}

// Errors that say nothing about one GPU make none lost: it is unknown until it answers.
func TestNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const unknownError code = 999
		d := &fakeDriver{}
		a := d.gpu("a", 0.5)
		d.gpu("b", 0.5)
		p := startRun(t.Context(), d)
		status := func(what string, a, b sample.GPUStatus) {
			t.Helper()
			time.Sleep(15 * time.Second)
			if gpus := p.last().GPUs; len(gpus) != 2 || gpus[0].Status != a || gpus[1].Status != b {
				t.Errorf("%s: got %+v, want a %q and b %q", what, gpus, a, b)
			}
		}
		status("at first", sample.GPUWorks, sample.GPUWorks)
		d.set(func() { d.openErr = unknownError })
		status("the list fails", sample.GPUWorks, sample.GPUWorks)
		d.set(func() { d.openErr, a.err = nil, unknownError })
		status("a answers nothing", sample.GPUUnknown, sample.GPUWorks)
		d.set(func() { a.err = nil; d.listed = d.listed[1:] })
		status("a answers, but is not listed", sample.GPUWorks, sample.GPUWorks)
		d.set(func() { a.err = unknownError })
		status("a answers nothing, and is not listed", sample.GPULost, sample.GPUWorks)
		p.stop()
	})
}

// A GPU that answers nothing is reported with one query, and two that are one are said so.
func TestReportsOfOddGPUs(t *testing.T) {
	for _, c := range []struct {
		twins bool
		says  string
		gpus  int
	}{{false, "GPU a: ", 2}, {true, "lists a twice", 1}} {
		synctest.Test(t, func(t *testing.T) {
			d := &fakeDriver{}
			a := d.gpu("a", 0.5)
			if c.twins {
				d.gpu("a", 0.5)
			} else {
				d.gpu("b", 0.5)
				a.err = code(999)
			}
			p := startRun(t.Context(), d)
			time.Sleep(15 * time.Second)
			p.stop()
			rows, errs := p.take(), ""
			for _, row := range rows {
				if row.err != nil {
					errs += row.err.Error() + "\n"
				}
			}
			if n := len(rows[len(rows)-1].GPUs); n != c.gpus || strings.Count(errs, c.says) != 1 ||
				strings.Contains(errs, "999") && strings.Count(errs, "999") > 1 {
				t.Errorf("got %d GPUs and %q, want %d and %q once", n, errs, c.gpus, c.says)
			}
		})
	}
}

// Each GPU has a second of its own.
func TestSlowGPUsDoNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		var gpus []*fakeGPU
		for _, name := range []string{"a", "b", "c", "d"} {
			gpus = append(gpus, d.gpu(name, 0.5))
		}
		p := startRun(t.Context(), d)
		time.Sleep(5 * time.Second)
		d.set(func() {
			for _, g := range gpus {
				g.takes = 600 * time.Millisecond
			}
		})
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			for _, g := range p.last().GPUs {
				if g.Status != "" {
					t.Errorf("each reading takes 0.6 s: got status %q of %s, want none", g.Status, g.ID)
				}
			}
		}
		d.set(func() { gpus[2].takes = 1100 * time.Millisecond })
		hung := map[string]bool{}
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			for _, g := range p.last().GPUs {
				if g.Status == sample.GPUHung {
					hung[g.ID] = true
				}
			}
		}
		if len(hung) != 1 || !hung["c"] {
			t.Errorf("c takes 1.1 s: got %v hung, want c alone", hung)
		}
		d.set(func() {
			for _, g := range gpus {
				g.takes = 0
			}
		})
		time.Sleep(5 * time.Second) // calls that were abandoned return
		p.stop()
	})
}

func TestSilentGPU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		a := d.gpu("a", 0.2)
		d.gpu("b", 0.4)
		p := startRun(t.Context(), d)
		time.Sleep(5 * time.Second)
		d.set(func() { a.silent = true })
		time.Sleep(10 * time.Second) // its current rate is used
		d.set(func() { a.silent = false })
		time.Sleep(5 * time.Second)
		p.stop()
		rows := p.take()
		checkRows(t, rows)
		first, last := rows[10], rows[len(rows)-1]
		elapsed := last.At.Mono - first.At.Mono
		for i, share := range []float64{0.2, 0.4} {
			if got := float64(last.GPUs[i].Busy-first.GPUs[i].Busy) / float64(elapsed); math.Abs(got-share) > 0.01 {
				t.Errorf("GPU %d: got busy %v of the time, want %v", i, got, share)
			}
		}
	})
}

// A driver may answer with the same sample for ever: it says nothing of the time since then.
func TestSampleThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		g := d.gpu("a", 0.3)
		p := startRun(t.Context(), d)
		time.Sleep(5 * time.Second)
		d.set(func() {
			g.stale = []utilSample{{timestamp: uint64(time.Now().Add(-g.period).UnixMicro()), value: 100}}
		})
		time.Sleep(15 * time.Minute) // longer than the buffer of any driver
		p.stop()
		rows := p.take()
		first, last := rows[10], rows[len(rows)-1]
		elapsed := last.At.Mono - first.At.Mono
		if got := float64(last.GPUs[0].Busy-first.GPUs[0].Busy) / float64(elapsed); math.Abs(got-0.3) > 0.01 ||
			last.GPUs[0].Has&sample.LacksBusy != 0 {
			t.Errorf("got busy %v of the time in %+v, want the current rate, 0.3", got, last.GPUs[0])
		}
		for _, row := range rows {
			if row.err != nil {
				t.Fatalf("got %v, want no error", row.err)
			}
		}
	})
}

// A GPU whose UUID changes is read once, under its new one.
func TestUUIDChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		d.gpu("a", 0.3)
		p := startRun(t.Context(), d)
		defer p.stop()
		time.Sleep(5 * time.Second)
		d.set(func() { d.listed = nil })
		d.gpu("b", 0.3)
		time.Sleep(15 * time.Second)
		row := p.last()
		if len(row.GPUs) != 2 || row.GPUs[0].Status != sample.GPULost || row.GPUs[1].Status != sample.GPUWorks {
			t.Errorf("got %+v, want a lost and b", row.GPUs)
		}
	})
}

func TestWallClockStep(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour, -5 * time.Second, 5 * time.Second, -time.Second / 5} {
		synctest.Test(t, func(t *testing.T) {
			d := &fakeDriver{}
			d.gpu("a", 0.5)
			p := startRun(t.Context(), d)
			time.Sleep(5050 * time.Millisecond)
			d.set(func() { d.stepped, d.step = time.Now(), step })
			time.Sleep(20 * time.Second)
			p.stop()
			rows := p.take()
			checkRows(t, rows)
			first, last := rows[5], rows[len(rows)-1]
			lost := (last.At.Mono-first.At.Mono)/2 - (last.GPUs[0].Busy - first.GPUs[0].Busy)
			if lost < -time.Second/6 || lost > 3*time.Second/2 {
				t.Errorf("step of %v: got %v less busy time than there was, want at most 1.5s", step, lost)
			}
			if d.utilizationCalls() > 60 {
				t.Errorf("step of %v: got %d calls in 25 s, want at most 60 as with the buffer", step, d.utilizationCalls())
			}
		})
	}
}

func TestSlowCallsCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		a := d.gpu("a", 0.5)
		p := startRun(t.Context(), d)
		for range 10 {
			time.Sleep(2 * time.Second)
			wait := make(chan struct{})
			d.set(func() { a.wait = wait })
			time.Sleep(900 * time.Millisecond)
			d.set(func() { a.wait = nil })
			close(wait)
		}
		time.Sleep(3 * time.Second)
		p.stop()
		rows := p.take()
		checkRows(t, rows)
		first, last := rows[5], rows[len(rows)-1]
		for _, row := range rows {
			if row.GPUs[0].Status != "" {
				t.Fatal("got a hung GPU in less than a second, want it working")
			}
		}
		if elapsed := last.At.Mono - first.At.Mono; !near(last.GPUs[0].Busy-first.GPUs[0].Busy, elapsed/2) {
			t.Errorf("got busy %v of %v, want half of it", last.GPUs[0].Busy-first.GPUs[0].Busy, elapsed)
		}
	})
}

func TestUnsupportedUtilization(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		d.gpu("MIG-a", 0.2).bare = true
		p := startRun(t.Context(), d)
		time.Sleep(10500 * time.Millisecond)
		p.stop()
		g := p.last().GPUs[0]
		if g.Has&sample.LacksBusy == 0 || g.Busy != 0 || g.MemoryTotal != 2 || d.utilizationCalls() != 1 {
			t.Errorf("got %+v after %d calls, want no utilization after one", g, d.utilizationCalls())
		}
	})
}

func TestLostDeviceReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		a := d.gpu("a", 1)
		d.gpu("b", 1)
		p := startRun(t.Context(), d)
		time.Sleep(5 * time.Second)
		d.set(func() { d.listed = d.listed[1:]; a.err = codeLost })
		time.Sleep(3 * time.Second)
		lost := p.last()
		if lost.GPUs[0].Status != sample.GPULost || lost.GPUs[1].Status != "" {
			t.Errorf("got %+v, want GPU a lost", lost)
		}
		time.Sleep(time.Minute)
		d.set(func() { d.listed = append(d.listed, a); a.err = nil })
		time.Sleep(70 * time.Second)
		p.stop()
		rows := p.take()
		checkRows(t, rows)
		last := rows[len(rows)-1]
		if last.GPUs[0].Status != "" || last.GPUs[0].Busy <= lost.GPUs[0].Busy || last.GPUs[1].Status != "" ||
			d.sessionsBegun() != 1 {
			t.Errorf("got %+v in %d sessions, want both GPUs working in one", last, d.sessionsBegun())
		}
	})
}

func TestDriverUnload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		a := d.gpu("a", 1)
		p := startRun(t.Context(), d)
		time.Sleep(5 * time.Second)
		d.set(func() { d.openErr = codeUninitialized; a.err = codeUninitialized })
		time.Sleep(100 * time.Second)
		if p.last().GPUs[0].Status != sample.GPUUnknown || d.sessionsBegun() > 7 {
			t.Errorf("got %+v after %d sessions, want an unknown GPU after at most 7", p.last(), d.sessionsBegun())
		}
		d.set(func() { d.openErr = nil; a.err = nil })
		time.Sleep(5 * time.Minute)
		p.stop()
		if p.last().GPUs[0].Status != "" {
			t.Errorf("got %+v, want a working GPU", p.last())
		}
		checkRows(t, p.take())
	})
}

func TestDriverLoadedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{openErr: ErrNoDriver}
		p := startRun(t.Context(), d)
		time.Sleep(time.Hour)
		p.CatchUp(context.Background())
		rows := p.take()
		if len(rows) != 1 || !errors.Is(rows[0].err, ErrNoDriver) || len(rows[0].GPUs) != 0 || d.sessionsBegun() > 18 {
			t.Errorf("got %v and %d attempts in an hour, want ErrNoDriver once and at most 18", rows, d.sessionsBegun())
		}
		d.set(func() { d.openErr = nil; d.hangs = 3 * time.Second })
		d.gpu("a", 1)
		time.Sleep(6 * time.Minute)
		p.stop()
		rows = p.take()
		if len(rows) < 100 {
			t.Fatalf("got %d rows, want at least 100", len(rows))
		}
		checkRows(t, rows)
	})
}

func TestHangingOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{hangs: 2 * time.Minute}
		d.gpu("a", 1)
		p := startRun(t.Context(), d)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		p.CatchUp(ctx)
		time.Sleep(time.Minute)
		if rows := p.take(); len(rows) != 1 || !strings.Contains(rows[0].err.Error(), "not responded for 30s") {
			t.Errorf("got %v, want the report that the driver has not responded", rows)
		}
		time.Sleep(2 * time.Minute)
		if d.sessionsBegun() != 1 || len(p.last().GPUs) != 1 {
			t.Errorf("got %d attempts, %+v, want one, and a GPU", d.sessionsBegun(), p.last())
		}
		p.stop()
	})
}

// Busy time is not usable while utilization is over 100 percent, and other values are.
func TestUtilizationOver100(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		d.gpu("a", 1.3)
		p := startRun(t.Context(), d)
		time.Sleep(5 * time.Second)
		p.stop()
		if g := p.last().GPUs[0]; g.Has&sample.LacksBusy == 0 || g.Busy != 0 || g.Has&sample.HasMemory == 0 {
			t.Errorf("got %+v, want memory and no busy time", g)
		}
	})
}

// One reading of energy that fell is garbage, and the next goes on from those before.
func TestEnergyThatGoesBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		g := d.gpu("a", 0.5)
		readings := 0
		g.joules = func() float64 {
			if readings++; readings == 10 {
				return 0
			}
			return 1e6 + 100*time.Since(g.began).Seconds()
		}
		p := startRun(t.Context(), d)
		time.Sleep(30 * time.Second)
		p.stop()
		last := 0.0
		for _, row := range p.take() {
			if g := row.GPUs[0]; g.Has&sample.HasEnergy != 0 {
				if g.Energy < last || g.Energy > 1e6+3100 {
					t.Fatalf("row at %v: got %v J after %v, want no less and no jump", row.At.Mono, g.Energy, last)
				}
				last = g.Energy
			}
		}
		if last < 1e6+2500 {
			t.Errorf("got %v J at the end, want what was used in 30 s", last)
		}
	})
}

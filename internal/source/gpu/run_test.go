package gpu

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// checkRows fails unless rows come each 100 ms, none too late, with Busy rising no faster than time.
func checkRows(t *testing.T, rows []emittedRow) {
	t.Helper()
	for i, row := range rows {
		if behind := row.came - row.At.Mono; behind < 0 || behind > maxLag+110*time.Millisecond {
			t.Errorf("row %d is %v behind", i, behind)
		}
		if i == 0 {
			continue
		}
		if step := row.At.Mono - rows[i-1].At.Mono; step != 100*time.Millisecond {
			t.Errorf("row %d: %v after the one before", i, step)
		}
		if len(row.GPUs) != len(rows[i-1].GPUs) {
			continue
		}
		for j, g := range row.GPUs {
			if grew := g.Busy - rows[i-1].GPUs[j].Busy; grew < 0 || grew > 100*time.Millisecond {
				t.Errorf("row %d: %s grew by %v", i, g.ID, grew)
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
			t.Errorf("%d calls, %d sessions begun, %d ended", d.utilizationCalls(), d.sessionsBegun(), d.closes)
		}
		rows := p.take()
		checkRows(t, rows)
		first, last, processes := rows[0], rows[len(rows)-1], 0
		elapsed := last.At.Mono - first.At.Mono
		for i, share := range []float64{0.3, 0.9, 0.5} {
			grew := last.GPUs[i].Busy - first.GPUs[i].Busy
			if want := time.Duration(share * float64(elapsed)); !near(grew, want) {
				t.Errorf("GPU %d: busy for %v, want %v", i, grew, want)
			}
			if joules := last.GPUs[i].Energy - first.GPUs[i].Energy; math.Abs(joules-100*elapsed.Seconds()) > 60 {
				t.Errorf("GPU %d: %v J in %v", i, joules, elapsed)
			}
		}
		for _, row := range rows {
			if row.GPUProcessesRead {
				processes++
			}
			if row.err != nil {
				t.Error(row.err)
			}
		}
		if processes != 2 || elapsed < 9*time.Second {
			t.Errorf("processes were read %d times in %v", processes, elapsed)
		}
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
						t.Errorf("took %v", took)
					}
					if behind := begin - p.last().At.Mono; behind > time.Second/6+100*time.Millisecond {
						t.Errorf("%v behind", behind)
					}
				}
			})
		}
		all.Wait()
		if d.utilizationCalls()-calls > 21 {
			t.Errorf("%d calls for 20 moments", d.utilizationCalls()-calls)
		}
		p.stop()
		rows := p.take()
		for i := 1; i < len(rows); i++ { // the grid, and one more row for each that was asked for
			if gap := rows[i].At.Mono - rows[i-1].At.Mono; gap <= 0 || gap > 100*time.Millisecond {
				t.Errorf("row %d: %v after the one before", i, gap)
			}
		}
		p.CatchUp(context.Background()) // nobody runs
	})
}

func TestHangsAndThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		a := d.gpu("a", 0.5)
		b := d.gpu("b", 0.5)
		d.gpu("c", 0.5)
		p := startRun(t.Context(), d)
		time.Sleep(5 * time.Second)
		first, second := make(chan struct{}), make(chan struct{})
		d.set(func() { a.wait = first })
		time.Sleep(5 * time.Second)
		if last := p.last(); last.GPUs[0].Status != sample.GPUHung || last.GPUs[1].Status != "" || last.GPUs[2].Status != "" ||
			!near(last.GPUs[2].Busy-p.row(20).GPUs[2].Busy, (last.At.Mono-p.row(20).At.Mono)/2) {
			t.Errorf("one hangs: %+v", last)
		}
		d.set(func() { b.wait = second })
		time.Sleep(5 * time.Second)
		for _, g := range p.last().GPUs {
			if g.Status != sample.GPUHung {
				t.Errorf("no thread is left, and %s is %q", g.ID, g.Status)
			}
		}
		began := sample.Now().Mono
		p.CatchUp(t.Context())
		if took := sample.Now().Mono - began; took > 2*time.Second {
			t.Errorf("catching up took %v with nothing to ask", took)
		}
		d.set(func() { a.wait = nil })
		close(first)
		time.Sleep(5 * time.Second)
		last := p.last()
		if last.GPUs[0].Status != "" || last.GPUs[1].Status != sample.GPUHung || last.GPUs[2].Status != "" {
			t.Errorf("one came back: %+v", last)
		}
		d.set(func() { b.wait = nil })
		close(second)
		time.Sleep(5 * time.Second)
		for _, g := range p.last().GPUs {
			if g.Status != "" {
				t.Errorf("%s is %q", g.ID, g.Status)
			}
		}
		p.stop()
		rows := p.take()
		checkRows(t, rows)
		errorText := ""
		for _, row := range rows {
			if row.err != nil {
				errorText += row.err.Error()
			}
		}
		if strings.Count(errorText, "GPU a hangs") != 1 || strings.Count(errorText, "GPU b hangs") != 1 {
			t.Error(errorText)
		}
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
		time.Sleep(10 * time.Second) // its rate is held instead
		d.set(func() { a.silent = false })
		time.Sleep(5 * time.Second)
		p.stop()
		rows := p.take()
		checkRows(t, rows)
		first, last := rows[10], rows[len(rows)-1]
		elapsed := last.At.Mono - first.At.Mono
		for i, share := range []float64{0.2, 0.4} {
			if got := float64(last.GPUs[i].Busy-first.GPUs[i].Busy) / float64(elapsed); math.Abs(got-share) > 0.01 {
				t.Errorf("GPU %d: busy %v of the time", i, got)
			}
		}
	})
}

func TestWallClockStep(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour, -5 * time.Second, 5 * time.Second, -200 * time.Millisecond} {
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
			if lost := (last.At.Mono-first.At.Mono)/2 - (last.GPUs[0].Busy - first.GPUs[0].Busy); lost < -time.Second/6 || lost > 3*time.Second/2 {
				t.Errorf("a step of %v: %v too little", step, lost)
			}
			if d.utilizationCalls() > 60 {
				t.Errorf("a step of %v: asked %d times in 25 s, so the buffer is not used any more", step, d.utilizationCalls())
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
				t.Fatal("it hung, in less than a second")
			}
		}
		if elapsed := last.At.Mono - first.At.Mono; !near(last.GPUs[0].Busy-first.GPUs[0].Busy, elapsed/2) {
			t.Errorf("busy for %v of %v", last.GPUs[0].Busy-first.GPUs[0].Busy, elapsed)
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
		if g := p.last().GPUs[0]; g.Has&sample.LacksBusy == 0 || g.Busy != 0 || g.MemoryTotal != 2 || d.utilizationCalls() != 1 {
			t.Errorf("%+v, asked %d times", g, d.utilizationCalls())
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
			t.Errorf("%+v", lost)
		}
		time.Sleep(time.Minute)
		d.set(func() { d.listed = append(d.listed, a); a.err = nil })
		time.Sleep(70 * time.Second)
		p.stop()
		rows := p.take()
		checkRows(t, rows)
		last := rows[len(rows)-1]
		if last.GPUs[0].Status != "" || last.GPUs[0].Busy <= lost.GPUs[0].Busy || last.GPUs[1].Status != "" || d.sessionsBegun() != 1 {
			t.Errorf("%+v, %d sessions", last, d.sessionsBegun())
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
		if p.last().GPUs[0].Status != sample.GPULost || d.sessionsBegun() > 7 {
			t.Errorf("%+v after %d sessions", p.last(), d.sessionsBegun())
		}
		d.set(func() { d.openErr = nil; a.err = nil })
		time.Sleep(5 * time.Minute)
		p.stop()
		if p.last().GPUs[0].Status != "" {
			t.Errorf("%+v", p.last())
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
		if rows := p.take(); len(rows) != 1 || !errors.Is(rows[0].err, ErrNoDriver) || len(rows[0].GPUs) != 0 || d.sessionsBegun() > 18 {
			t.Errorf("%v, %d attempts in an hour", rows, d.sessionsBegun())
		}
		d.set(func() { d.openErr = nil; d.hangs = 3 * time.Second })
		d.gpu("a", 1)
		time.Sleep(6 * time.Minute)
		p.stop()
		rows := p.take()
		if len(rows) < 100 {
			t.Fatalf("%d rows", len(rows))
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
		if rows := p.take(); len(rows) != 1 || !strings.Contains(rows[0].err.Error(), "not answered for 30s") {
			t.Errorf("%v", rows)
		}
		time.Sleep(2 * time.Minute)
		if d.sessionsBegun() != 1 || len(p.last().GPUs) != 1 {
			t.Errorf("%d attempts, %+v", d.sessionsBegun(), p.last())
		}
		p.stop()
	})
}

package gpu

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

const (
	energyField = "NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
	powerCall   = "nvmlDeviceGetPowerUsage"
)

// joules is the energy of a GPU whose power swings between 100 and 700 W in 7 s.
func joules(at time.Duration) float64 {
	const swing = 2 * math.Pi / 7
	return 400*at.Seconds() + 300/swing*(1-math.Cos(swing*at.Seconds()))
}

// workingGPU returns a GPU with this energy, as a counter that changes every 100 ms, and with the mean power of the
// last second times a factor.
func workingGPU(d *fakeDriver, factor float64) *fakeGPU {
	g := d.gpu("a", 0.5)
	g.details = allDetails()
	g.details.fields[83] = func() answer {
		return answer{number: math.Floor(1000 * joules(time.Since(g.began).Truncate(100*time.Millisecond)))}
	}
	g.watts = func() (float64, error) {
		now := time.Since(g.began)
		return factor * (joules(now) - joules(now-time.Second)), nil
	}
	return g
}

// checkEnergy checks the energy of rows, whose GPU began at the time began, and returns the largest error in joules.
func checkEnergy(t *testing.T, rows []emittedRow, began time.Duration) (worst float64) {
	t.Helper()
	last, seen := 0.0, 0
	for _, row := range rows {
		g := row.GPUs[0]
		if g.Status != sample.GPUWorks {
			continue
		}
		if g.Has&sample.HasEnergy == 0 {
			t.Fatalf("row at %v: got no energy, want it", row.At.Mono)
		}
		if g.Energy < last {
			t.Fatalf("row at %v: got %v J after %v J, want no less", row.At.Mono, g.Energy, last)
		}
		last, seen = g.Energy, seen+1
		if row.At.Mono >= began+3*time.Second { // the first rows are of the first reading
			worst = max(worst, math.Abs(g.Energy-joules(row.At.Mono-began)))
		}
	}
	if seen < 100 {
		t.Fatalf("got %d rows with energy, want at least 100", seen)
	}
	return worst
}

// pastOf returns a history of rows, with the time since began: synctest's clock is before the start of this process.
func pastOf(t *testing.T, rows []emittedRow, began time.Duration) *history.History {
	t.Helper()
	h, err := history.New(history.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		s := &rows[i].Sample
		s.At.Mono -= began
		for j := range s.GPUDetails {
			s.GPUDetails[j].At -= began
		}
		if err := h.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// The counter of energy is read every ten seconds where the driver's power is a mean. Its sum in rows and the mean
// power of windows are still right, also if power is a bit too high or too low.
func TestEnergyBetweenReadings(t *testing.T) {
	for _, c := range []struct {
		name           string
		factor, joules float64
	}{{"exact", 1, 90}, {"too high", 1.05, 450}, {"too low", 0.95, 450}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &fakeDriver{}
				workingGPU(d, c.factor)
				began := sample.Now().Mono
				p := startRun(t.Context(), d)
				time.Sleep(100 * time.Second)
				p.stop()
				counts, rows := d.counted(), p.take()
				if n := counts[energyField]; n < 10 || n > 12 {
					t.Errorf("got %d readings of energy in 100 s, want one in 10 s", n)
				}
				if n := counts[powerCall]; n < 95 || n > 105 {
					t.Errorf("got %d readings of power in 100 s, want one a second", n)
				}
				if n := counts["NVML_FI_DEV_POWER_AVERAGE"]; n != 1 {
					t.Errorf("got %d readings of the mean power's field, want one", n)
				}
				if worst := checkEnergy(t, rows, began); worst > c.joules {
					t.Errorf("got an error of %v J, want at most %v", worst, c.joules)
				}
				h := pastOf(t, rows, began)
				for _, length := range []time.Duration{3 * time.Second, 10 * time.Second, 45 * time.Second} {
					for start := 5 * time.Second; start+length < 98*time.Second; start += 1700 * time.Millisecond {
						means := h.Means("a", start, start+length)
						got, known := means.Get(history.Power)
						want := c.factor * (joules(start+length) - joules(start)) / length.Seconds()
						// Within a second power is taken as constant: up to 34 J are on the wrong side of each edge.
						if !known || math.Abs(got-want) > 70/length.Seconds() {
							t.Fatalf("window of %v at %v: got %v W, known %v, want %v W", length, start, got, known, want)
						}
					}
				}
			})
		})
	}
}

// Energy is read each second where power is no mean, is missing, or fails, and where a reading of energy failed.
func TestEnergyEachSecond(t *testing.T) {
	broken := errors.New("broken")
	for name, change := range map[string]func(*fakeGPU){
		"no mean":  func(g *fakeGPU) { delete(g.details.fields, 185) },
		"no power": func(g *fakeGPU) { g.watts = nil },
		"failing power": func(g *fakeGPU) {
			g.watts = func() (float64, error) { return 0, broken }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &fakeDriver{}
				change(workingGPU(d, 1))
				began := sample.Now().Mono
				p := startRun(t.Context(), d)
				time.Sleep(60 * time.Second)
				p.stop()
				counts, rows := d.counted(), p.take()
				if n := counts[energyField]; n < 55 || n > 65 {
					t.Errorf("got %d readings of energy in 60 s, want one a second", n)
				}
				if n := counts[powerCall]; name == "no mean" && n > 2 {
					t.Errorf("got %d readings of power, want at most 2", n)
				}
				if worst := checkEnergy(t, rows, began); worst > 90 {
					t.Errorf("got an error of %v J, want at most 90", worst)
				}
				means := pastOf(t, rows, began).Means("a", 10*time.Second, 50*time.Second)
				want := (joules(50*time.Second) - joules(10*time.Second)) / 40
				if got, known := means.Get(history.Power); !known || math.Abs(got-want) > 0.02*want {
					t.Errorf("got %v W, known %v, want %v W", got, known, want)
				}
			})
		})
	}
	t.Run("failing energy", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := &fakeDriver{}
			g := workingGPU(d, 1)
			began := sample.Now().Mono
			good, fails := g.details.fields[83], 0
			g.details.fields[83] = func() answer {
				if now := time.Since(g.began); now > 15*time.Second && now < 40*time.Second {
					fails++
					return answer{err: broken}
				}
				return good()
			}
			p := startRun(t.Context(), d)
			time.Sleep(60 * time.Second)
			p.stop()
			if fails < 15 || fails > 25 { // it was read rarely until the first failure
				t.Errorf("got %d failed readings of energy, want one a second from the first on", fails)
			}
			last := p.lastOf(p.take())
			if want := joules(last.At.Mono - began); math.Abs(last.GPUs[0].Energy-want) > 90 {
				t.Errorf("got %v J at the end, want %v", last.GPUs[0].Energy, want)
			}
		})
	})
}

// nvmlDeviceGetTotalEnergyConsumption stands in for the field value, and is as rare.
func TestEnergyWithoutField(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		g := workingGPU(d, 1)
		delete(g.details.fields, 83)
		calls := 0
		g.joules = func() float64 { calls++; return joules(time.Since(g.began)) }
		began := sample.Now().Mono
		p := startRun(t.Context(), d)
		time.Sleep(60 * time.Second)
		p.stop()
		if calls < 6 || calls > 8 {
			t.Errorf("got %d readings of energy in 60 s, want one in 10 s", calls)
		}
		if worst := checkEnergy(t, p.take(), began); worst > 90 {
			t.Errorf("got an error of %v J, want at most 90", worst)
		}
	})
}

// A GPU that was hung or lost goes on from its counter, and never falls below what rows had by power. A counter that
// fell began again with the driver.
func TestEnergyOfReturnedGPU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		g := workingGPU(d, 1.1)
		began := sample.Now().Mono
		p := startRun(t.Context(), d)
		time.Sleep(18 * time.Second)
		wait := make(chan struct{})
		d.set(func() { g.wait = wait })
		time.Sleep(5 * time.Second)
		d.set(func() { g.wait = nil })
		close(wait)
		time.Sleep(14 * time.Second)
		d.set(func() { g.err = codeLost; d.listed = nil })
		time.Sleep(4 * time.Second)
		d.set(func() { g.err = nil; d.listed = []*fakeGPU{g} })
		time.Sleep(30 * time.Second)
		rows := p.take()
		if worst := checkEnergy(t, rows, began); worst > 1000 {
			t.Errorf("got an error of %v J, want at most 1000", worst)
		}
		states := map[sample.GPUStatus]bool{}
		for _, row := range rows {
			states[row.GPUs[0].Status] = true
		}
		if !states[sample.GPUHung] || !states[sample.GPULost] {
			t.Errorf("got states %v, want a hung and a lost GPU", states)
		}
		before := p.lastOf(rows).GPUs[0].Energy
		d.set(func() { g.err = codeLost; d.listed = nil })
		time.Sleep(4 * time.Second)
		reloaded := time.Now()
		d.set(func() {
			g.details.fields[83] = func() answer { return answer{number: 1000 * 100 * time.Since(reloaded).Seconds()} }
			g.err, d.listed = nil, []*fakeGPU{g}
		})
		time.Sleep(15 * time.Second)
		p.stop()
		if g := p.lastOf(p.take()).GPUs[0]; g.Status != sample.GPUWorks || g.Energy > before/2 {
			t.Errorf("got %+v, want the energy since the driver was loaded again, and not %v J", g, before)
		}
	})
}

func TestEnergySum(t *testing.T) {
	var e energy
	for i, step := range []struct {
		got, want float64
	}{
		{e.count(1000), 1000}, {e.add(500), 1500}, {e.add(500), 2000}, {e.count(1900), 2000}, {e.add(50), 2000},
		{e.add(100), 2050}, {e.count(3000), 3000}, {e.count(2999), 2999}, {e.add(1), 3000}, {e.count(5), 5},
	} {
		if step.got != step.want {
			t.Errorf("step %d: got %v J, want %v", i, step.got, step.want)
		}
	}
}

// The mean power of a second says nothing about a long time before it, in which this process may have been suspended.
func TestEnergyAfterPause(t *testing.T) {
	g := &deviceState{}
	for _, step := range []struct {
		at             int
		spared         bool
		energy, joules float64
	}{
		{0, false, 1000, 1000}, {1, true, 0, 1300}, {3, true, 0, 1900}, {60, true, 0, 1900}, {61, true, 0, 2200},
		{62, false, 5000, 5000},
	} {
		r := nth(step.at)
		r.hasDetails, r.meanPower, r.energySpared = true, true, step.spared
		r.gauges = sample.GPU{Power: 300, Energy: step.energy, Has: sample.HasPower}
		if !step.spared {
			r.gauges.Has |= sample.HasEnergy
		}
		g.applyGauges(r)
		if g.gauges.Energy != step.joules || g.gauges.Power != 300 || g.gauges.Has&sample.HasEnergy == 0 {
			t.Errorf("after %d s: got %v J and %v W, want %v J and 300 W", step.at, g.gauges.Energy, g.gauges.Power, step.joules)
		}
	}
}

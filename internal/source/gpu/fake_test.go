package gpu

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// fakeDriver is a driver on synctest's clock. The timestamps of its GPUs are Unix time.
type fakeDriver struct {
	mu       sync.Mutex
	openErr  error
	hangs    time.Duration // duration of open
	opens    int
	closes   int
	calls    int // of samples and utilizationRates
	listed   []*fakeGPU
	stepped  time.Time     // when the wall clock was set
	step     time.Duration // by which it was set
	xids     []xidEvent    // pending events
	eventErr error
	counts   map[string]int // of calls, by name
}

func (d *fakeDriver) open() error {
	d.mu.Lock()
	d.opens++
	err, hangs := d.openErr, d.hangs
	d.mu.Unlock()
	time.Sleep(hangs)
	return err
}

func (d *fakeDriver) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

func (d *fakeDriver) utilizationCalls() (n int) { d.set(func() { n = d.calls }); return n }
func (d *fakeDriver) sessionsBegun() (n int)    { d.set(func() { n = d.opens }); return n }
func (d *fakeDriver) sessionsEnded() (n int)    { d.set(func() { n = d.closes }); return n }

func (d *fakeDriver) maker() *maker              { return nvidia }
func (d *fakeDriver) close()                     { d.set(func() { d.closes++ }) }
func (d *fakeDriver) versions() (string, string) { return "1", "2" }

func (d *fakeDriver) count() (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.gpus()), d.openErr
}

// gpus returns the listed devices that are no MIG devices. d.mu is held.
func (d *fakeDriver) gpus() (list []*fakeGPU) {
	for _, g := range d.listed {
		if g.parentGPU == "" {
			list = append(list, g)
		}
	}
	return list
}

func (d *fakeDriver) list(index int) ([]device, error) {
	d.mu.Lock()
	gpus, all, err := d.gpus(), d.listed, d.openErr
	d.mu.Unlock()
	if index >= len(gpus) {
		return nil, codeInvalidArgument
	}
	if wait := gpus[index].listWait; wait != nil {
		<-wait
	}
	list := []device{gpus[index]}
	for _, g := range all {
		if g.parentGPU == gpus[index].uuid {
			list = append(list, g)
		}
	}
	return list, err
}

func (d *fakeDriver) clocks() clocks {
	c := clocks{at: sample.Now()}
	d.set(func() { c.at.Wall = d.wall(c.at.Wall) })
	return c
}

// wall returns the wall clock's reading.
func (d *fakeDriver) wall(at time.Time) time.Time {
	if !d.stepped.IsZero() && at.After(d.stepped) {
		return at.Add(d.step)
	}
	return at
}

// fakeGPU is busy for a constant share of the time, sampled in periods since it was made.
type fakeGPU struct {
	d         *fakeDriver
	uuid      string
	number    int
	share     float64
	period    time.Duration
	began     time.Time
	silent    bool                                 // there are no new samples
	stale     []utilSample                         // these are returned each time, instead of others
	late      time.Duration                        // samples are held back
	batch     time.Duration                        // samples are published at multiples of it; 0 at once
	busy      func(at time.Duration) time.Duration // busy time since began, instead of share
	bare      bool                                 // neither samples nor rate are supported
	wait      chan struct{}                        // calls block until it is closed
	listWait  chan struct{}                        // the list blocks until it is closed
	takes     time.Duration                        // of each list of samples
	err       error
	parentGPU string // of a MIG device
	details   *fakeDetails
	watts     func() (float64, error) // power; nil if it is not supported
	joules    func() float64          // energy, instead of 100 W
	used      uint64                  // memory, in bytes, besides one; guarded by d.mu
	unused    bool                    // no process holds memory; guarded by d.mu
	onMemory  func()                  // called with d.mu held for each reading of it; may be nil
}

func (g *fakeGPU) about() *identity {
	return &identity{id: g.uuid, name: "fake", index: g.number, parent: g.parentGPU, maker: nvidia}
}

// enter is called first in every call.
func (g *fakeGPU) enter() error {
	g.d.mu.Lock()
	wait := g.wait
	g.d.mu.Unlock()
	if wait != nil {
		<-wait
	}
	g.d.mu.Lock()
	defer g.d.mu.Unlock()
	return g.err
}

func (g *fakeGPU) samples(since uint64) (list []utilSample, err error) {
	takes := time.Duration(0)
	g.d.set(func() { g.d.calls++; takes = g.takes })
	time.Sleep(takes)
	if err := g.enter(); err != nil {
		return nil, err
	}
	g.d.mu.Lock()
	defer g.d.mu.Unlock()
	switch {
	case g.bare:
		return nil, codeNotSupported
	case g.silent:
		return nil, codeNotFound
	case g.stale != nil:
		return slices.Clone(g.stale), nil
	}
	if time.Since(g.began) < g.late {
		return nil, codeNotFound
	}
	published := time.Since(g.began) - g.late
	if g.batch > 0 {
		published = published.Truncate(g.batch)
	}
	n := int(published / g.period)
	for i := max(n-119, 0); i <= n; i++ {
		at := uint64(g.d.wall(g.began.Add(time.Duration(i) * g.period)).UnixMicro())
		if at > since {
			list = append(list, utilSample{timestamp: at, value: 100 * g.mean(i)})
		}
	}
	return list, nil
}

// mean is the busy share of a period.
func (g *fakeGPU) mean(i int) float64 {
	if g.busy == nil {
		return g.share
	}
	end := time.Duration(i) * g.period
	return float64(g.busy(end)-g.busy(max(0, end-g.period))) / float64(g.period)
}

// gauges returns the functions that a GPU without details has, too.
func (g *fakeGPU) gauges() map[string]func() ([3]float64, error) {
	constant := func(number float64) func() ([3]float64, error) {
		return func() ([3]float64, error) { return [3]float64{number}, g.enter() }
	}
	return map[string]func() ([3]float64, error){
		callRates: func() (n [3]float64, err error) {
			switch {
			case g.bare:
				return n, codeNotSupported
			case g.busy != nil:
				return [3]float64{100 * g.mean(int(time.Since(g.began)/g.period)), 12}, g.enter()
			}
			return [3]float64{g.share * 100, 12}, g.enter()
		},
		callMemory: func() ([3]float64, error) {
			g.d.mu.Lock()
			used := float64(g.used)
			if g.onMemory != nil {
				g.onMemory()
			}
			g.d.mu.Unlock()
			return [3]float64{2 + used, 1 + used, 1}, g.enter()
		},
		"nvmlDeviceGetTemperature": constant(40),
		"nvmlDeviceGetPowerUsage": func() (n [3]float64, err error) {
			if g.watts == nil {
				return n, codeNotSupported
			}
			if err := g.enter(); err != nil {
				return n, err
			}
			g.d.set(func() { g.d.tally(powerCall) })
			n[0], err = g.watts()
			n[0] *= 1000
			return n, err
		},
		"nvmlDeviceGetTotalEnergyConsumption": func() ([3]float64, error) {
			if g.joules != nil {
				return [3]float64{1000 * g.joules()}, g.enter()
			}
			return [3]float64{1000 * 100 * time.Since(g.began).Seconds()}, g.enter()
		},
		"nvmlDeviceGetCurrPcieLinkWidth": constant(16), "nvmlDeviceGetCurrPcieLinkGeneration": constant(4),
		"nvmlDeviceGetMaxPcieLinkWidth": constant(16), "nvmlDeviceGetMaxPcieLinkGeneration": constant(5),
	}
}

func (g *fakeGPU) processes() ([]sample.GPUProcess, error) {
	if err := g.enter(); err != nil {
		return nil, err
	}
	g.d.mu.Lock()
	defer g.d.mu.Unlock()
	if g.unused {
		return nil, nil
	}
	return []sample.GPUProcess{{PID: 7}}, nil
}
func (d *fakeDriver) gpu(uuid string, share float64) *fakeGPU {
	g := &fakeGPU{d: d, uuid: uuid, share: share, period: time.Second / 6, began: time.Now()}
	d.set(func() {
		g.number = len(d.gpus())
		d.listed = append(d.listed, g)
	})
	return g
}

// emittedRow is a row with the time of its emission.
type emittedRow struct {
	sample.Sample
	err  error
	came time.Duration
}

// fakeRun runs a source with a fake driver.
type fakeRun struct {
	*Source
	mu   sync.Mutex
	rows []emittedRow
	stop func()
}

func startRun(ctx context.Context, d *fakeDriver) *fakeRun { return startRunOn(ctx, d, nil) }

// startRunOn runs it on a machine, which may be nil.
func startRunOn(ctx context.Context, d *fakeDriver, m *machine) *fakeRun {
	return startSource(ctx, newSource(0, m, d))
}

func startSource(ctx context.Context, s *Source) *fakeRun {
	p := &fakeRun{Source: s}
	ctx, cancel := context.WithCancel(ctx)
	var ran sync.WaitGroup
	ran.Go(func() {
		p.Run(ctx, func(_ string, s *sample.Sample, err error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			row := *s
			row.GPUs = append([]sample.GPU(nil), s.GPUs...)
			row.GPUDetails = append([]sample.GPUDetail(nil), s.GPUDetails...)
			row.GPUProcesses = append([]sample.GPUProcess(nil), s.GPUProcesses...)
			p.rows = append(p.rows, emittedRow{row, err, sample.Now().Mono})
		})
	})
	p.stop = func() { cancel(); ran.Wait() }
	return p
}

// last returns the newest row, and take all rows since the last take.
func (p *fakeRun) last() emittedRow {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rows[len(p.rows)-1]
}

func (p *fakeRun) take() []emittedRow {
	p.mu.Lock()
	defer p.mu.Unlock()
	rows := p.rows
	p.rows = nil
	return rows
}

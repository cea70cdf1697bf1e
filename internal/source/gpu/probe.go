package gpu

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/stallspan/stallspan/internal/sample"
)

// ProbeResult is what the driver reports about this machine.
type ProbeResult struct {
	Driver  string // its version
	NVML    string // its library's version
	Devices []Device
	Err     error // why a GPU is missing from Devices, in one line, or nil
}

// Device is a GPU or MIG device with the features that it supports.
type Device struct {
	ID          string // "GPU-<uuid>", "MIG-<uuid>"
	Name        string
	Index       int    // GPU index of nvidia-smi, or among AMD's
	Vendor      string // "AMD", or "" for NVIDIA
	Driver      string // its version
	Supported   []string
	Unsupported []string
	Busy        bool     // its busy time is known
	Asleep      bool     // nothing else was read, so that it is not woken
	Notes       []string // what its answers mean, and what to do, one sentence each
	Err         error    // which supported queries failed, in one line, or nil
}

// conditions are what a device's answers mean. A sentence says so and what to do.
var conditions = []struct {
	is    func(d *deviceReader, r *reading) bool
	means string
}{
	{func(d *deviceReader, r *reading) bool { return d.hollow && r.hasRate },
		"Its driver answers with zeros, as for integrated GPUs: its busy time is the kernel's load of the GPU."},
	{func(_ *deviceReader, r *reading) bool { return r.hollow },
		"Its driver answers with zeros, as for integrated and some virtual GPUs: its busy time is not usable; " +
			"ask the GPU's maker for a driver that reports it."},
	{func(d *deviceReader, _ *reading) bool { return d.shared && !d.unsupported[processRows.from] },
		"It shares the machine's memory: what it uses is that of its processes, without the page cache."},
	{func(d *deviceReader, _ *reading) bool { return d.parent != "" || d.partitioned },
		"NVIDIA reports no utilization of MIG devices, nor of a GPU that has some: to divide a job's time, run it on a GPU " +
			"without MIG."},
	{func(d *deviceReader, _ *reading) bool { return virtual.MatchString(d.name) },
		"It is a virtual GPU: search for its Xid errors, power and temperature on its host."},
	{func(d *deviceReader, _ *reading) bool { return d.machine.isWSL() && d.unsupported[processRows.from] },
		"It is seen through /dev/dxg (WSL2), whose driver lists no processes: follow a program by its PID " +
			"(stallspan attach PID)."},
	{func(d *deviceReader, _ *reading) bool { return d.maker == amd },
		"It is read from files of amdgpu, which was not verified on a card."},
	{func(_ *deviceReader, r *reading) bool { return len(r.points) > 0 && r.points[0].kind == averaged },
		"Its busy time is an average at each second: the uncertainty of windows includes that."},
	{func(d *deviceReader, _ *reading) bool {
		c, ok := d.device.(*card)
		return ok && errors.Is(c.parsed, errAPU)
	},
		"Its gpu_metrics is that of an APU, whose units differ from chip to chip: busy time, temperature, power and clocks " +
			"are from other files. It shares the machine's memory: what it uses is without the page cache."},
	{func(d *deviceReader, _ *reading) bool { return d.lacking },
		"The installed driver's library lacks functions for some of that: a newer driver may report more."},
}

// virtual matches the names of GPUs that a hypervisor divides, such as GRID T4-8Q and NVIDIA A40-16C.
var virtual = regexp.MustCompile(`^(GRID|NVIDIA) .*-[0-9]+(-[0-9]+)?[ABCQ](ME)?$`)

// features are the names of all features that a maker's GPUs may have, in the order of the table.
func features(m *maker) (names []string) {
	for _, p := range rows {
		if p.feature != "" && m.asks(p) && !slices.Contains(names, p.feature) {
			names = append(names, p.feature)
		}
	}
	return names
}

// supports reports whether the device supports a feature, after a reading, and since which driver it is there.
func (d *deviceReader) supports(feature string) (supported bool, since int) {
	since = math.MaxInt
	for i, p := range rows {
		if p.feature == feature && d.maker.asks(p) {
			supported, since = supported || !d.unsupported[i], min(since, p.since)
		}
	}
	zeros := []int{sampleRows.from, rateRows.from, memoryRows.from}
	if d.hollow && slices.ContainsFunc(zeros, func(i int) bool { return rows[i].feature == feature }) {
		return false, since
	}
	return supported, since
}

// isOlder reports whether a driver's version is before a major version.
func isOlder(version string, than int) bool {
	major, _, _ := strings.Cut(version, ".")
	number, err := strconv.Atoi(major)
	return err == nil && number < than
}

// Probe opens a session with the NVIDIA driver, makes each query of each GPU once, and ends the session. Its error is
// ErrNotBuilt, ErrNoDriver, ErrAsleep, the error of ctx if the driver does not respond in time (its calls are then
// abandoned), or the driver's own. A GPU that hangs is named in the result's Err. AMD's GPUs are in the result as well.
func Probe(ctx context.Context, o Options) (result ProbeResult, err error) {
	m := &machine{root: filepath.Join("/", o.Root)}
	var cards ProbeResult
	var missing error
	var listed sync.WaitGroup
	listed.Go(func() {
		if broken := sample.Protect(func() { cards, missing = probe(ctx, &amdgpu{root: m.root}, nil) }); broken != nil {
			missing = broken
		}
	})
	if err = ErrAsleep; !slices.ContainsFunc(m.mayRest(), isAsleep) {
		result, err = probe(ctx, newDriver(o.Library), m)
	}
	if listed.Wait(); !errors.Is(missing, errNoCard) {
		var problems sample.Problems
		problems.Add(result.Err)
		problems.Add(cards.Err)
		problems.Add(missing)
		result.Devices, result.Err = append(result.Devices, cards.Devices...), problems.Err()
	}
	return result, err
}

// probe reads each device of a driver once, as a run does.
func probe(ctx context.Context, d driver, m *machine) (result ProbeResult, err error) {
	if panicked := sample.Protect(func() {
		r := newRun(d, newGrid(0, nil, newMemoryInUse()), m)
		defer r.end(0)
		result, err = r.probe(ctx)
	}); panicked != nil {
		err = panicked
	}
	return result, err
}

func (r *run) probe(ctx context.Context) (ProbeResult, error) {
	r.openSession()
	r.awaitAll(ctx)
	switch {
	case r.session == 0 && r.driverCall.isUnderWay():
		return ProbeResult{}, r.maker.errSilent(ctx, "")
	case r.session == 0 && !errors.Is(r.why, errNoGPU):
		return ProbeResult{}, r.why
	}
	result := ProbeResult{Driver: r.version, NVML: r.library}
	var problems sample.Problems
	for i, s := range r.slots {
		err := s.err
		if s.call.isUnderWay() {
			err = r.maker.errSilent(ctx, "")
		}
		r.addOf(i, err, &problems)
	}
	for _, err := range r.twins() {
		problems.Add(err)
	}
	if isSessionEnded(r.why) {
		return ProbeResult{}, r.why
	}
	for _, g := range r.devices {
		if reader := g.device; g.rest != nil && g.rest.awaits(false, 0) {
			g.status = sample.GPUAsleep
		} else {
			g.call = r.begin(callTimeout, func() {
				reader.read(r.driver, request{wantRate: true, gauges: true, power: true, processes: true})
			}, func(bool) {}, func() {})
		}
	}
	r.awaitAll(ctx)
	slices.SortStableFunc(r.devices, func(a, b *deviceState) int { return a.info.Index - b.info.Index })
	for _, g := range r.devices {
		if g.status != sample.GPUAsleep && (g.call == nil || g.call.isUnderWay()) {
			r.addOf(g.info.Index, r.maker.errSilent(ctx, r.maker.nameOf(int(g.device.current.Load()))), &problems)
			continue
		}
		result.Devices = append(result.Devices, g.describe())
	}
	result.Err = problems.Err()
	if len(result.Devices) == 0 && ctx.Err() != nil && errors.Is(result.Err, ctx.Err()) {
		return ProbeResult{}, result.Err
	}
	return result, nil
}

// errSilent is the error of a call that did not return before ctx was done.
func (m *maker) errSilent(ctx context.Context, call string) error {
	if call != "" {
		call = " to " + call
	}
	return fmt.Errorf("%s did not respond in time%s%w; look for %s in the kernel log", m.driver, call,
		silently{ctx.Err()}, m.trace)
}

// describe says what a device answered to all queries.
func (g *deviceState) describe() Device {
	result := Device{ID: g.info.ID, Name: g.info.Name, Index: g.info.Index, Vendor: g.info.Vendor, Driver: g.info.Driver}
	if result.Asleep = g.status == sample.GPUAsleep; result.Asleep {
		return result
	}
	reader := g.device
	r, maker, version := &reader.last, reader.maker, g.info.Driver
	var newer []string
	for _, f := range features(maker) {
		supported, since := reader.supports(f)
		if supported {
			result.Supported = append(result.Supported, f)
			continue
		}
		result.Unsupported = append(result.Unsupported, f)
		if isOlder(version, since) {
			newer = append(newer, fmt.Sprintf("%s since %d", f, since))
		}
	}
	garbage := g.apply(r, 0)
	result.Busy = !g.lacksBusy()
	if len(newer) > 0 {
		result.Notes = append(result.Notes, "A newer NVIDIA driver may report "+strings.Join(newer, ", ")+".")
	}
	for _, c := range conditions {
		if c.is(reader, r) {
			result.Notes = append(result.Notes, c.means)
		}
	}
	unexplained := !result.Busy && !r.hollow && !r.silent && r.failed == nil && len(r.problems) == 0
	if garbage > 0 || unexplained {
		r.garbage = add(r.garbage, "utilization", 1)
	}
	if len(r.garbage) > 0 {
		result.Notes = append(result.Notes, fmt.Sprintf("Its driver answers with numbers that cannot be, which are dropped "+
			"(%s): look for %s in the kernel log, and install another driver.",
			strings.Join(slices.Sorted(maps.Keys(r.garbage)), ", "), maker.trace))
	}
	var problems sample.Problems
	problems.Add(r.failed)
	for _, err := range r.problems {
		problems.Add(err)
	}
	result.Err = problems.Err()
	return result
}

package gpu

import (
	"context"
	"errors"
	"fmt"
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
	{func(d *deviceReader, _ *reading) bool { return d.shared },
		"It shares the machine's memory: what it uses is that of its processes, without the page cache."},
	{func(d *deviceReader, _ *reading) bool { return d.parent() != "" },
		"NVIDIA reports no utilization of MIG devices: to divide a job's time, run it on a GPU without MIG."},
	{func(d *deviceReader, _ *reading) bool { return virtual.MatchString(d.name()) },
		"It is a virtual GPU: search for its Xid errors, power and temperature on its host."},
	{func(d *deviceReader, _ *reading) bool { return d.machine.isWSL() && d.unsupported[processRows.from] },
		"It is seen through /dev/dxg (WSL2), whose driver lists no processes: follow a program by its PID " +
			"(stallspan attach PID)."},
	{func(d *deviceReader, _ *reading) bool { return d.maker() == amd },
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
		if p.feature == feature && d.maker().asks(p) {
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
	listed := onThread(func() (err error) {
		cards, err = probe(ctx, &amdgpu{root: m.root}, nil)
		return err
	})
	if err = ErrAsleep; !slices.ContainsFunc(m.mayRest(), isAsleep) {
		result, err = probe(ctx, nvidiaDriver(o.Library), m)
	}
	if missing := <-listed; !errors.Is(missing, errNoCard) {
		var problems sample.Problems
		problems.Add(result.Err)
		problems.Add(cards.Err)
		problems.Add(missing)
		result.Devices, result.Err = append(result.Devices, cards.Devices...), problems.Err()
	}
	return result, err
}

func probe(ctx context.Context, d driver, m *machine) (ProbeResult, error) {
	var result ProbeResult
	var count int
	opened := onThread(func() (err error) {
		if err = d.open(); err == nil {
			result.Driver, result.NVML = d.versions()
			count, result.Err = d.count()
		}
		return err
	})
	if err := within(ctx, d.maker(), opened); errors.Is(err, errSilent) {
		onThread(func() error {
			if <-opened == nil {
				d.close()
			}
			return nil
		})
		return ProbeResult{}, err
	} else if err != nil {
		return ProbeResult{}, err
	}
	found := make([][]Device, min(count, maxDevices))
	errs := make([]chan error, len(found))
	var all sync.WaitGroup
	all.Add(len(errs))
	for i := range errs {
		errs[i] = onThread(func() error {
			defer all.Done()
			return probeAt(d, m, i, result.Driver, &found[i])
		})
	}
	closed := onThread(func() error { all.Wait(); d.close(); return nil })
	var problems sample.Problems
	problems.Add(result.Err)
	for i := range errs {
		err := within(ctx, d.maker(), errs[i])
		if errors.Is(err, errSilent) {
			found[i] = nil
		}
		for _, g := range found[i] {
			if slices.ContainsFunc(result.Devices, func(other Device) bool { return other.ID == g.ID }) {
				problems.Add(errTwin(d.maker(), g.ID))
				continue
			}
			result.Devices = append(result.Devices, g)
		}
		if err != nil {
			problems.Add(fmt.Errorf("GPU %d: %w", i, err))
		}
	}
	_ = within(ctx, d.maker(), closed)
	result.Err = problems.Err()
	if len(result.Devices) == 0 && errors.Is(result.Err, errSilent) {
		return ProbeResult{}, result.Err
	}
	return result, nil
}

var errSilent = errors.New("did not respond in time")

// within returns the error of a call, or errSilent and the error of ctx once that is done.
func within(ctx context.Context, m *maker, call chan error) error {
	select {
	case err := <-call:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-call: // both were ready
		return err
	default:
		return fmt.Errorf("%s %w: %w; look for %s in the kernel log", m.driver, errSilent, ctx.Err(), m.trace)
	}
}

// onThread makes calls of the driver, which may hang, on a goroutine of their own.
func onThread(job func() error) chan error {
	done := make(chan error, 1)
	go func() {
		var err error
		if panicked := sample.Protect(func() { err = job() }); panicked != nil {
			err = panicked
		}
		done <- err
	}()
	return done
}

// probeAt makes all queries of the GPU at an index and of its MIG devices.
func probeAt(d driver, m *machine, index int, version string, into *[]Device) error {
	devices, err := d.list(index)
	for _, device := range devices {
		*into = append(*into, probeDevice(d, device, version, m))
	}
	return err
}

// probeDevice makes all queries of a device.
func probeDevice(d driver, device device, version string, m *machine) Device {
	result := Device{ID: device.id(), Name: device.name(), Index: device.index(), Vendor: d.maker().vendor,
		Driver: version}
	if s, ok := device.(sleepsAlone); ok && s.sleeps().awaits(false, 0) {
		result.Asleep = true
		return result
	}
	reader := newDeviceReader(device)
	reader.machine = m
	r := reader.read(d, request{wantRate: true, gauges: true, power: true, processes: true})
	var newer []string
	for _, f := range features(d.maker()) {
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
	var state deviceState
	state.apply(r, 0)
	result.Busy = !state.lacksBusy()
	if len(newer) > 0 {
		result.Notes = append(result.Notes, "A newer NVIDIA driver may report "+strings.Join(newer, ", ")+".")
	}
	for _, c := range conditions {
		if c.is(reader, r) {
			result.Notes = append(result.Notes, c.means)
		}
	}
	if !result.Busy && !r.hollow && !r.silent && len(r.problems) == 0 {
		result.Notes = append(result.Notes, "Its driver answers with numbers that cannot be: its busy time is not usable; "+
			"search the kernel's log for NVRM and Xid, and install another driver.")
	}
	var problems sample.Problems
	problems.Add(r.failed)
	for _, err := range r.problems {
		problems.Add(err)
	}
	result.Err = problems.Err()
	return result
}

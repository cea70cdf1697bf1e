package gpu

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"

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
	Index       int // GPU index of nvidia-smi
	Supported   []string
	Unsupported []string
	Busy        bool     // its busy time is known
	Notes       []string // what its answers mean, and what to do, one sentence each
	Err         error    // which supported queries failed, in one line, or nil
}

// feature is a group of queries with a name for users.
type feature struct {
	name    string
	queries []query              // any of them provides the feature
	fields  []sample.GPUQuantity // or a field value of any of them
}

const (
	utilization        = "utilization"
	utilizationSamples = "utilization samples"
)

var features = []feature{
	{utilizationSamples, []query{querySamples}, nil},
	{utilization, []query{queryRates}, nil},
	{"memory", []query{queryMemory}, nil},
	{"temperature", []query{queryTemperature}, nil},
	{"power", []query{queryPower}, nil},
	{"energy", []query{queryEnergy}, []sample.GPUQuantity{energyCounter}},
	{"PCIe link", []query{queryLink}, nil},
	{"PCIe link limits", []query{queryMaxLink}, nil},
	{"processes", []query{queryProcesses}, nil},
	{"encoder and decoder", []query{queryEncoder, queryDecoder}, nil},
	{"GPM", []query{queryGPM}, nil},
	{"PCIe counters", nil, []sample.GPUQuantity{sample.GPUPCIeReceived, sample.GPUPCIeSent}},
	{"NVLink counters", nil, []sample.GPUQuantity{sample.GPUNVLinkReceived, sample.GPUNVLinkSent}},
	{"memory temperature", nil, []sample.GPUQuantity{sample.GPUTemperatureMemory}},
	{"temperature limits", []query{querySlowdown, queryShutdown, queryMemorySlowdown}, nil},
	{"clocks", []query{queryClockSM, queryClockMemory, queryClockGraphics, queryClockVideo}, nil},
	{"throttle time", []query{queryViolationPower, queryViolationThermal, queryReasons},
		[]sample.GPUQuantity{sample.GPUThrottledPower, sample.GPUThrottledThermal}},
	{"power limit", []query{queryPowerLimit}, nil},
	{"fan", []query{queryFan}, nil},
	{"ECC errors", []query{queryCorrected, queryUncorrected}, nil},
	{"PCIe replays", []query{queryReplays}, nil},
	{"row remapping", []query{queryRemappedRows}, nil},
	{"retired pages", []query{queryRetiredPages}, nil},
	{"XID events", []query{queryXIDs}, nil},
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
	{func(d *deviceReader, _ *reading) bool { return d.machine.isWSL() && d.unsupported[queryProcesses] },
		"It is seen through /dev/dxg (WSL2), whose driver lists no processes: follow a program by its PID " +
			"(stallspan attach PID)."},
	{func(d *deviceReader, _ *reading) bool { return d.lacking },
		"The installed driver's library lacks functions for some of that: a newer driver may report more."},
}

// virtual matches the names of GPUs that a hypervisor divides, such as GRID T4-8Q and NVIDIA A40-16C.
var virtual = regexp.MustCompile(`^(GRID|NVIDIA) .*-[0-9]+(-[0-9]+)?[ABCQ](ME)?$`)

// supports reports whether the device supports a feature, after a reading.
func (d *deviceReader) supports(f feature) bool {
	if d.hollow && (f.name == utilization || f.name == utilizationSamples || f.name == "memory") {
		return false
	}
	return slices.ContainsFunc(f.queries, func(q query) bool { return !d.unsupported[q] }) ||
		slices.ContainsFunc(f.fields, d.batch.provides)
}

// Probe opens a session with the driver, makes each query of each GPU once, and ends the session. Its error is
// ErrNotBuilt, ErrNoDriver, the error of ctx if the driver does not respond in time (its thread is then abandoned), or
// the driver's own.
func Probe(ctx context.Context, o Options) (ProbeResult, error) {
	d, err := newDriver(o.Library)
	if err != nil {
		return ProbeResult{}, err
	}
	return probe(ctx, d, &machine{root: filepath.Join("/", o.Root)})
}

func probe(ctx context.Context, d driver, m *machine) (result ProbeResult, err error) {
	type outcome struct {
		result ProbeResult
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
		var o outcome
		if err := sample.Protect(func() { o.result, o.err = probeDevices(d, m) }); err != nil {
			o.err = err
		}
		done <- o
	}()
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
		return result, fmt.Errorf("the NVIDIA driver did not respond in time: %w; look for Xid in the kernel log", ctx.Err())
	}
}

func probeDevices(d driver, m *machine) (result ProbeResult, err error) {
	if err := d.open(); err != nil {
		return result, err
	}
	defer d.close()
	result.Driver, result.NVML = d.versions()
	count, err := d.count()
	var problems sample.Problems
	problems.Add(err)
	for i := range min(count, maxDevices) {
		devices, err := d.list(i)
		if err != nil {
			problems.Add(fmt.Errorf("GPU %d: %w", i, err))
		}
		for _, device := range devices {
			result.Devices = append(result.Devices, probeDevice(d, device, m))
		}
	}
	result.Err = problems.Err()
	return result, nil
}

// probeDevice makes all queries of a device.
func probeDevice(d driver, device device, m *machine) Device {
	reader := newDeviceReader(device)
	reader.machine = m
	r := reader.read(d, request{wantRate: true, gauges: true, power: true, processes: true})
	result := Device{ID: device.id(), Name: device.name(), Index: device.index()}
	for _, f := range features {
		if reader.supports(f) {
			result.Supported = append(result.Supported, f.name)
		} else {
			result.Unsupported = append(result.Unsupported, f.name)
		}
	}
	result.Busy = !r.hollow && (reader.supports(features[0]) || reader.supports(features[1]) || r.hasRate)
	for _, c := range conditions {
		if c.is(reader, r) {
			result.Notes = append(result.Notes, c.means)
		}
	}
	var problems sample.Problems
	problems.Add(r.failed)
	for _, err := range r.problems {
		problems.Add(err)
	}
	result.Err = problems.Err()
	return result
}

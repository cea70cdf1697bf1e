package gpu

import (
	"context"
	"fmt"
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
	Err         error // which supported queries failed, in one line, or nil
}

// feature is a group of queries with a name for users.
type feature struct {
	name    string
	queries []query              // any of them provides the feature
	fields  []sample.GPUQuantity // or a field value of any of them
}

var features = []feature{
	{"utilization samples", []query{querySamples}, nil},
	{"utilization", []query{queryRates}, nil},
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

// supports reports whether the device supports a feature, after a reading.
func (d *deviceReader) supports(f feature) bool {
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
	return probe(ctx, d)
}

func probe(ctx context.Context, d driver) (result ProbeResult, err error) {
	type outcome struct {
		result ProbeResult
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
		var o outcome
		if err := sample.Protect(func() { o.result, o.err = probeDevices(d) }); err != nil {
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

func probeDevices(d driver) (result ProbeResult, err error) {
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
			result.Devices = append(result.Devices, probeDevice(d, device))
		}
	}
	result.Err = problems.Err()
	return result, nil
}

// probeDevice makes all queries of a device.
func probeDevice(d driver, device device) Device {
	reader := newDeviceReader(device)
	r := reader.read(d, request{wantRate: true, gauges: true, power: true, processes: true})
	result := Device{ID: device.id(), Name: device.name(), Index: device.index()}
	for _, f := range features {
		if reader.supports(f) {
			result.Supported = append(result.Supported, f.name)
		} else {
			result.Unsupported = append(result.Unsupported, f.name)
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

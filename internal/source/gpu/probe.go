package gpu

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/stallspan/stallspan/internal/sample"
)

// Found is what the driver tells of this machine.
type ProbeResult struct {
	Driver  string // its version
	NVML    string // its library's version
	Devices []Device
	Err     error // why some GPU is not among them, in one line, or nil
}

// Device is a GPU or MIG slice, and what it can be asked for.
type Device struct {
	ID          string // "GPU-<uuid>", "MIG-<uuid>"
	Name        string
	Index       int // as nvidia-smi counts the whole GPUs
	Supported   []string
	Unsupported []string
	Err         error // what it did not answer although it can, in one line, or nil
}

// topic is what people call something that a GPU is asked for.
type feature struct {
	word       string
	numQueries []query              // any of which tells it
	fields     []sample.GPUQuantity // any of which tells it, where it comes from a field
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

// answers says whether the device answers any of a topic's questions, as far as it was asked.
func (a *deviceReader) queryCalls(t feature) bool {
	return slices.ContainsFunc(t.numQueries, func(q query) bool { return !a.unsupported[q] }) ||
		slices.ContainsFunc(t.fields, a.batch.provides)
}

// Probe begins a session with the driver, asks each GPU for everything once, and ends the session. The error is
// ErrNotBuilt, ErrNoDriver, ctx's own where the driver does not answer in time (its thread then stays behind), or says
// why the driver refused. Without a GPU it is nil and there are no devices.
func Probe(ctx context.Context, o Options) (ProbeResult, error) {
	d, err := newDriver(o.Library)
	if err != nil {
		return ProbeResult{}, err
	}
	return probe(ctx, d)
}

func probe(ctx context.Context, d driver) (ProbeResult, error) {
	type answer struct {
		found ProbeResult
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		found, err := probeDevices(d)
		done <- answer{found, err}
	}()
	select {
	case a := <-done:
		return a.found, a.err
	case <-ctx.Done():
		return ProbeResult{}, fmt.Errorf("the NVIDIA driver did not answer in time: %w; look for Xid in the kernel's log", ctx.Err())
	}
}

func probeDevices(d driver) (ProbeResult, error) {
	if err := d.open(); err != nil {
		return ProbeResult{}, err
	}
	defer d.close()
	var found ProbeResult
	found.Driver, found.NVML = d.versions()
	devices, err := d.devices()
	found.Err = err
	for _, device := range devices {
		found.Devices = append(found.Devices, meet(d, device))
	}
	return found, nil
}

// meet asks a device for everything.
func meet(d driver, device device) Device {
	a := newDeviceReader(device)
	r := a.read(d, request{wantRate: true, gauges: true, power: true, processes: true})
	initialized := Device{ID: device.id(), Name: device.name(), Index: device.index()}
	for _, t := range features {
		if a.queryCalls(t) {
			initialized.Supported = append(initialized.Supported, t.word)
		} else {
			initialized.Unsupported = append(initialized.Unsupported, t.word)
		}
	}
	var problems sample.Problems
	problems.Add(r.failed)
	for _, err := range r.problems {
		problems.Add(err)
	}
	initialized.Err = problems.Err()
	return initialized
}

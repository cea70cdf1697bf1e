package gpu

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/stallspan/stallspan/internal/sample"
)

// Found is what the driver tells of this machine.
type Found struct {
	Driver  string // its version
	NVML    string // its library's version
	Devices []Device
	Err     error // why some GPU is not among them, in one line, or nil
}

// Device is a GPU or MIG slice, and what it can be asked for.
type Device struct {
	ID      string // "GPU-<uuid>", "MIG-<uuid>"
	Name    string
	Index   int // as nvidia-smi counts the whole GPUs
	Answers []string
	Lacks   []string
	Err     error // what it did not answer although it can, in one line, or nil
}

// topic is what people call something that a GPU is asked for.
type topic struct {
	word      string
	questions []question           // any of which tells it
	fields    []sample.GPUQuantity // any of which tells it, where it comes from a field
}

var topics = []topic{
	{"utilization samples", []question{askSamples}, nil},
	{"utilization", []question{askRate}, nil},
	{"memory", []question{askMemory}, nil},
	{"temperature", []question{askTemperature}, nil},
	{"power", []question{askPower}, nil},
	{"energy", []question{askEnergy}, []sample.GPUQuantity{energyCounter}},
	{"PCIe link", []question{askLink}, nil},
	{"PCIe link limits", []question{askLinkMax}, nil},
	{"processes", []question{askProcesses}, nil},
	{"encoder and decoder", []question{askEncoder, askDecoder}, nil},
	{"GPM", []question{askGPM}, nil},
	{"PCIe counters", nil, []sample.GPUQuantity{sample.GPUPCIeReceived, sample.GPUPCIeSent}},
	{"NVLink counters", nil, []sample.GPUQuantity{sample.GPUNVLinkReceived, sample.GPUNVLinkSent}},
	{"memory temperature", nil, []sample.GPUQuantity{sample.GPUTemperatureMemory}},
	{"temperature limits", []question{askSlowdown, askShutdown, askMemorySlowdown}, nil},
	{"clocks", []question{askClockSM, askClockMemory, askClockGraphics, askClockVideo}, nil},
	{"throttle time", []question{askViolationPower, askViolationThermal, askReasons},
		[]sample.GPUQuantity{sample.GPUThrottledPower, sample.GPUThrottledThermal}},
	{"power limit", []question{askPowerLimit}, nil},
	{"fan", []question{askFan}, nil},
	{"ECC errors", []question{askCorrected, askUncorrected}, nil},
	{"PCIe replays", []question{askReplays}, nil},
	{"row remapping", []question{askRows}, nil},
	{"retired pages", []question{askPages}, nil},
	{"XID events", []question{askXIDs}, nil},
}

// answers says whether the device answers any of a topic's questions, as far as it was asked.
func (a *asked) answers(t topic) bool {
	return slices.ContainsFunc(t.questions, func(q question) bool { return !a.lacks[q] }) ||
		slices.ContainsFunc(t.fields, a.batch.tells)
}

// Probe begins a session with the driver, asks each GPU for everything once, and ends the session. The error is
// ErrNotBuilt, ErrNoDriver, ctx's own where the driver does not answer in time (its thread then stays behind), or says
// why the driver refused. Without a GPU it is nil and there are no devices.
func Probe(ctx context.Context, o Options) (Found, error) {
	d, err := newDriver(o.Library)
	if err != nil {
		return Found{}, err
	}
	return probe(ctx, d)
}

func probe(ctx context.Context, d driver) (Found, error) {
	type answer struct {
		found Found
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		found, err := ask(d)
		done <- answer{found, err}
	}()
	select {
	case a := <-done:
		return a.found, a.err
	case <-ctx.Done():
		return Found{}, fmt.Errorf("the NVIDIA driver did not answer in time: %w; look for Xid in the kernel's log", ctx.Err())
	}
}

func ask(d driver) (Found, error) {
	if err := d.open(); err != nil {
		return Found{}, err
	}
	defer d.close()
	var found Found
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
	a := newAsked(device)
	r := a.read(d, wants{noBuffer: true, gauges: true, power: true, processes: true})
	met := Device{ID: device.id(), Name: device.name(), Index: device.index()}
	for _, t := range topics {
		if a.answers(t) {
			met.Answers = append(met.Answers, t.word)
		} else {
			met.Lacks = append(met.Lacks, t.word)
		}
	}
	var problems sample.Problems
	problems.Add(r.failed)
	for _, err := range r.problems {
		problems.Add(err)
	}
	met.Err = problems.Err()
	return met
}

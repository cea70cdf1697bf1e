package gpu

import (
	"context"
	"fmt"
	"runtime"

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

// questionWords are the names of what a GPU is asked for, as people call it.
var questionWords = [questions]string{"utilization samples", "utilization", "memory", "temperature", "power", "energy",
	"PCIe link", "PCIe link limits", "processes"}

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
	a := &asked{device: device}
	r := a.read(d, wants{noBuffer: true, gauges: true, processes: true})
	if len(r.points) > 0 { // then it was not asked for the rate alone
		a.ask(askRate, r, func() error { _, err := device.rate(); return err })
	}
	met := Device{ID: device.id(), Name: device.name(), Index: device.index()}
	for q := range questions {
		if a.lacks[q] {
			met.Lacks = append(met.Lacks, questionWords[q])
		} else {
			met.Answers = append(met.Answers, questionWords[q])
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

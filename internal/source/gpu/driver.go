package gpu

import (
	"fmt"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// driver is what is asked of NVML as a whole. Its errors are a code, or wrap ErrNoDriver or a code. All but clocks may
// block for ever, so they are called by a worker alone.
type driver interface {
	open() error // loads the library and begins a session
	close()      // ends the session, where there is one
	versions() (driver, library string)
	count() (int, error) // whole GPUs, those included that cannot be reached, and MIG slices
	// devices gives those that can be reached, MIG slices too. The error is about those that cannot, and comes beside
	// the others.
	devices() ([]device, error)
	events() ([]xidEvent, error) // new ones of the GPUs that are watched; it does not wait for any
	clocks() clocks
	stats() driverStats // may be called at any time, by anybody
}

// use is what the driver's functions were used for since the driver value was made. Fields are parts of the calls of
// nvmlDeviceGetFieldValues, with the latency that the driver tells of each.
type driverStats struct {
	calls, fields []sample.DriverCall
	sessions      uint64
}

// event is an XID error.
type xidEvent struct {
	gpu string
	xid int
}

// device is one GPU or MIG slice. What it or the installed library does not have answers codeNotSupported or
// codeFunctionNotFound.
type device interface {
	id() string     // its UUID
	name() string   // its product name
	index() int     // of the whole GPU
	parent() string // of a MIG slice, the UUID of the whole GPU

	samples(since uint64) ([]utilSample, error)              // the driver's buffer of utilisation, after a timestamp of its own
	utilizationRates() (busy, controller float64, err error) // of GPU and memory controller over the driver's last period, percent
	memory() (memory, error)
	temperature() (float64, error) // degrees Celsius
	power() (float64, error)       // watts
	energy() (float64, error)      // joules
	pcieLink() (width, generation int, err error)
	maxPCIeLink() (width, generation int, err error)
	processes() ([]sample.GPUProcess, error) // without the GPU's id

	query(q query, into *sample.GPUValues) error // what plans says that the question tells
	fields(list []field) error                   // fills in the answers; the error is about all of them
	gpmSample() error                            // reads the performance counters, and keeps the reading before
	gpmMetrics(list []metric) error              // fills in what they say of the time between the two newest readings
	clockEventReasons() (uint64, error)          // why clocks are lowered, as bits
	registerEvents() error                       // has the driver tell the device's XID errors as events
}

// memory is in bytes.
type memory struct {
	used, total, reserved uint64
	hasReserved           bool
}

// point is one entry of the driver's buffer.
type utilSample struct {
	timestamp uint64  // microseconds on a clock that the driver chooses
	value     float64 // percent, or garbage
}

// code is an nvmlReturn_t (nvml.h).
type code uint32

const (
	codeUninitialized    code = 1
	codeInvalidArgument  code = 2
	codeNotSupported     code = 3
	codeNoPermission     code = 4
	codeNotFound         code = 6
	codeInsufficientSize code = 7
	codeTimeout          code = 10
	codeDriverNotLoaded  code = 9
	codeFunctionNotFound code = 13
	codeLost             code = 15
	codeResetRequired    code = 16
	codeMismatch         code = 18
)

// words say what happened and what to do about it.
var words = map[code]string{
	codeUninitialized:    "the session with the NVIDIA driver has ended: it was unloaded or restarted",
	codeInvalidArgument:  "not known to the installed NVIDIA driver",
	codeNotSupported:     "not supported by this GPU",
	codeNoPermission:     "no permission: let this user open /dev/nvidia* and /dev/nvidiactl",
	codeNotFound:         "nothing there to tell",
	codeDriverNotLoaded:  "the NVIDIA driver is not loaded: `modprobe nvidia`, or give the container access to the GPU",
	codeFunctionNotFound: "not in the installed NVIDIA driver",
	codeLost:             "the GPU is lost: look for NVRM and Xid in the kernel's log, then reset it or restart the machine",
	codeResetRequired:    "the GPU needs a reset: `nvidia-smi --gpu-reset`",
	codeMismatch: "the NVIDIA driver's library and kernel module have different versions: restart this program, and the " +
		"machine if that does not help",
}

func (c code) Error() string {
	if text, ok := words[c]; ok {
		return text
	}
	return fmt.Sprintf("NVML error %d: `nvidia-smi` may say more", uint32(c))
}

// clocks is one moment on every clock that a driver may put on its samples.
type clocks struct {
	at        sample.Stamp
	monotonic time.Duration // CLOCK_MONOTONIC
	boot      time.Duration // CLOCK_BOOTTIME, which goes on while the machine is suspended
}

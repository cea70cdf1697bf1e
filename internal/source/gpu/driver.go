package gpu

import (
	"cmp"
	"fmt"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// driver is NVML as a whole, or amdgpu. Its errors are a code, or wrap ErrNoDriver or a code. All methods except clocks
// and stats may block forever, so each call is made by run.begin.
type driver interface {
	maker() *maker
	open() error // loads the library and opens a session
	close()      // ends the session, if there is one
	versions() (driver, library string)
	count() (int, error) // GPUs, including those that cannot be accessed
	// list returns the GPU at an index and its MIG devices. The error is about those that cannot be accessed.
	list(index int) ([]device, error)
	events() ([]xidEvent, error) // new XID errors of the registered GPUs, without waiting
	clocks() clocks
	stats() driverStats // may be called from any goroutine
}

// driverStats are the calls since the driver value was created. Fields are the values of nvmlDeviceGetFieldValues, with
// the latency that the driver reports for each.
type driverStats struct {
	calls, fields []sample.DriverCall
	sessions      uint64
}

// xidEvent is an XID error.
type xidEvent struct {
	gpu string
	xid int
}

// device is one GPU or MIG device. Calls that it or the installed library does not support return codeNotSupported or
// codeFunctionNotFound.
type device interface {
	about() *identity

	samples(since uint64) ([]utilSample, error) // utilization samples after a timestamp of the driver
	processes() ([]sample.GPUProcess, error)    // without the GPU's ID
	// read calls the function of rows, and sets their numbers. The error is about all of them. That of one number is
	// codeNotFound where the driver has none at the moment. Without rows it only takes a sample of GPM.
	read(call string, list []answer) error
}

// identity says which device it is. It does not change.
type identity struct {
	id     string // its UUID
	name   string // of the product
	index  int    // of the GPU
	parent string // of a MIG device, the UUID of its GPU
	maker  *maker
}

func (i *identity) about() *identity { return i }

// utilSample is a sample of the driver's utilization buffer.
type utilSample struct {
	timestamp uint64  // microseconds on the driver's clock
	value     float64 // percent, or garbage
	kind      sampleKind
}

// sampleKind is what a sample says of the time since the one before.
type sampleKind uint8

const (
	sampled  sampleKind = iota // the mean of a period that the driver chooses
	summed                     // the mean of all of it
	averaged                   // that of a part of it
)

// maker is what differs between the makers of GPUs.
type maker struct {
	vendor   string            // sample.GPU.Vendor
	driver   string            // in messages
	trace    string            // what its driver writes into the kernel's log
	listedBy string            // what shows its GPUs
	lost     error             // of a GPU that is not listed any more
	reasons  uint64            // of throttleReasons, that it may give
	calls    map[string]string // names of shared calls, where they differ
}

var nvidia = &maker{driver: "the NVIDIA driver", trace: "Xid", listedBy: "nvidia-smi -L", lost: codeLost,
	reasons: anyReason}

// asks reports whether a row is one of this maker's.
func (m *maker) asks(p row) bool { return p.traits&onBoth != 0 || (p.traits&onAMD != 0) == (m == amd) }

// nameOf returns the name of the call for a row.
func (m *maker) nameOf(i int) string { return cmp.Or(m.calls[rows[i].call], rows[i].call) }

// lister is a driver that lists the processes of all its devices at once.
type lister interface{ users() []sample.GPUProcess }

// sleepsAlone is a device that is left alone while it sleeps. Of other drivers all devices are.
type sleepsAlone interface{ sleeps() *rest }

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

// messages say what happened and what to do about it.
var messages = map[code]string{
	codeUninitialized:    "the session with the NVIDIA driver has ended: it was unloaded or restarted",
	codeInvalidArgument:  "not known to the installed NVIDIA driver",
	codeNotSupported:     "not supported by this GPU",
	codeNoPermission:     "no permission: let this user open /dev/nvidia* and /dev/nvidiactl",
	codeNotFound:         "no data",
	codeDriverNotLoaded:  "the NVIDIA driver is not loaded: `modprobe nvidia`, or give the container access to the GPU",
	codeFunctionNotFound: "not in the installed NVIDIA driver",
	codeLost:             "the GPU is lost: look for NVRM and Xid in the kernel log, then reset it or restart the machine",
	codeResetRequired:    "the GPU needs a reset: `nvidia-smi --gpu-reset`",
	codeMismatch: "the NVIDIA driver's library and kernel module have different versions: restart this program, and the " +
		"machine if that does not help",
}

func (c code) Error() string {
	if text, ok := messages[c]; ok {
		return text
	}
	return fmt.Sprintf("NVML error %d: `nvidia-smi` may show more", uint32(c))
}

// clocks is one moment on each clock that a driver may use for timestamps.
type clocks struct {
	at        sample.Stamp
	monotonic time.Duration // CLOCK_MONOTONIC
	boot      time.Duration // CLOCK_BOOTTIME, which includes the time of suspension
}

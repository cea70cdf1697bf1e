//go:build linux && cgo

package gpu

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
)

const usualLibrary = "libnvidia-ml.so.1"

// essential are the functions without which nothing is asked, each in the versions that go-nvml knows.
var essential = [][]string{
	{"nvmlInit_v2", "nvmlInit"},
	{"nvmlShutdown"},
	{"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"},
	{"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"},
	{"nvmlDeviceGetUUID"},
}

// library is libnvidia-ml.so.1 through go-nvml. Calling a function that the installed one lacks ends the process, so
// every name is looked up first.
type library struct {
	nvml.Interface
	path   string
	handle *dl.DynamicLibrary // nil until it could be loaded; for looking up names

	mu    sync.Mutex
	names map[string]bool // those that were looked up
}

// loaded is process-wide as NVML itself is: go-nvml keeps the functions that it found in variables of its package and
// writes them whenever a library is loaded, so sources of one path share its library, and sessions begin and end one at
// a time.
var loaded = struct {
	sync.Mutex
	byPath map[string]nvml.Interface
}{byPath: map[string]nvml.Interface{}}

func newDriver(path string) (driver, error) {
	if path == "" {
		path = usualLibrary
	}
	loaded.Lock()
	defer loaded.Unlock()
	shared, ok := loaded.byPath[path]
	if !ok {
		shared = nvml.New(nvml.WithLibraryPath(path))
		loaded.byPath[path] = shared
	}
	return &library{Interface: shared, path: path, names: map[string]bool{}}, nil
}

func (l *library) open() error {
	if err := l.load(); err != nil {
		return err
	}
	for _, names := range essential {
		if !l.has(names...) {
			return fmt.Errorf("%s has no %s: it is not NVIDIA's, install the driver again", l.path, names[0])
		}
	}
	loaded.Lock()
	defer loaded.Unlock()
	return failure(l.Init())
}

func (l *library) load() error {
	if l.handle != nil {
		return nil
	}
	handle := dl.New(l.path, dl.RTLD_LAZY|dl.RTLD_GLOBAL)
	switch err := handle.Open(); {
	case err == nil:
		l.handle = handle
		return nil
	case strings.Contains(err.Error(), "No such file"):
		return fmt.Errorf("%w (%s)", ErrNoDriver, l.path)
	default:
		return fmt.Errorf("the NVIDIA driver's library cannot be loaded, install the driver again: %w", err)
	}
}

// has says whether the library has one of these functions.
func (l *library) has(names ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		there, known := l.names[name]
		if !known {
			there = l.handle.Lookup(name) == nil
			l.names[name] = there
		}
		if there {
			return true
		}
	}
	return false
}

func (l *library) close() {
	loaded.Lock()
	defer loaded.Unlock()
	_ = l.Shutdown()
}

func (l *library) versions() (driver, version string) {
	if l.has("nvmlSystemGetDriverVersion") {
		driver, _ = l.SystemGetDriverVersion()
	}
	if l.has("nvmlSystemGetNVMLVersion") {
		version, _ = l.SystemGetNVMLVersion()
	}
	return driver, version
}

func (l *library) count() (int, error) {
	n, ret := l.DeviceGetCount()
	return n, failure(ret)
}

func (l *library) devices() ([]device, error) {
	count, err := l.count()
	if err != nil {
		return nil, err
	}
	var found []device
	var problems sample.Problems
	for i := range min(count, mostCards) {
		whole, ret := l.DeviceGetHandleByIndex(i)
		if err := failure(ret); err != nil {
			if isEnded(err) {
				return nil, err
			}
			problems.Add(fmt.Errorf("GPU %d: %w", i, err))
			continue
		}
		for _, handle := range append([]nvml.Device{whole}, l.slices(whole)...) {
			d, err := l.device(handle, i)
			if err != nil {
				problems.Add(fmt.Errorf("GPU %d: %w", i, err))
				continue
			}
			found = append(found, d)
		}
	}
	return found, problems.Err()
}

// slices are the MIG devices that a GPU is cut into.
func (l *library) slices(whole nvml.Device) []nvml.Device {
	if !l.has("nvmlDeviceGetMigMode") || !l.has("nvmlDeviceGetMaxMigDeviceCount") || !l.has("nvmlDeviceGetMigDeviceHandleByIndex") {
		return nil
	}
	if mode, _, ret := whole.GetMigMode(); ret != nvml.SUCCESS || mode != nvml.DEVICE_MIG_ENABLE {
		return nil
	}
	most, ret := whole.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		return nil
	}
	var found []nvml.Device
	for i := range min(most, mostCards) {
		if slice, ret := whole.GetMigDeviceHandleByIndex(i); ret == nvml.SUCCESS {
			found = append(found, slice)
		}
	}
	return found
}

// clocks reads them right after one another, again where this thread was interrupted in between.
func (l *library) clocks() clocks {
	var c clocks
	for range 3 {
		c.at = sample.Now()
		c.monotonic, c.boot = clock(unix.CLOCK_MONOTONIC), clock(unix.CLOCK_BOOTTIME)
		if sample.Now().Mono-c.at.Mono < 20*time.Microsecond {
			break
		}
	}
	return c
}

func clock(id int32) time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(id, &t) // fails for unknown clocks alone
	return time.Duration(t.Nano())
}

// failure is nil for success.
func failure(ret nvml.Return) error {
	if ret == nvml.SUCCESS {
		return nil
	}
	return code(ret)
}

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

const defaultLibrary = "libnvidia-ml.so.1"

// essential are the functions without which nothing is asked.
var requiredFunctions = []function{fnInit, fnShutdown, fnCount, fnHandle, fnUUID}

// library is libnvidia-ml.so.1 through go-nvml. Calling a function that the installed one lacks ends the process, so
// every name is looked up first.
type library struct {
	nvml.Interface
	path   string
	lookup func(name string) error // nil until the library could be loaded

	calls, latencies meter

	mu       sync.Mutex // a call that was abandoned may return while others are made
	found    [numFunctions]found
	sessions uint64
	begun    bool // a session, which has not been ended
	session  session
}

// session is what has to be given back before the session with the driver ends.
type session struct {
	samples []nvml.GpmSample
	events  nvml.EventSet // nil until a GPU is watched
	watched []watched
}

// loaded is process-wide as NVML itself is: go-nvml keeps the functions that it found in variables of its package, so
// sources of one path share its library. Its lock is never held during a call of the driver's.
var loaded = struct {
	sync.Mutex
	byPath map[string]nvml.Interface
}{byPath: map[string]nvml.Interface{}}

// changing lets sessions begin and end one at a time, for go-nvml writes those variables whenever a library is loaded.
// Such a call may hang for ever, so it is only locked where a thread that waits can be abandoned: by open and close.
var sessionLock sync.Mutex

func newDriver(path string) (driver, error) {
	if path == "" {
		path = defaultLibrary
	}
	loaded.Lock()
	defer loaded.Unlock()
	shared, ok := loaded.byPath[path]
	if !ok {
		shared = nvml.New(nvml.WithLibraryPath(path))
		loaded.byPath[path] = shared
	}
	return &library{Interface: shared, path: path}, nil
}

func (l *library) open() error {
	if err := l.load(); err != nil {
		return err
	}
	for _, f := range requiredFunctions {
		if !l.has(f) {
			return fmt.Errorf("%s has no %s: it is not NVIDIA's, install the driver again", l.path, functionNames[f][0])
		}
	}
	sessionLock.Lock()
	defer sessionLock.Unlock()
	err := l.call(fnInit, l.Init)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.sessions++
		l.begun = true
		l.session = session{} // that of one which the driver ended is gone with it
	}
	return err
}

func (l *library) load() error {
	if l.lookup != nil {
		return nil
	}
	handle := dl.New(l.path, dl.RTLD_LAZY|dl.RTLD_GLOBAL)
	switch err := handle.Open(); {
	case err == nil:
		l.lookup = handle.Lookup
		return nil
	case strings.Contains(err.Error(), "No such file"):
		return fmt.Errorf("%w (%s)", ErrNoDriver, l.path)
	default:
		return fmt.Errorf("the NVIDIA driver's library cannot be loaded, install the driver again: %w", err)
	}
}

func (l *library) close() {
	l.mu.Lock()
	begun, ending := l.begun, l.session
	l.begun, l.session = false, session{}
	l.mu.Unlock()
	if !begun {
		return
	}
	for _, s := range ending.samples {
		_ = l.call(fnGPMFree, s.Free)
	}
	if ending.events != nil {
		_ = l.call(fnEventFree, ending.events.Free)
	}
	sessionLock.Lock()
	defer sessionLock.Unlock()
	_ = l.call(fnShutdown, l.Shutdown)
}

func (l *library) stats() driverStats {
	l.mu.Lock()
	sessions := l.sessions
	l.mu.Unlock()
	return driverStats{calls: l.calls.sums(), fields: l.latencies.sums(), sessions: sessions}
}

func (l *library) versions() (driver, version string) {
	driver, _ = get(l, fnDriverVersion, l.SystemGetDriverVersion)
	version, _ = get(l, fnLibraryVersion, l.SystemGetNVMLVersion)
	return driver, version
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
func errorOf(ret nvml.Return) error {
	if ret == nvml.SUCCESS {
		return nil
	}
	return code(ret)
}

//go:build linux && cgo

package gpu

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/trust"
)

const (
	defaultLibrary = "libnvidia-ml.so.1"
	wslLibrary     = "/usr/lib/wsl/lib/libnvidia-ml.so.1" // of WSL2, whose loader may not know the folder
)

// requiredFunctions are the functions without which the library is not used.
var requiredFunctions = []string{
	"nvmlInit", "nvmlShutdown", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID",
}

// library is libnvidia-ml.so.1 through go-nvml. To call a function that the installed library lacks would end the
// process, so every symbol is looked up first.
type library struct {
	nvml.Interface
	path    string
	refused error                   // why it is never loaded
	lookup  func(name string) error // nil until the library is loaded

	calls, latencies meter

	mu       sync.Mutex        // an abandoned call may return while others are made
	found    map[string]string // symbols in the library by function; "" for one that it lacks
	sessions uint64
	begun    int // sessions that were not ended: NVML counts them, and closes its files with the last one
	session  session
}

// session is what is freed before the session with the driver ends.
type session struct {
	samples []nvml.GpmSample
	events  nvml.EventSet          // nil until a GPU is registered
	uuids   map[nvml.Device]string // of listed GPUs; one that is lost does not give its own
}

// loaded is process-wide, as NVML is: go-nvml keeps the functions that it found in package variables, so sources with
// the same path share a library. Its lock is not held during calls of the driver.
var loaded = struct {
	sync.Mutex
	byPath map[string]nvml.Interface
}{byPath: map[string]nvml.Interface{}}

// sessionLock lets one session at a time begin or end, because go-nvml writes its package variables when it loads a
// library. Such a call may hang forever. So only open and close take the lock, whose threads can be abandoned.
var sessionLock sync.Mutex

// newDriver returns the driver that a library belongs to.
func newDriver(path string) driver {
	if path == "" {
		path = defaultLibrary // the loader's own folders
		if _, err := os.Stat(wslLibrary); err == nil {
			path = wslLibrary
		}
	}
	if strings.Contains(path, "/") {
		target, err := trust.Program(path)
		switch {
		case err == nil:
			path = target
		case !errors.Is(err, fs.ErrNotExist): // open reports that
			return &library{refused: fmt.Errorf("the library %s is not trusted: %w", path, err)}
		}
	}
	loaded.Lock()
	defer loaded.Unlock()
	shared, ok := loaded.byPath[path]
	if !ok {
		shared = nvml.New(nvml.WithLibraryPath(path))
		loaded.byPath[path] = shared
	}
	return &library{Interface: shared, path: path}
}

func (l *library) maker() *maker { return nvidia }

func (l *library) open() error {
	if err := l.load(); err != nil {
		return err
	}
	for _, f := range requiredFunctions {
		if !l.has(f) {
			return fmt.Errorf("%s has no %s: it is not NVIDIA's, reinstall the driver", l.path, symbols(f)[0])
		}
	}
	sessionLock.Lock()
	defer sessionLock.Unlock()
	err := l.call("nvmlInit", l.Init)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.sessions++
		l.begun++
		l.session = session{uuids: map[nvml.Device]string{}} // if the driver ended the last session, its resources are gone
	}
	return err
}

func (l *library) load() error {
	if l.lookup != nil || l.refused != nil {
		return l.refused
	}
	handle := dl.New(l.path, dl.RTLD_LAZY|dl.RTLD_GLOBAL)
	switch err := handle.Open(); {
	case err == nil:
		l.lookup = handle.Lookup
		return nil
	case strings.Contains(err.Error(), "No such file"):
		return fmt.Errorf("%w (%s)", ErrNoDriver, l.path)
	default:
		return fmt.Errorf("the NVIDIA driver's library cannot be loaded, reinstall the driver: %w", err)
	}
}

func (l *library) close() {
	l.mu.Lock()
	begun, ending := l.begun, l.session
	l.begun, l.session = 0, session{}
	l.mu.Unlock()
	if begun == 0 {
		return
	}
	for _, s := range ending.samples {
		_ = l.call("nvmlGpmSampleFree", s.Free)
	}
	if ending.events != nil {
		_ = l.call("nvmlEventSetFree", ending.events.Free)
	}
	sessionLock.Lock()
	defer sessionLock.Unlock()
	for range begun {
		_ = l.call("nvmlShutdown", l.Shutdown)
	}
}

func (l *library) stats() driverStats {
	l.mu.Lock()
	sessions := l.sessions
	l.mu.Unlock()
	return driverStats{calls: l.calls.sums(), fields: l.latencies.sums(), sessions: sessions}
}

func (l *library) versions() (driver, version string) {
	driver, _ = get(l, "nvmlSystemGetDriverVersion", l.SystemGetDriverVersion)
	version, _ = get(l, "nvmlSystemGetNVMLVersion", l.SystemGetNVMLVersion)
	return text(driver), text(version)
}

// clocks reads all clocks at once, and again if this thread was interrupted in between.
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
	_ = unix.ClockGettime(id, &t) // it fails for unknown clocks only
	return time.Duration(t.Nano())
}

// errorOf returns nil for success.
func errorOf(ret nvml.Return) error {
	if ret == nvml.SUCCESS {
		return nil
	}
	return code(ret)
}

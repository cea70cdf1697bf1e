// Package baseline learns how long model loads and epochs usually take on this machine, so that slow ones stand out.
// The durations are in one small file that all processes share. A file that cannot be used is renamed, and learning
// starts over.
package baseline

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// Limits.
const (
	MaxKeys  = 4096 // in the file; the key that was seen longest ago is dropped
	MaxEach  = 64   // of them, of one client
	MaxCount = 64   // durations of a key; median and p95 are exact over these
	MinCount = 5    // durations of a key before windows are compared with it

	maxName     = 512                  // bytes of a name in a key
	minRead     = 1 << 20              // bytes read from disks that count; other programs read a little, too
	maxDuration = 100 * 24 * time.Hour // longer ones are clock steps
)

// Temperature is the place from which a load read its bytes.
type Temperature string

const (
	Cold    Temperature = "cold"    // more than half of them from the device
	Warm    Temperature = "warm"    // at least half of them from the page cache
	Unknown Temperature = "unknown" // it was not observed
)

// Key names what loads, epochs or steps must have in common to be compared. Its text is KIND/DEVICE/TEMPERATURE/NAME
// for a load, epoch/RUN for an epoch, first/RUN for the first epoch of a run, and steps/RUN for steps. In front is the
// client in brackets, unless it is the user of this program. Only the client says how long a window took, so it must
// not change what others are compared with.
type Key string

// KeyOf returns the key of a window, or "" if the window has no name or is of another kind. busiest is the device
// type of the disk that was read most, which stands for the source of a load without a path.
//
// The first epoch of a run reads data that later ones find in memory, starts workers and tunes kernels, so it has a key
// of its own. Whether an epoch was cold is not part of a key: data that left the memory are a reason to be slow.
//
// The key of a later epoch is the name of its run alone. With the epoch's number in it, an epoch would be compared only
// with the same epoch of earlier runs. The device is not part of it because a data set may lie on several, and a little
// unrelated I/O would change the key.
func KeyOf(r *window.Report, busiest string) Key {
	client := ""
	if r.Client != "" {
		client = clientOpen + strings.NewReplacer("]", "", "/", "_").Replace(shorten(r.Client)) + clientClose
	}
	switch r.Kind {
	case window.Epoch, window.Steps:
		if r.Run == "" {
			return ""
		}
		kind := string(r.Kind)
		if r.First {
			kind = first
		}
		return Key(client + kind + "/" + shorten(r.Run))
	case window.ModelLoad:
		name := r.Model
		if name == "" && r.Path != "" && r.Seen.Size > 0 {
			name = r.Path + " (" + strconv.FormatUint(r.Seen.Size, 10) + " bytes)"
		}
		if name == "" {
			return ""
		}
		device := strings.ReplaceAll(device(r, busiest), "/", "_")
		return Key(client + "load/" + device + "/" + string(temperature(r)) + "/" + shorten(name))
	}
	return ""
}

// shorten limits the length of a name. A hash keeps names apart that begin alike.
func shorten(name string) string {
	name = strings.ToValidUTF8(name, "\ufffd") // as in the file
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.ToValidUTF8(name[:maxName-17], "") + "~" + hex.EncodeToString(sum[:8])
}

// The client of a key is between these.
const (
	clientOpen  = "["
	clientClose = "] "
)

// Client returns the client in front of a key, or "".
func (k Key) Client() string { client, _ := k.cut(); return client }

func (k Key) cut() (client, rest string) {
	inside, found := strings.CutPrefix(string(k), clientOpen)
	if client, rest, ok := strings.Cut(inside, clientClose); found && ok {
		return client, rest
	}
	return "", string(k)
}

// split returns the parts of a key. The device and temperature of an epoch are "".
func (k Key) split() (kind, device, temperature, name string) {
	_, whole := k.cut()
	kind, rest, _ := strings.Cut(whole, "/")
	if kind != "load" {
		return kind, "", "", rest
	}
	device, rest, _ = strings.Cut(rest, "/")
	temperature, name, _ = strings.Cut(rest, "/")
	return kind, device, temperature, name
}

// first is the kind of the key of the first epoch of a run.
const first = "first"

// Kind returns "load", "epoch", "steps", or "first" for the first epoch of a run.
func (k Key) Kind() string { kind, _, _, _ := k.split(); return kind }

// Name returns the model of a load, or the run of an epoch.
func (k Key) Name() string { _, _, _, name := k.split(); return name }

// Device returns the device type of a load, or "" for an epoch.
func (k Key) Device() string { _, device, _, _ := k.split(); return device }

// Temperature returns the temperature of a load, or "" for an epoch.
func (k Key) Temperature() Temperature { _, _, t, _ := k.split(); return Temperature(t) }

// memory is the device of a path without a disk or server, as on tmpfs.
const memory = "memory"

// device returns the type of device that a load read from.
func device(r *window.Report, busiest string) string {
	switch {
	case r.Seen.Device != "":
		return r.Seen.Device
	case len(r.Mounts) > 0:
		return r.Mounts[0].Type
	case bytesRead(r) >= minRead && busiest != "":
		return busiest
	}
	return "unknown"
}

// temperature prefers what was in the page cache before the load. Without that, it compares the bytes that disks read
// during the load with the size of the files.
func temperature(r *window.Report) Temperature {
	remote := r.Seen.Device != "" && len(r.Seen.Under) == 0 || r.Seen.Device == "" && len(r.Mounts) > 0
	switch {
	case r.Load.HasHit:
		return warmIf(r.Load.Hit >= 0.5)
	case r.Seen.Device == memory:
		return Warm
	case remote:
		return Unknown // disk counters do not show what a server sent
	case r.Seen.Size > 0:
		return warmIf(2*bytesRead(r) < r.Seen.Size)
	case bytesRead(r) < minRead:
		return Warm
	}
	return Unknown
}

func warmIf(warm bool) Temperature {
	if warm {
		return Warm
	}
	return Cold
}

func bytesRead(r *window.Report) (sum uint64) {
	for i := range r.Disks {
		sum += r.Disks[i].ReadBytes
	}
	return sum
}

// Learnable reports whether baselines learn from a window: it ended by itself, its samples are complete, its GPUs
// worked, and its key is certain. Slow windows are learnable; Store.Learn counts them apart. A large storage stall
// does not exclude a window, because it may be usual, as for cold loads.
func Learnable(r *window.Report) bool {
	// An interrupted window has exact durations but not the bytes that make the key of a load.
	certain := !r.Interrupted || r.Kind == window.Epoch || r.Kind == window.Steps || r.Load.HasHit
	return !r.Unfinished && !r.Lacks(window.GPULost) && !r.Lacks(window.ReadingGap) && certain && r.Duration() > 0 &&
		r.Duration() < maxDuration
}

// Record holds what is known of the windows of one key.
type Record struct {
	Durations []time.Duration `json:"durations_ns"`   // of the last MaxCount windows that were not slow, the newest last
	Slow      int             `json:"slow,omitempty"` // slow windows since the last one that was not
	Last      time.Time       `json:"last_seen"`      // end of the last window, in whole seconds
}

// learn adds a window. A slow one is counted, but its duration is not kept.
func (r *Record) learn(took time.Duration, slow bool, at time.Time) {
	if at = at.UTC().Truncate(time.Second); at.After(r.Last) {
		r.Last = at
	}
	if slow {
		r.Slow++
		return
	}
	r.Slow = 0
	r.Durations = append(r.Durations, took)
	if excess := len(r.Durations) - MaxCount; excess > 0 {
		r.Durations = slices.Delete(r.Durations, 0, excess)
	}
}

// Baseline returns the median and the p95 of the record, and whether it has enough windows to compare with.
func (r *Record) Baseline() (window.Baseline, bool) {
	n := len(r.Durations)
	return window.Baseline{Median: r.Median(), P95: r.P95(), Count: n}, n >= MinCount
}

// Median returns the median duration, or 0 without any.
func (r *Record) Median() time.Duration {
	n := len(r.Durations)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(r.Durations))
	low, high := sorted[(n-1)/2], sorted[n/2]
	return low + (high-low)/2
}

// P95 returns the 95th percentile by the nearest rank, or 0 without any duration. Up to 19 durations, it is the
// longest.
func (r *Record) P95() time.Duration {
	n := len(r.Durations)
	if n == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(r.Durations))[(95*n+99)/100-1]
}

// check returns an error for a record that no version could have written.
func (r *Record) check(key Key) error {
	valid := r != nil && key != "" && r.Slow >= 0 && r.Slow <= math.MaxInt32 && len(r.Durations) <= MaxCount &&
		!slices.ContainsFunc(r.Durations, func(d time.Duration) bool { return d <= 0 })
	if !valid {
		return fmt.Errorf("its record of %.80q is invalid", key)
	}
	return nil
}

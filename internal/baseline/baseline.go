// Package baseline remembers how long model loads and epochs usually take on this machine, in one small file that any
// number of programs share, so that a window can be told from the usual ones. It is no place for anything that could
// not be learned again: whatever is wrong with the file, it is set aside and learning starts over.
package baseline

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// Bounds.
const (
	MostKeys = 4096 // in the file; the one that was seen longest ago goes
	Kept     = 64   // observations of a key; median and p95 are of exactly these
	Enough   = 5    // observations before anything is judged by them

	longestKey = 512 // bytes
)

// Temperature says where the bytes of a load came from.
type Temperature string

const (
	Cold    Temperature = "cold"    // most of them from the device
	Warm    Temperature = "warm"    // at least half of them from the page cache
	Unknown Temperature = "unknown" // that was not seen
)

// Key is what loads or epochs must have in common to be compared. As text it has the form KIND/DEVICE/TEMPERATURE/NAME
// for a load and epoch/RUN for an epoch.
type Key string

// KeyOf is the key of a window, "" for one of which there is none: of another kind, or without a name. most is the kind
// of the disk that was read most, from which a load without a path is taken to come.
//
// Epochs go by the run's name alone. Their number is no part of it: an epoch would then be compared with the same epoch
// of earlier runs only, and the hundredth of a first run with nothing, though the epochs of one run are alike and what a
// person asks is whether this one stands out. Nor is their device: a data set may lie on several, and what little else a
// disk did would make another key of the same work.
func KeyOf(r *window.Report, most string) Key {
	switch r.Kind {
	case window.Epoch:
		if r.Run == "" {
			return ""
		}
		return Key("epoch/" + bounded(r.Run))
	case window.ModelLoad:
		name := r.Model
		if name == "" && r.Path != "" && r.Seen.Size > 0 {
			name = r.Path + " (" + strconv.FormatUint(r.Seen.Size, 10) + " bytes)"
		}
		if name == "" {
			return ""
		}
		device := strings.ReplaceAll(device(r, most), "/", "_")
		return Key("load/" + device + "/" + string(temperature(r)) + "/" + bounded(name))
	}
	return ""
}

// bounded keeps a name apart from others that begin alike, without its full length.
func bounded(name string) string {
	if len(name) <= longestKey {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.ToValidUTF8(name[:longestKey-17], "") + "~" + hex.EncodeToString(sum[:8])
}

// parts takes a key apart. The device and temperature of an epoch are "".
func (k Key) parts() (kind, device, temperature, name string) {
	kind, rest, _ := strings.Cut(string(k), "/")
	if kind != "load" {
		return kind, "", "", rest
	}
	device, rest, _ = strings.Cut(rest, "/")
	temperature, name, _ = strings.Cut(rest, "/")
	return kind, device, temperature, name
}

// Kind is "load" or "epoch".
func (k Key) Kind() string { kind, _, _, _ := k.parts(); return kind }

// Name is the model, or the run of an epoch.
func (k Key) Name() string { _, _, _, name := k.parts(); return name }

// Device is the kind of device that a load is from; "" of an epoch.
func (k Key) Device() string { _, device, _, _ := k.parts(); return device }

// Temperature is that of a load; "" of an epoch.
func (k Key) Temperature() Temperature { _, _, t, _ := k.parts(); return Temperature(t) }

// memory is the device of a path that no disk or server is behind.
const memory = "memory"

// untold is how much the disks may have read in a load that came from memory: others read a little, too.
const untold = 1 << 20

// device is the kind of device that a load is from.
func device(r *window.Report, most string) string {
	switch {
	case r.Seen.Device != "":
		return r.Seen.Device
	case len(r.Mounts) > 0:
		return r.Mounts[0].Type
	case read(r) >= untold && most != "":
		return most
	}
	return "unknown"
}

// temperature says whether a load came from the page cache: by what lay there before where that is known, otherwise by
// what was read from storage while it lasted.
func temperature(r *window.Report) Temperature {
	away := r.Seen.Device != "" && len(r.Seen.Under) == 0 || r.Seen.Device == "" && len(r.Mounts) > 0
	switch {
	case r.Load.HasHit:
		return warm(r.Load.Hit >= 0.5)
	case r.Seen.Device == memory:
		return Warm
	case away:
		return Unknown // what a server gave is in no disk's counters
	case r.Seen.Size > 0:
		return warm(2*read(r) < r.Seen.Size)
	case read(r) < untold:
		return Warm
	}
	return Unknown
}

func warm(is bool) Temperature {
	if is {
		return Warm
	}
	return Cold
}

func read(r *window.Report) (bytes uint64) {
	for i := range r.Disks {
		bytes += r.Disks[i].ReadBytes
	}
	return bytes
}

// Learns says whether a window is one to learn from: it ended by itself, was watched, on GPUs that worked, and its key is
// certain. One
// that was slow by its duration is told to the book, too, and kept out of what is usual there. That a window waited for
// storage for most of its time is no reason to leave it out: that may be the usual thing, as it is for a cold load.
func Learns(r *window.Report) bool {
	certain := !r.Interrupted || r.Kind == window.Epoch || r.Load.HasHit // the time is exact, the disks' bytes are not
	return !r.Unfinished && !r.GPULost() && !r.Unwatched() && certain && r.Duration() > 0 && r.Duration() < longest
}

// longest is a bound on what may be learned: a clock that jumped looks like this.
const longest = 100 * 24 * time.Hour

// Package bench measures how fast a disk can read: what hdparm -T and -t measure, and reads of 4 KiB at the queue
// depths of real programs. It reads a block device or a file, and takes under 30 s.
//
// Each step reads for a fixed time with several threads; each thread waits for one read (pread). A rate is the mean of
// the middle slices of the step, so that an outlier has no effect. Quantiles are of all reads.
package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Sizes and counts of the reads.
const (
	large   = 1 << 20   // bytes of a sequential read
	small   = 4 << 10   // bytes of a random read
	ahead   = 4         // sequential reads in flight
	cached  = 64 << 20  // bytes that are read again from memory
	minSize = 64 << 20  // bytes of a device or file
	minFile = 256 << 20 // bytes of a file that is chosen from a folder
)

// depths are the numbers of random reads in flight, in the order of measuring.
var depths = [...]int{1, 2, 4, 8, 16, 32}

// Durations of a step.
const (
	defaultStep = 2500 * time.Millisecond
	maxStep     = 10 * time.Second
	minStep     = 50 * time.Millisecond
	readTimeout = 5 * time.Second // for reads in flight when a step ends
)

// Options select the target and how to measure it.
type Options struct {
	Device string // a block device: its path, or its name in /dev
	Path   string // or a file, or a folder with a file of 256 MiB or more

	MakeFile bool          // write a file of random bytes into the folder Path, measure it and remove it
	Seed     uint64        // of the random offsets; 0 for a random one
	Step     time.Duration // duration of each of the eight steps; 0 for 2.5 s
}

// Check returns an error if the options contradict each other, or are out of bounds, and fills in defaults.
func (o *Options) Check() error {
	o.Step = cmp.Or(o.Step, defaultStep)
	for o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	switch {
	case o.Device == "" && o.Path == "":
		return errors.New("bench needs a disk, as lsblk lists them, or a file or folder on it: stallspan bench nvme0n1")
	case o.MakeFile && o.Path == "":
		return errors.New("--make-file needs the folder for the file: stallspan bench --make-file /data")
	}
	return checkStep(o.Step)
}

func checkStep(step time.Duration) error {
	if step < minStep || step > maxStep {
		return fmt.Errorf("a step of %v cannot be measured: choose %v to %v", step, minStep, maxStep)
	}
	return nil
}

// Exists returns an error if there is no such device or path.
func (o *Options) Exists() error {
	if o.Device != "" {
		_, err := blockDevice(o.Device)
		return err
	}
	_, err := os.Stat(o.Path)
	return absent(o.Path, err)
}

// deviceOrPath says which of both an argument is: a file or folder is a path, all else the name or path of a device.
func deviceOrPath(name string) (device, path string) {
	if info, err := os.Stat(name); err == nil && info.Mode()&fs.ModeDevice == 0 {
		return "", name
	}
	return name, ""
}

// absent says what to do if err is that there is no file.
func absent(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no file or folder %s: check the path", path)
	}
	return err
}

// blockDevice is the path of a block device, given by its path or its name.
func blockDevice(device string) (path string, err error) {
	path = device
	if !strings.Contains(device, "/") {
		path = filepath.Join("/dev", device)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("there is no disk, file or folder %s: lsblk lists the disks", device)
	case err != nil:
		return "", err
	case info.Mode()&os.ModeDevice == 0 || info.Mode()&os.ModeCharDevice != 0:
		return "", fmt.Errorf("%s is neither a block device nor a file or folder", path)
	}
	return path, nil
}

// Result is the measurement. Values that were not measured are absent, or 0.
type Result struct {
	// the disk that was read, as /proc/diskstats calls it; absent if it is not a single disk
	Device string `json:"device,omitempty"`
	Path   string `json:"path"`       // of the block device or file
	Size   uint64 `json:"size_bytes"` // of that
	Direct bool   `json:"direct"`     // reads bypassed the page cache (O_DIRECT)

	Cached     float64  `json:"cached_bytes_per_second,omitempty"`     // from memory
	Sequential float64  `json:"sequential_bytes_per_second,omitempty"` // 1 MiB each, four in flight
	Random     []Random `json:"random"`                                // by depth

	// OfDisk reports that the disk's own counters include the sequential and the random reads: the numbers are the
	// disk's, and not those of a cache above it.
	OfDisk bool `json:"of_disk"`

	slowTouch bool // the disk is faster with what was read before

	Seed uint64 `json:"seed"`
	ending
}

// ending is what the result of each measurement ends with.
type ending struct {
	Duration    float64  `json:"duration_seconds"`
	Interrupted bool     `json:"interrupted,omitempty"` // it ended before everything was measured
	Notes       []string `json:"notes,omitempty"`       // remarks on the numbers, in sentences
}

func (e *ending) note(format string, args ...any) {
	e.Notes = append(e.Notes, fmt.Sprintf(format, args...))
}

// end closes what was measured, notes how the measurement has ended, and returns its error.
func (e *ending) end(ctx context.Context, began time.Time, measured closer, name string, err error) error {
	e.Duration = time.Since(began).Seconds()
	if !errors.Is(err, errHangs) {
		measured.close() // otherwise the last read does
	}
	switch {
	case ctx.Err() != nil:
		e.Interrupted = true
		return nil
	case errors.Is(err, errHangs):
		return fmt.Errorf("%s has not answered for %v, so the rest was not measured: see the kernel's log (dmesg)", name,
			readTimeout)
	case err != nil:
		return fmt.Errorf("%s: %w; the rest was not measured", name, err)
	}
	return nil
}

// Random is the result of reads of 4 KiB at random offsets.
type Random struct {
	Depth    int     `json:"depth"` // reads in flight
	IOPS     float64 `json:"iops"`
	Rate     float64 `json:"bytes_per_second"`
	AwaitP50 float64 `json:"await_p50_seconds"` // as measured by the reading thread; to 1 %
	AwaitP99 float64 `json:"await_p99_seconds"`
	Reads    uint64  `json:"reads"` // number of reads
}

// Ceiling is the highest throughput without the page cache, in bytes per second.
func (r *Result) Ceiling() float64 {
	highest := r.Sequential
	for _, at := range r.Random {
		highest = max(highest, at.Rate)
	}
	return highest
}

// Await is the median time of a single random read in flight, in seconds; 0 if that was not measured.
func (r *Result) Await() float64 {
	for _, at := range r.Random {
		if at.Depth == 1 {
			return at.AwaitP50
		}
	}
	return 0
}

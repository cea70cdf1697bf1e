// Package bench measures what a disk can do, by reading alone: what hdparm -T and -t show, and reads of 4 KiB at the
// depths of queue that programs have. It works on a block device or on a file, and takes under 30 s.
//
// Each step reads for a fixed time with so many threads at once, each of which waits for one read (pread). A rate is
// the mean of the middle slices of the step, so that one hiccup does not decide; times are of all reads.
package bench

import (
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
	large   = 1 << 20 // bytes of a sequential read
	small   = 4 << 10 // bytes of a random read
	ahead   = 4       // sequential reads at once
	warmed  = 64 << 20
	least   = 64 << 20  // bytes of a device or file that is worth measuring
	leastIn = 256 << 20 // bytes of a file that is chosen from a folder
)

// Depths are how many random reads are under way at once, in the order in which they are measured.
var depths = [...]int{1, 2, 4, 8, 16, 32}

// Durations of a step.
const (
	defaultStep = 2500 * time.Millisecond
	maxStep     = 10 * time.Second
	minStep     = 50 * time.Millisecond
	patience    = 5 * time.Second // for reads that are under way when a step ends
)

// Options say what is measured, and how.
type Options struct {
	Device string // a block device: its path, or its name in /dev
	Path   string // in place of that a file, or a folder with a file of 256 MiB or more

	MakeFile bool          // write a file of random bytes into the folder Path, measure it and remove it
	Seed     uint64        // of the random offsets; 0 for any
	Step     time.Duration // for how long each of the eight steps reads; 0 for 2.5 s
}

// Check returns an error if the options contradict each other, or are out of bounds.
func (o *Options) Check() error {
	switch {
	case o.Device != "" && o.Path != "":
		return errors.New("both a device and a path were given: give one of them")
	case o.MakeFile && o.Path == "":
		return errors.New("a file is made in a folder: give its path, too")
	case o.Step != 0 && (o.Step < minStep || o.Step > maxStep):
		return fmt.Errorf("a step of %v cannot be measured: choose %v to %v", o.Step, minStep, maxStep)
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
	return err
}

func (o *Options) complete() error {
	if o.Step == 0 {
		o.Step = defaultStep
	}
	for o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	return o.Check()
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
		return "", fmt.Errorf("there is no device %s: lsblk lists the devices", path)
	case err != nil:
		return "", err
	case info.Mode()&os.ModeDevice == 0 || info.Mode()&os.ModeCharDevice != 0:
		return "", fmt.Errorf("%s is not a block device: give --path for a file or folder", path)
	}
	return path, nil
}

// Result is what was measured. What was not is absent, or 0.
type Result struct {
	// the disk that was read, as /proc/diskstats calls it; absent where it is not one disk
	Device string `json:"device,omitempty"`
	Path   string `json:"path"`       // of the block device or file that was read
	Size   uint64 `json:"size_bytes"` // of that
	Direct bool   `json:"direct"`     // reads went past the page cache (O_DIRECT)

	Cached     float64  `json:"cached_bytes_per_second,omitempty"`     // of blocks that are in memory
	Sequential float64  `json:"sequential_bytes_per_second,omitempty"` // 1 MiB each, four at once
	Random     []Random `json:"random"`                                // by depth

	// OfDisk says that the disk's own counters saw the reads, sequential ones and random ones: the numbers are the disk's,
	// and not those of a cache above it.
	OfDisk bool `json:"of_disk"`

	Seed        uint64   `json:"seed"`
	Duration    float64  `json:"duration_seconds"`
	Interrupted bool     `json:"interrupted,omitempty"` // it was ended before all was measured
	Notes       []string `json:"notes,omitempty"`       // what is to be known of these numbers, in sentences
}

// Random is what reads of 4 KiB at random offsets did.
type Random struct {
	Depth    int     `json:"depth"` // reads under way at once
	IOPS     float64 `json:"iops"`
	Rate     float64 `json:"bytes_per_second"`
	AwaitP50 float64 `json:"await_p50_seconds"` // as the reading thread sees it; to 1.6 %
	AwaitP99 float64 `json:"await_p99_seconds"`
	Reads    uint64  `json:"reads"` // that were measured
}

// Ceiling is the highest throughput that was measured past the page cache, in bytes a second.
func (r *Result) Ceiling() float64 {
	most := r.Sequential
	for _, at := range r.Random {
		most = max(most, at.Rate)
	}
	return most
}

// Await is the median time of a random read with no other beside it, in seconds; 0 where that was not measured.
func (r *Result) Await() float64 {
	for _, at := range r.Random {
		if at.Depth == 1 {
			return at.AwaitP50
		}
	}
	return 0
}

func (r *Result) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// Run measures. It reads only, unless Options.MakeFile asks for a file. When ctx ends, or the device fails or hangs, it
// gives what was measured until then, with an error for the latter two; reads that hang are left behind, for nothing
// can end them. The result is nil where nothing could be measured at all.
//
// While it runs, GOMAXPROCS is at least 34, so that the Go scheduler does not hold back threads that come back from a
// read: with 2, 32 of them did 41,519 and 37,902 reads a second of a disk of which fio's 32 threads did 58,883 and
// 55,082.
func Run(ctx context.Context, o Options) (*Result, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	return run(ctx, o)
}

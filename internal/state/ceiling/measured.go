package ceiling

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/state"
)

// Measured is what stallspan bench measured of a disk.
type Measured struct {
	Disk     string    `json:"disk"`                  // its name at that time
	Identity string    `json:"identity"`              // what Identify returned at that time
	Read     float64   `json:"read_bytes_per_second"` // highest throughput
	Await    float64   `json:"await_seconds"`         // median time of a read of 4 KiB at queue depth 1
	At       time.Time `json:"measured_at"`
}

func (m *Measured) valid() bool {
	return m.Disk != "" && m.Identity != "" && len(m.Disk)+len(m.Identity) <= 2*maxIdentity &&
		m.Read > 0 && m.Read < maxThroughput && m.Await > 0 && m.Await < maxAwait
}

const (
	maxMeasured = 256    // disks in a file; the oldest measurements are dropped
	maxAwait    = 3600.0 // seconds
)

// PathNextTo returns the file of measurements that belongs to a file of baselines: ceilings.json in the same folder.
func PathNextTo(baselines string) string {
	return filepath.Join(filepath.Dir(baselines), "ceilings.json")
}

func measurements(path string) *state.File[[]Measured] {
	return &state.File[[]Measured]{Path: path, Name: "disks", Version: 1, MaxSize: 1 << 20, Owned: true, Check: check}
}

func check(all []Measured) error {
	if len(all) > maxMeasured || slices.ContainsFunc(all, func(m Measured) bool { return !m.valid() }) {
		return errors.New("stallspan bench did not write it: remove it, and measure again")
	}
	return nil
}

// Load returns the measurements of a file, or nothing if the file does not exist.
func Load(path string) ([]Measured, error) {
	all, err := measurements(path).Load()
	if err != nil {
		return nil, fmt.Errorf("measurements of disks cannot be read from %s: %w", path, err)
	}
	return all, nil
}

// Store adds a measurement to a file and replaces an earlier one of the same disk. A damaged file is renamed.
func Store(path string, m Measured) error {
	err := fmt.Errorf("%.4g bytes/s and an await of %.4g s are not plausible", m.Read, m.Await)
	if m.valid() {
		file := measurements(path)
		file.Report = func(error) {} // the new measurement is worth more than a damaged file
		_, err = file.Update(func(all *[]Measured) error {
			*all = with(*all, m)
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("the measurement of %s cannot be stored in %s: %w", m.Disk, path, err)
	}
	return nil
}

// with returns the measurements with a new one, sorted by disk.
func with(all []Measured, m Measured) []Measured {
	all = slices.DeleteFunc(all, func(other Measured) bool { return other.Identity == m.Identity })
	all = append(all, m)
	slices.SortStableFunc(all, func(a, b Measured) int { return a.At.Compare(b.At) })
	all = all[max(0, len(all)-maxMeasured):]
	slices.SortFunc(all, func(a, b Measured) int {
		return cmp.Or(cmp.Compare(a.Disk, b.Disk), cmp.Compare(a.Identity, b.Identity))
	})
	return all
}

// duration converts seconds, rounded to nanoseconds.
func duration(seconds float64) time.Duration { return time.Duration(math.Round(seconds * 1e9)) }

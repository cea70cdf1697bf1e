package ceiling

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/statefile"
)

// Measured is what a disk could do when it was put to the test, which stallspan bench does.
type Measured struct {
	Disk     string    `json:"disk"`                  // as it was called then
	Identity string    `json:"identity"`              // what Identify said of it then
	Read     float64   `json:"read_bytes_per_second"` // the highest throughput
	Await    float64   `json:"await_seconds"`         // median time of a read of 4 KiB with no other beside it
	At       time.Time `json:"measured_at"`
}

func (m *Measured) usable() bool {
	return m.Disk != "" && m.Identity != "" && len(m.Disk)+len(m.Identity) <= 2*mostIdentity &&
		m.Read > 0 && m.Read < fastest && m.Await > 0 && m.Await < slowestRead
}

// Bounds of a file.
const (
	version      = 1
	mostMeasured = 256 // disks; those that were measured longest ago are left out
	mostFile     = 1 << 20
	slowestRead  = 3600.0 // seconds
)

// document is the file.
type document struct {
	Version int        `json:"version"`
	Disks   []Measured `json:"disks"`
}

var (
	errDamaged = errors.New("it is not what stallspan bench writes: remove it, and measure again")
	errNewer   = errors.New("it comes from a newer version: update stallspan")
)

// Beside is the file of what was measured that belongs to a file of baselines: ceilings.json in the same folder.
func Beside(baselines string) string { return filepath.Join(filepath.Dir(baselines), "ceilings.json") }

// Load reads a file of what was measured; nothing from a file that is not there. The error is one line with the path.
func Load(path string) ([]Measured, error) {
	all, err := load(path)
	if err != nil {
		return nil, fmt.Errorf("what was measured of disks cannot be read from %s: %w", path, err)
	}
	return all, nil
}

func load(path string) ([]Measured, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && !info.Mode().IsRegular() { // a pipe would be waited for
		return nil, errDamaged
	}
	if err != nil {
		return nil, reason(err)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, reason(err)
	}
	defer func() { _ = file.Close() }()
	return parse(file)
}

// parse reads a file's text. One disk that makes no sense makes the whole file damaged.
func parse(r io.Reader) ([]Measured, error) {
	text, err := io.ReadAll(io.LimitReader(r, mostFile+1))
	if err != nil {
		return nil, reason(err)
	}
	var d document
	if len(text) > mostFile || json.Unmarshal(text, &d) != nil || d.Version < 1 {
		return nil, errDamaged
	}
	if d.Version > version {
		return nil, errNewer
	}
	if len(d.Disks) > mostMeasured || slices.ContainsFunc(d.Disks, func(m Measured) bool { return !m.usable() }) {
		return nil, errDamaged
	}
	return d.Disks, nil
}

// Store puts what was measured of a disk into a file, in place of what was measured of the same disk before. The file is
// made where it is not there, and is at every moment the old one or the new one, whole. A damaged one is replaced.
func Store(path string, m Measured) error {
	if err := store(path, m); err != nil {
		return fmt.Errorf("what was measured of %s cannot be kept in %s: %w", m.Disk, path, err)
	}
	return nil
}

func store(path string, m Measured) error {
	if !m.usable() {
		return fmt.Errorf("%.4g bytes a second and an await of %.4g s are no disk's", m.Read, m.Await)
	}
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return reason(err)
	}
	unlock, err := lock(folder)
	if err != nil {
		return err
	}
	defer unlock()
	all, err := load(path)
	if err != nil && !errors.Is(err, errDamaged) {
		return err
	}
	all = slices.DeleteFunc(all, func(other Measured) bool { return other.Identity == m.Identity })
	all = append(all, m)
	slices.SortStableFunc(all, func(a, b Measured) int { return a.At.Compare(b.At) })
	all = all[max(0, len(all)-mostMeasured):]
	slices.SortFunc(all, func(a, b Measured) int {
		return cmp.Or(cmp.Compare(a.Disk, b.Disk), cmp.Compare(a.Identity, b.Identity))
	})
	text, err := json.MarshalIndent(document{version, all}, "", "  ")
	if err != nil {
		return err
	}
	return replace(path, append(text, '\n'))
}

// replace gives a file a new text, or leaves it as it is.
func replace(path string, text []byte) error {
	if len(text) > mostFile {
		return fmt.Errorf("it would be longer than %d bytes", mostFile)
	}
	return reason(statefile.Replace(path, text))
}

// reason leaves out the path, which is said before.
func reason(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// seconds as a duration, rounded to nanoseconds.
func duration(seconds float64) time.Duration { return time.Duration(math.Round(seconds * 1e9)) }

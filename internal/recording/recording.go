// Package recording writes readings, and the windows that began and ended between them, to a file, and reads them
// again, so that the windows of one machine can be reported on another. docs/internals/recording-format.md describes
// the file: gzip, with one line of JSON per entry.
package recording

import (
	"crypto/rand"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Format is the version of the file format that is written, and the newest one that is read.
const Format = 1

// Bounds of what is written and read.
const (
	maxLine   = 16 << 20 // bytes of one line
	maxBytes  = 16 << 30 // of all lines, uncompressed: three days of an ordinary machine at ten readings a second
	maxCommas = 1 << 18  // in one line: each may cost two hundred bytes of memory, as in a list of empty disks
)

// Header is the first line of a recording: where and how it was made.
type Header struct {
	Format   int           `json:"stallspan_recording"` // set by NewWriter
	Host     string        `json:"host,omitempty"`
	Kernel   string        `json:"kernel,omitempty"`
	Boot     time.Time     `json:"boot,omitzero"`      // when the machine's counters began
	Origin   time.Duration `json:"origin,omitempty"`   // CLOCK_MONOTONIC at Stamp.Mono 0; 0 where it is not known
	Interval time.Duration `json:"interval,omitempty"` // between two readings of a source
	Version  string        `json:"version,omitempty"`  // of the program that wrote it
	ID       string        `json:"id,omitempty"`       // the same in all parts of one recording
	Part     int           `json:"part,omitempty"`     // counts the files of one recording, from 0
}

// ThisMachine returns the header of a new recording of this machine. What cannot be read stays empty.
func ThisMachine(boot time.Time, interval time.Duration, version string) Header {
	h := Header{Boot: boot, Origin: sample.Origin(), Interval: interval, Version: version, ID: rand.Text()}
	h.Host, _ = os.Hostname()
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		h.Kernel = fmt.Sprintf("%s %s %s", runtime.GOOS, strings.TrimSpace(string(release)), runtime.GOARCH)
	}
	return h
}

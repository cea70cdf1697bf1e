// Package probe reads what windows need to know besides the samples, when they begin and end: what is at a window's
// path, which processes read most, and what bench measured of the disks. A probe may hang with its file system, so each
// runs in the background, and the callers wait for a short time only.
package probe

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/disk"
	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/trust"
)

const (
	pathTime   = 10 * time.Millisecond  // how long the start of a window waits for what is at its path
	existsTime = 100 * time.Millisecond // how long PathExists waits: a busy disk may take a while
	maxRunning = 16                     // at the same time: a file system that does not respond holds one forever
	maxUnder   = 64                     // disks below one path
)

// Probe is safe for concurrent use.
type Probe struct {
	root   string
	disks  *disk.Source   // nil if disks cannot be read
	reader process.Reader // nil for none

	mounts  atomic.Pointer[string] // see ownMounts; nil until it is known
	tasks   sample.Tasks
	running *trust.Places // of the tasks of await
	scans   scans
}

// New returns a Probe of the machine below root. It asks reader, if that is not nil, for what this process may not
// read. report receives panics on any goroutine; nil for none.
func New(root string, disks *disk.Source, reader process.Reader, report func(error)) *Probe {
	return &Probe{root: root, disks: disks, reader: reader, tasks: sample.Tasks{Report: report},
		running: trust.NewPlaces(maxRunning)}
}

// Stop waits for the probes that are running: for a second at most, as a file system that does not respond may hold one
// forever.
func (p *Probe) Stop() { p.tasks.Stop(time.Second) }

// PathExists reports whether name is the absolute path of a file or folder of this machine. It returns false if the
// file system takes longer than 100 ms.
func (p *Probe) PathExists(name string) bool {
	return filepath.IsAbs(name) && await(p, "", existsTime, func() bool {
		_, err := os.Stat(filepath.Join("/", p.root, name))
		return err == nil
	})
}

// await returns what task returns, or the zero value if that takes longer than timeout, if the task cannot start, or if
// too many are running: in all, or for this client.
func await[T any](p *Probe, client string, timeout time.Duration, task func() T) (result T) {
	if p.running.Take(client) != nil {
		return result
	}
	done := make(chan T, 1)
	if !p.tasks.Start(func() {
		defer p.running.Release(client)
		done <- task()
	}) {
		p.running.Release(client)
		return result
	}
	late := time.NewTimer(timeout)
	defer late.Stop()
	select {
	case result = <-done:
	case <-late.C:
	}
	return result
}

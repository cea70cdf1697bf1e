package gpu

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/cuda"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// The session with the driver keeps GPUs awake, and the driver from being unloaded. When it ends, and when it begins
// again, is decided here.

const (
	restAfter  = time.Minute // without a process, the session ends where GPUs may sleep
	powerEvery = time.Minute // the machine is searched for GPUs that may sleep
)

// ErrAsleep means that a GPU sleeps, which a session with the driver would end.
var ErrAsleep = errors.New("a GPU sleeps (runtime_status is suspended), and is not woken: GPUs are read once a " +
	"program uses them")

// errNotClosed is what Release returns if a driver is too slow.
var errNotClosed = errors.New("the driver does not return from a call, so its files are still open: look for Xid or " +
	"amdgpu in the kernel log, or stop this program")

// Release ends the session with the driver for a time, and returns once all its files are closed. With 0 the session
// may begin again at once. The error is that of ctx, if the driver does not respond.
func (s *Source) Release(ctx context.Context, length time.Duration) error {
	s.mu.Lock()
	s.releasedUntil = 0
	if length > 0 {
		s.releasedUntil = sample.Now().Mono + length
		s.closed = cmp.Or(s.closed, make(chan struct{}))
	}
	closed := s.closed
	s.mu.Unlock()
	s.WakeUp()
	if length <= 0 {
		return nil
	}
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return errNotClosed
	}
}

// setClosed releases the callers of Release once nothing of the driver is open, or the source ends.
func (s *Source) setClosed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		close(s.closed)
		s.closed = nil
	}
}

func (s *Source) isReleased(now time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.releasedUntil != 0 && now < s.releasedUntil
}

// rest is how the source lets GPUs sleep.
type rest struct {
	mayRest func() []string // folders of the GPUs that the kernel may suspend; nil for none
	devices string          // what a program opens to use one, a pattern

	searched time.Duration // when folders were last found; 0 for never
	folders  []string      // of mayRest
	used     time.Duration // when a GPU was last in use, or woken
	resting  time.Duration // since when there is no session for want of a process; 0 for not
	slept    bool          // a GPU has slept since then
	opened   *cuda.Opened  // the driver's devices, while resting
}

// awaits reports whether a session must wait until a GPU is used. It asks no driver.
func (s *rest) awaits(used bool, now time.Duration) bool {
	if s.mayRest != nil && (s.searched == 0 || now-s.searched >= powerEvery) {
		s.searched, s.folders = now, s.mayRest()
	}
	asleep := slices.ContainsFunc(s.folders, isAsleep)
	if asleep {
		s.slept, s.used = true, now // what wakes it may use it
	}
	used = used || s.opened.Heard() || s.slept || s.opened == nil && now-s.resting >= restAfter
	if s.resting != 0 && !asleep && used {
		s.end(now)
	}
	return asleep || s.resting != 0
}

// isOver notes whether GPUs are in use, and reports whether the session is to end because they may sleep.
func (s *rest) isOver(used bool, now time.Duration) bool {
	if used || s.used == 0 || len(s.folders) == 0 {
		s.used = now
	}
	if now-s.used < restAfter {
		return false
	}
	s.resting, s.slept = now, false
	devices, _ := filepath.Glob(s.devices)
	s.opened = cuda.Watch(devices...)
	return true
}

func (s *rest) end(now time.Duration) {
	s.opened.Close()
	s.opened, s.resting, s.used, s.slept = nil, 0, now, false
}

// mayRest returns the folders of the NVIDIA GPUs that the kernel may suspend while nothing uses them.
func (m *machine) mayRest() (folders []string) {
	if m == nil {
		return nil
	}
	for _, folder := range kernfile.Displays(m.root, "0x10de") {
		if kernfile.Text(folder+"/power/control") == "auto" {
			folders = append(folders, folder)
		}
	}
	return folders
}

func isAsleep(folder string) bool {
	return strings.HasPrefix(kernfile.Text(folder+"/power/runtime_status"), "suspend")
}

// letGo ends the session while there must be none, and reports whether there must be none.
func (r *run) letGo() bool {
	why := sample.GPUStatus("")
	switch {
	case r.isReleased(r.began):
		why = sample.GPUReleased
	case r.rest.awaits(false, r.began), r.open && r.rest.isOver(r.inUse(), r.began):
		why = sample.GPUAsleep
	}
	switch {
	case why == "" && r.closing: // a call has not returned yet: the session has not ended
		r.closing, r.open, r.relist.next = false, true, r.began
	case why != "" && r.open:
		r.open, r.closing = false, true
	}
	for _, g := range r.devices {
		if why != "" && g.status != why && !g.isHung() {
			g.device = nil
			r.markUnread(g, why)
		}
	}
	if r.closing && len(r.calls) == 0 {
		r.closing = !r.callDriver("nvmlShutdown", callTimeout, r.driver.close, func() {})
	}
	return why != "" || r.closing
}

// rests reports whether a device is not read, because it sleeps or may.
func (r *run) rests(g *deviceState) bool {
	if g.rest == nil || g.device == nil || g.call.isUnderWay() ||
		!g.rest.awaits(len(g.processes) > 0, r.began) && !g.rest.isOver(!g.unused, r.began) {
		return false
	}
	if g.status != sample.GPUAsleep {
		r.markUnread(g, sample.GPUAsleep)
	}
	return true
}

// inUse reports whether a process uses a GPU, or whether that is not known.
func (r *run) inUse() bool {
	return len(r.devices) == 0 || slices.ContainsFunc(r.devices, func(g *deviceState) bool { return !g.unused })
}

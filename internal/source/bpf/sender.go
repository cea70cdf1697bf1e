//go:build linux && (amd64 || arm64)

package bpf

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// senders names threads of this machine that are not followed and send to one that is, as over loopback. The kernel's
// program reports the names of those that wake a thread by themselves only.
type senders struct {
	known map[int]struct{}
	next  time.Duration // nothing is read before
}

const (
	maxSenders  = 1024
	senderPause = 10 * time.Millisecond // between two names, so that any number of senders costs next to nothing
)

// name returns an event with the name of the thread that a ThreadIn is due to, if it is new.
func (s *senders) name(e *sample.ThreadEvent, follows func(pid int) bool) (named sample.ThreadEvent, is bool) {
	if e.Kind != sample.ThreadIn || e.WakerKind != sample.SoftIRQ || e.Waker == 0 || e.At < s.next {
		return named, false
	}
	if _, known := s.known[e.Waker]; known || follows(e.WakerPID) {
		return named, false
	}
	s.next = e.At + senderPause
	text, err := os.ReadFile("/proc/" + strconv.Itoa(e.WakerPID) + "/task/" + strconv.Itoa(e.Waker) + "/comm")
	if err != nil {
		return named, false
	}
	if s.known == nil || len(s.known) >= maxSenders {
		s.known = map[int]struct{}{}
	}
	s.known[e.Waker] = struct{}{}
	return sample.ThreadEvent{At: e.At, Kind: sample.ThreadNamed, TID: e.Waker, PID: e.WakerPID,
		Name: string(bytes.TrimSuffix(text, []byte("\n")))}, true
}

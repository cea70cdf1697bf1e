// Package lend gives a plain user the scheduler's events of that user's own processes. A Lender is in a server with
// the rights to read them: the agent, or a Collector. A Borrower is in the user's program, and is the source of its
// events. They talk over the server's unix socket.
//
// What a borrower may have is what ptrace(2) would show it: processes of its own user and group without capabilities,
// that run no setuid program. That is checked when it names a process, again when the process is followed, at each
// event by the source, and before each frame.
package lend

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Source is a source of the scheduler's events, for one borrower.
type Source interface {
	// Follow makes processes and their later children a job.
	Follow(job string, pids []int) error
	// Sync adds those processes of a job that are not followed yet.
	Sync(job string, pids []int) error
	Unfollow(job string)
	// Read sets s.Schedule to the events since the previous Read. The next one reuses its memory.
	Read(s *sample.Sample) error
	Close() error
}

// ErrNoServer is an error of Borrow: nothing listens on any of the sockets.
var ErrNoServer = errors.New("no agent runs")

// Path is the path of the request for frames in the API.
const Path = "/v1/schedule"

// Order is a line of the request's body.
type Order struct {
	Op   string `json:"op"`             // one of the below
	Job  string `json:"job,omitempty"`  // as the borrower calls it
	PIDs []int  `json:"pids,omitempty"` // of processes to add, at most MaxPIDs
}

// The operations of an Order.
const (
	follow   = "follow"   // begins a job
	add      = "sync"     // adds processes to a job
	unfollow = "unfollow" // ends a job
	now      = "now"      // asks for a frame up to the present moment
)

// Limits of an Order.
const (
	MaxPIDs  = 64
	MaxOrder = 4 << 10 // bytes of a line
	maxJob   = 64      // bytes of a name
	maxPID   = 1 << 22 // PID_MAX_LIMIT
)

// frameInterval is the time between two frames without an order.
const frameInterval = 100 * time.Millisecond

// ParseOrder returns the order in a line, or an error that says what is wrong with it.
func ParseOrder(line []byte) (Order, error) {
	var o Order
	if err := json.Unmarshal(line, &o); err != nil {
		return o, fmt.Errorf(`an order is not JSON, send a line such as {"op":"follow","job":"run","pids":[1234]}: %w`, err)
	}
	switch {
	case o.Op != follow && o.Op != add && o.Op != unfollow && o.Op != now:
		return o, fmt.Errorf("the op of an order is unknown: use %s, %s, %s or %s", follow, add, unfollow, now)
	case len(o.Job) > maxJob || o.Job == "" && o.Op != now:
		return o, fmt.Errorf("the job of an order has %d bytes: use 1 to %d", len(o.Job), maxJob)
	case len(o.PIDs) > MaxPIDs:
		return o, fmt.Errorf("an order has %d processes: send at most %d in one", len(o.PIDs), MaxPIDs)
	}
	for _, pid := range o.PIDs {
		if pid <= 0 || pid > maxPID {
			return o, fmt.Errorf("an order has the process %d: use 1 to %d", pid, maxPID)
		}
	}
	return o, nil
}

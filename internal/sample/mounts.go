package sample

import "time"

// MaxMounts bounds the file systems without a disk that are read, and whose history is kept: up to 85 KiB for each with
// the default tiers.
const MaxMounts = 16

// MountCounters are what the kernel counts for one mounted file system that is on no disk of this machine: a network's,
// or one of FUSE. Several mount points of one file system share them.
type MountCounters struct {
	ID     string `json:"id"`     // unique on the machine: source and point
	Source string `json:"source"` // "server:/export"
	Point  string `json:"point"`  // the first one, as process 1 or this program sees it
	Type   string `json:"type"`   // "nfs4", "fuse.sshfs"
	Minor  uint32 `json:"minor"`  // of the device number, whose major number is 0: finds the Mount of a Job

	Read  MountOperations `json:"read,omitzero"`
	Write MountOperations `json:"write,omitzero"`
	Other MountOperations `json:"other,omitzero"` // metadata, locks and sessions; never bytes

	Retransmissions uint64 `json:"retransmissions,omitempty"` // requests that were sent again
	Timeouts        uint64 `json:"timeouts,omitempty"`        // major ones, after all retransmissions

	Called      uint64 `json:"called,omitempty"`      // bytes that read calls returned, from the page cache too
	Connections int    `json:"connections,omitempty"` // transports to the server
	ReadSize    uint64 `json:"read_size,omitempty"`   // bytes of the largest read request
	Session     bool   `json:"session,omitempty"`     // requests need slots of a session, which all connections share

	Waiting uint64 `json:"waiting,omitempty"` // requests without an answer at this reading
	// WaitingTime is Waiting x time, since Began. It is summed from samples, one with each tick.
	WaitingTime   time.Duration `json:"waiting_time,omitempty"`
	MaxBackground uint64        `json:"max_background,omitempty"`       // limit of requests that no thread waits for
	Congestion    uint64        `json:"congestion_threshold,omitempty"` // of these, from which the file system counts as congested

	Has MountFields `json:"has,omitempty"`

	// Began is when it was mounted, where the kernel says so; else when it was first seen, or was last seen before its
	// counters began again.
	Began Stamp `json:"began,omitzero"`
}

// MountOperations are the operations of one class. Times are sums over operations.
type MountOperations struct {
	Operations uint64        `json:"operations,omitempty"`
	Bytes      uint64        `json:"bytes,omitempty"`      // that came from or went to the server
	Queue      time.Duration `json:"queue,omitempty"`      // before the request was sent
	RoundTrip  time.Duration `json:"round_trip,omitempty"` // from sending to the answer
	Time       time.Duration `json:"time,omitempty"`       // of the whole operation, queue and round trip included
}

// MountFields says what the kernel counts for a mount. Other fields are zero.
type MountFields uint8

const (
	HasMountOperations MountFields = 1 << iota // Operations and Bytes of Read and Write, and Operations of Other
	HasMountRequests                           // these are requests to the server. Else they are calls of programs
	HasMountTime                               // Time
	HasMountTransport                          // Queue, RoundTrip, Retransmissions, Timeouts
	HasMountCalled                             // Called
	HasMountWaiting                            // Waiting, WaitingTime
	HasMountLimits                             // MaxBackground, Congestion
)

// GPUDirect are the totals of GPUDirect Storage (nvidia-fs): transfers between storage and GPUs without the page cache.
type GPUDirect struct {
	Read        GPUDirectTransfers `json:"read"`
	Write       GPUDirectTransfers `json:"write"`
	HasTransfer bool               `json:"has_transfer,omitempty"` // operations and bytes are counted: rw_stats_enabled is set
}

// GPUDirectTransfers are those of one direction.
type GPUDirectTransfers struct {
	Operations uint64 `json:"operations,omitempty"`
	Bytes      uint64 `json:"bytes,omitempty"` // in whole MiB, as the driver prints them
	Errors     uint64 `json:"errors,omitempty"`
}

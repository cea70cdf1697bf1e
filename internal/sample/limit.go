package sample

// Limit is what a cgroup allows its processes on one block device, per second. 0 stands for no limit.
type Limit struct {
	Device     string       `json:"device"` // its name, as Disk.Name
	Cgroup     string       `json:"cgroup"` // its path, as in /proc/PID/cgroup
	Control    LimitControl `json:"control"`
	ReadBytes  uint64       `json:"read_bytes,omitempty"`
	WriteBytes uint64       `json:"write_bytes,omitempty"`
	Reads      uint64       `json:"reads,omitempty"` // operations
	Writes     uint64       `json:"writes,omitempty"`
}

// LimitControl is the interface of the kernel by which a limit is set.
type LimitControl string

// The controls.
const (
	IOMax         LimitControl = "io.max"         // cgroup v2 (Documentation/admin-guide/cgroup-v2.rst)
	BlkioThrottle LimitControl = "blkio.throttle" // cgroup v1 (Documentation/admin-guide/cgroup-v1/blkio-controller.rst)
)

// LimitKind selects a value of a Limit.
type LimitKind uint8

// The kinds.
const (
	ReadBytesLimit LimitKind = iota + 1
	WriteBytesLimit
	ReadsLimit
	WritesLimit
)

// Value returns where the limit keeps a kind; nil for no kind.
func (l *Limit) Value(k LimitKind) *uint64 {
	switch k {
	case ReadBytesLimit:
		return &l.ReadBytes
	case WriteBytesLimit:
		return &l.WriteBytes
	case ReadsLimit:
		return &l.Reads
	case WritesLimit:
		return &l.Writes
	}
	return nil
}

// Empty reports whether nothing is limited.
func (l *Limit) Empty() bool {
	return l.ReadBytes == 0 && l.WriteBytes == 0 && l.Reads == 0 && l.Writes == 0
}

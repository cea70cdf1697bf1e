package sample

import "time"

// Schedule is what the kernel's scheduler reported of the threads of followed jobs, between two readings. Every thread
// is on a CPU, ready for one, or paused, without a gap. Times are Stamp.Mono.
type Schedule struct {
	Until  time.Duration `json:"until"`            // the events are complete up to this moment, except for sums
	Events []ThreadEvent `json:"events,omitempty"` // in the order of At
	Lost   uint64        `json:"lost,omitempty"`   // events that found no room since the previous reading
	Arch   string        `json:"arch,omitempty"`   // GOARCH of the machine, which numbers the system calls; "" if it is this one's
}

// ThreadEvent is a change of state of one thread.
type ThreadEvent struct {
	At   time.Duration   `json:"at"`
	Kind ThreadEventKind `json:"kind"`
	TID  int             `json:"tid"`
	PID  int             `json:"pid"` // thread group

	// Of ThreadBegan.
	Job     string `json:"job,omitempty"`
	Creator int    `json:"creator,omitempty"` // thread that forked or cloned it; 0 if it was there before the job was followed
	Name    string `json:"name,omitempty"`    // at most 15 bytes that a program chose (task_struct.comm): any bytes. Also of ThreadNamed

	// Of ThreadOut.
	State    ThreadState   `json:"state,omitempty"`
	IOWait   bool          `json:"io_wait,omitempty"`  // task_struct.in_iowait: it waits for a block device
	Syscall  int           `json:"syscall,omitempty"`  // number in which it pauses; NoSyscall in a page fault
	File     FileKind      `json:"file,omitempty"`     // of the descriptor that is the first argument of Syscall
	Detail   uint64        `json:"detail,omitempty"`   // the file's inode number, or device number if it is a device; of a futex its address
	Peer     string        `json:"peer,omitempty"`     // of a socket: "10.0.0.7:443 over TCP", "unix", "netlink" or the like; "" if it has none
	Fetching time.Duration `json:"fetching,omitempty"` // CPU time for having a block device or file server read, since the previous ThreadOut
	Stolen   time.Duration `json:"stolen,omitempty"`   // time since then that it was on a CPU and that the hypervisor stole from that CPU
	Fetched  uint64        `json:"fetched,omitempty"`  // bytes that these were asked for since then (task_io_accounting.read_bytes)
	Chars    uint64        `json:"chars,omitempty"`    // bytes that its read calls returned since then (rchar)

	// Of ThreadIn.
	Woken     time.Duration `json:"woken,omitempty"` // when it became ready; 0 if it always was, as after preemption
	Waker     int           `json:"waker,omitempty"` // thread that woke it, if that ran in process context
	WakerPID  int           `json:"waker_pid,omitempty"`
	WakerKind WakerKind     `json:"waker_kind,omitempty"`

	// Of ThreadSum, which replaces the events of a thread from From to At when there were too many of them.
	From    time.Duration `json:"from,omitempty"`
	Running time.Duration `json:"running,omitempty"` // the parts of the time from From to At
	Ready   time.Duration `json:"ready,omitempty"`
	Blocked time.Duration `json:"blocked,omitempty"` // as IOWait, or StateBlocked, and until it had a CPU again
	Asleep  time.Duration `json:"asleep,omitempty"`  // the rest; Syscall, File, Detail, Peer and Waker are of the longest
}

// ThreadEventKind is the kind of a ThreadEvent.
type ThreadEventKind uint8

// The kinds of events. A ThreadSum ends when its thread leaves a CPU: a ThreadIn and a ThreadOut of the same moment
// follow, and the ThreadOut shows the pause. A sum of waits for storage also ends when its thread wakes another one: a
// ThreadIn follows alone. A sum can come late: its thread ran, or paused for less than 10 ms. Until then the thread's
// newest event is the ThreadIn or ThreadOut with which the sum begins. Fetching, Stolen, Fetched and Chars of a
// ThreadSum count since the previous ThreadOut or ThreadSum.
const (
	ThreadBegan ThreadEventKind = iota + 1 // it is followed from now on; its state shows in its next event
	ThreadOut                              // it left a CPU
	ThreadIn                               // it got a CPU
	ThreadSum
	ThreadNamed // it is called Name from now on; also of a thread that is not followed and woke one that is
	ThreadFound // just before ThreadIn: Syscall, File, Detail and Peer of what ended a pause in poll or the like
)

// ThreadState is why a thread left its CPU.
type ThreadState uint8

// The states.
const (
	StateReady   ThreadState = iota // it was preempted, or yielded, and is ready
	StateAsleep                     // TASK_INTERRUPTIBLE
	StateBlocked                    // TASK_UNINTERRUPTIBLE or TASK_KILLABLE
	StateDead                       // it ended
	StateStopped                    // by a signal or a debugger
)

// FileKind is what a descriptor stands for.
type FileKind uint8

// The kinds of files.
const (
	NoFile FileKind = iota
	RegularFile
	Directory
	Pipe
	Socket
	CharDevice
	BlockDevice
	OtherFile // without a type: epoll, eventfd, timerfd, io_uring
)

// WakerKind is the context in which a thread was woken.
type WakerKind uint8

// The contexts.
const (
	NoWaker      WakerKind = iota
	UserThread             // a thread of a program, in process context: followed or not
	KernelThread           // PF_KTHREAD, such as a kworker
	Interrupt              // a hard interrupt: a device or a timer. Waker means nothing
	SoftIRQ                // a soft interrupt. Waker is the thread that sends, if it runs a send or write call; else 0
)

// NoSyscall is the Syscall of a thread that paused in a page fault, or in user mode.
const NoSyscall = -1

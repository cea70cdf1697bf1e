package sample

import "time"

// Moments is what the leading threads of jobs, and those that they may wait for, were in at random moments since the
// previous reading. Times are Stamp.Mono.
type Moments struct {
	Until   time.Duration `json:"until"`          // up to which Threads are watched
	Arch    string        `json:"arch,omitempty"` // GOARCH of the machine, which numbers the system calls; "" if it is this one's
	Threads []Watched     `json:"threads,omitempty"`
}

// Watched is a leading thread from one reading to the next. The counters are of that time; they are 0 without Counted.
type Watched struct {
	TID     int           `json:"tid"`
	Job     string        `json:"job"`
	Drives  bool          `json:"drives,omitempty"` // a GPU
	From    time.Duration `json:"from"`
	Counted bool          `json:"counted,omitempty"`
	Ran     time.Duration `json:"ran,omitempty"`     // on a CPU (/proc/PID/task/TID/schedstat)
	Ready   time.Duration `json:"ready,omitempty"`   // ready, and without a CPU
	System  time.Duration `json:"system,omitempty"`  // part of Ran, in the kernel (stat, in ticks of 10 ms)
	Fetched uint64        `json:"fetched,omitempty"` // bytes from storage (io, read_bytes); 0 where that is not readable
	Chars   uint64        `json:"chars,omitempty"`   // bytes that its read calls returned (rchar)
	Moments []Moment      `json:"moments,omitempty"` // in the order of At
}

// Moment is what a leading thread was in, and what others of its job were in if it slept.
type Moment struct {
	At time.Duration `json:"at"`
	In
	Others []Other `json:"others,omitempty"`
	Unseen float64 `json:"unseen,omitempty"` // for how many threads Others stand that were not looked at
}

// In is what a thread is in at a moment.
type In struct {
	State   ThreadState `json:"state,omitempty"`   // StateReady: on a CPU, or ready for one
	Syscall int         `json:"syscall,omitempty"` // in which it pauses; NoSyscall in a page fault, UnknownSyscall if it cannot be read
	File    FileKind    `json:"file,omitempty"`    // of the descriptor that is the first argument of Syscall
	Detail  uint64      `json:"detail,omitempty"`  // the device number, if that is a device
	Peer    string      `json:"peer,omitempty"`    // of a socket, as ThreadEvent has it
	Lock    bool        `json:"lock,omitempty"`    // blocked, by a lock in the kernel that another thread holds (wchan)
}

// Other is what some other threads of a job were in at a moment of a leading thread.
type Other struct {
	In
	Same   bool    `json:"same,omitempty"`   // they are of the leading thread's process
	Reads  bool    `json:"reads,omitempty"`  // they have read data in the last seconds
	Spins  bool    `json:"spins,omitempty"`  // they were never seen to sleep in the last seconds
	System float64 `json:"system,omitempty"` // of those that read: share of their time on a CPU in the kernel, in steps of 0.05
	Weight float64 `json:"weight"`           // how many: each that was looked at stands for those that were not
}

// UnknownSyscall is the Syscall of a thread whose calls this process may not see.
const UnknownSyscall = -2

package sample

// Call is what a system call waits for.
type Call uint8

// The kinds of calls. "On a descriptor" means that the first argument is one.
const (
	OtherCall   Call = iota // on a descriptor, if it looks like one
	NoCall                  // in a page fault, or in user mode
	FileCall                // on a descriptor: reads it, or does anything else with it that no other kind is for
	WriteCall               // on a descriptor: writes to it
	ReceiveCall             // on a descriptor
	SendCall                // on a descriptor
	ConnectCall             // on a descriptor
	AcceptCall              // on a descriptor
	LockCall                // futex
	FlockCall               // on a descriptor: lock of a file
	SleepCall
	SignalCall     // waits for a signal
	ChildCall      // waits for a process
	PollCall       // waits for one of a list of descriptors, whose length is the second argument
	SelectCall     // waits for one of a set of descriptors
	EpollCall      // on a descriptor: waits for one of those that it stands for
	IoctlCall      // on a descriptor
	AIOCall        // waits for asynchronous I/O
	YieldCall      // gives its CPU to others, and waits for nothing
	ForkCall       // begins a process or a thread
	ExecCall       // begins another program
	MapCall        // changes the memory map, and may read a file
	UnmapCall      // changes the memory map, and reads no file
	Calls      int = iota
)

// Polls reports whether a call waits for one of several descriptors.
func (c Call) Polls() bool { return c == PollCall || c == SelectCall || c == EpollCall }

// OnDescriptor reports whether the first argument of a call is a descriptor, if it looks like one.
func (c Call) OnDescriptor() bool {
	switch c {
	case NoCall, LockCall, SleepCall, SignalCall, ChildCall, PollCall, SelectCall, AIOCall, ForkCall, ExecCall, MapCall,
		UnmapCall:
		return false
	}
	return true
}

// calls maps the numbers of system calls, by GOARCH, to what they wait for (arch/x86/entry/syscalls/syscall_64.tbl,
// include/uapi/asm-generic/unistd.h).
var calls = map[string]map[int]Call{
	"amd64": {
		0: FileCall, 1: WriteCall, 17: FileCall, 18: WriteCall, 19: FileCall, 20: WriteCall, 295: FileCall,
		296: WriteCall, 327: FileCall, 328: WriteCall, 40: WriteCall, 275: WriteCall, 326: FileCall,
		74: FileCall, 75: FileCall, 162: FileCall, 277: FileCall, 306: FileCall, 26: FileCall, 217: FileCall,
		78: FileCall, 221: FileCall, 187: FileCall, 45: ReceiveCall, 47: ReceiveCall, 299: ReceiveCall,
		44: SendCall, 46: SendCall, 307: SendCall, 42: ConnectCall, 43: AcceptCall, 288: AcceptCall,
		202: LockCall, 449: LockCall, 454: LockCall, 455: LockCall, 73: FlockCall, 72: FlockCall,
		35: SleepCall, 230: SleepCall, 34: SleepCall, 61: ChildCall, 247: ChildCall, 7: PollCall, 23: SelectCall,
		270: SelectCall, 271: PollCall, 232: EpollCall, 281: EpollCall, 441: EpollCall, 16: IoctlCall, 208: AIOCall,
		333: AIOCall, 426: AIOCall, 24: YieldCall, 56: ForkCall, 57: ForkCall, 58: ForkCall, 435: ForkCall,
		10: UnmapCall, 11: UnmapCall, 12: UnmapCall, 9: MapCall, 28: MapCall, 59: ExecCall, 128: SignalCall, 130: SignalCall,
	},
	"arm64": {
		63: FileCall, 64: WriteCall, 65: FileCall, 66: WriteCall, 67: FileCall, 68: WriteCall, 69: FileCall,
		70: WriteCall, 286: FileCall, 287: WriteCall, 71: WriteCall, 76: WriteCall, 285: FileCall,
		82: FileCall, 83: FileCall, 81: FileCall, 84: FileCall, 267: FileCall, 227: FileCall, 61: FileCall,
		213: FileCall, 223: FileCall, 207: ReceiveCall, 212: ReceiveCall, 243: ReceiveCall, 206: SendCall,
		211: SendCall, 269: SendCall, 203: ConnectCall, 202: AcceptCall, 242: AcceptCall, 98: LockCall,
		449: LockCall, 454: LockCall, 455: LockCall, 32: FlockCall, 25: FlockCall, 101: SleepCall,
		115: SleepCall, 260: ChildCall, 95: ChildCall, 72: SelectCall, 73: PollCall, 22: EpollCall, 441: EpollCall,
		29: IoctlCall, 4: AIOCall, 292: AIOCall, 426: AIOCall, 124: YieldCall, 220: ForkCall, 435: ForkCall,
		226: UnmapCall, 215: UnmapCall, 214: UnmapCall, 222: MapCall, 233: MapCall, 221: ExecCall, 133: SignalCall,
		137: SignalCall,
	},
}

// CallOf returns the kind of a system call by its number on a machine with such a GOARCH.
func CallOf(arch string, number int) Call {
	if number == NoSyscall {
		return NoCall
	}
	return calls[arch][number]
}

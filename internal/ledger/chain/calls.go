package chain

import "github.com/stallspan/stallspan/internal/sample"

// call is what a system call waits for.
type call uint8

const (
	otherCall call = iota
	noCall         // in a page fault, or in user mode
	fileCall       // reads a descriptor, or does anything else with it that no other kind is for
	writeCall      // writes to a descriptor
	receiveCall
	sendCall
	connectCall
	acceptCall
	lockCall  // futex
	flockCall // lock of a file
	sleepCall
	childCall // waits for a process
	pollCall  // waits for one of several descriptors
	ioctlCall
	aioCall   // waits for asynchronous I/O
	yieldCall // gives its CPU to others, and waits for nothing
	forkCall  // begins a process or a thread, or another program
	unmapCall // changes the memory map, and reads no file
)

// calls maps the numbers of system calls, by GOARCH, to what they wait for (arch/x86/entry/syscalls/syscall_64.tbl,
// include/uapi/asm-generic/unistd.h).
var calls = map[string]map[int]call{
	"amd64": {
		0: fileCall, 1: writeCall, 17: fileCall, 18: writeCall, 19: fileCall, 20: writeCall, 295: fileCall,
		296: writeCall, 327: fileCall, 328: writeCall, 40: writeCall, 275: writeCall, 326: fileCall,
		74: fileCall, 75: fileCall, 162: fileCall, 277: fileCall, 306: fileCall, 26: fileCall, 217: fileCall,
		78: fileCall, 221: fileCall, 187: fileCall, 45: receiveCall, 47: receiveCall, 299: receiveCall,
		44: sendCall, 46: sendCall, 307: sendCall, 42: connectCall, 43: acceptCall, 288: acceptCall,
		202: lockCall, 449: lockCall, 454: lockCall, 455: lockCall, 73: flockCall, 72: flockCall,
		35: sleepCall, 230: sleepCall, 34: sleepCall, 61: childCall, 247: childCall, 7: pollCall, 23: pollCall,
		270: pollCall, 271: pollCall, 232: pollCall, 281: pollCall, 441: pollCall, 16: ioctlCall, 208: aioCall,
		333: aioCall, 426: aioCall, 24: yieldCall, 56: forkCall, 57: forkCall, 58: forkCall, 435: forkCall,
		10: unmapCall, 11: unmapCall, 12: unmapCall,
	},
	"arm64": {
		63: fileCall, 64: writeCall, 65: fileCall, 66: writeCall, 67: fileCall, 68: writeCall, 69: fileCall,
		70: writeCall, 286: fileCall, 287: writeCall, 71: writeCall, 76: writeCall, 285: fileCall,
		82: fileCall, 83: fileCall, 81: fileCall, 84: fileCall, 267: fileCall, 227: fileCall, 61: fileCall,
		213: fileCall, 223: fileCall, 207: receiveCall, 212: receiveCall, 243: receiveCall, 206: sendCall,
		211: sendCall, 269: sendCall, 203: connectCall, 202: acceptCall, 242: acceptCall, 98: lockCall,
		449: lockCall, 454: lockCall, 455: lockCall, 32: flockCall, 25: flockCall, 101: sleepCall,
		115: sleepCall, 260: childCall, 95: childCall, 72: pollCall, 73: pollCall, 22: pollCall, 441: pollCall,
		29: ioctlCall, 4: aioCall, 292: aioCall, 426: aioCall, 124: yieldCall, 220: forkCall, 435: forkCall,
		226: unmapCall, 215: unmapCall, 214: unmapCall,
	},
}

func callOf(arch string, number int) call {
	if number == sample.NoSyscall {
		return noCall
	}
	return calls[arch][number]
}

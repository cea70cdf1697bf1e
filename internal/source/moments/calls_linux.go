package moments

import "runtime"

// callKind says what the first argument of a system call is.
type callKind uint8

const (
	onFile callKind = iota // a descriptor, if it looks like one
	noFile                 // something else
	onPoll                 // a list of descriptors, and the second one is its length
	onIO                   // what asynchronous I/O is waited for with
)

// calls are the system calls in which threads pause most and whose first argument is no descriptor, by GOARCH
// (arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h).
var calls = map[string]map[int]callKind{
	"amd64": {
		202: noFile, 449: noFile, 454: noFile, 455: noFile, 35: noFile, 230: noFile, 34: noFile, 130: noFile,
		61: noFile, 247: noFile, 7: onPoll, 23: noFile, 270: noFile, 271: onPoll, 128: noFile, 208: onIO,
		333: onIO, 426: onIO, 56: noFile, 57: noFile, 58: noFile, 59: noFile, 435: noFile,
		9: noFile, 10: noFile, 11: noFile, 12: noFile, 28: noFile,
	},
	"arm64": {
		98: noFile, 449: noFile, 454: noFile, 455: noFile, 101: noFile, 115: noFile, 133: noFile, 260: noFile,
		95: noFile, 72: noFile, 73: onPoll, 137: noFile, 4: onIO, 292: onIO, 426: onIO, 220: noFile, 221: noFile, 435: noFile,
		222: noFile, 226: noFile, 215: noFile, 214: noFile, 233: noFile,
	},
}[runtime.GOARCH]

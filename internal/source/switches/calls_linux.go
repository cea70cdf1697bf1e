package switches

import "runtime"

// callKind says what the first argument of a system call is.
type callKind uint8

const (
	onFile  callKind = iota // a descriptor, if it looks like one
	noFile                  // something else
	onTimer                 // and it waits for a timer alone
	onFutex                 // the address of a futex
)

// calls are the system calls in which threads pause most and that have no descriptor, by GOARCH
// (arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h).
var calls = map[string]map[int]callKind{
	"amd64": {
		202: onFutex, 449: noFile, 454: noFile, 455: noFile, 35: onTimer, 230: onTimer, 34: noFile, 130: noFile,
		61: noFile, 247: noFile, 7: noFile, 23: noFile, 270: noFile, 271: noFile, 128: noFile, 208: noFile, 333: noFile,
	},
	"arm64": {
		98: onFutex, 449: noFile, 454: noFile, 455: noFile, 101: onTimer, 115: onTimer, 133: noFile, 260: noFile,
		95: noFile, 72: noFile, 73: noFile, 137: noFile, 4: noFile, 292: noFile,
	},
}[runtime.GOARCH]

func isTimer(syscall int) bool { return calls[syscall] == onTimer }

package wrap

import (
	"fmt"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/internal/window"
)

// faults say what a signal of the kernel means.
var faults = map[unix.Signal]string{
	unix.SIGBUS:  "it read a mapped file that could not be read, or that is shorter now",
	unix.SIGSEGV: "it used memory that it does not have",
	unix.SIGILL:  "it ran an instruction that this CPU does not have",
	unix.SIGXCPU: "its limit of CPU time is used up",
	unix.SIGXFSZ: "its limit of the size of files is reached",
}

// OutcomeOf says how a program ended. stop is the signal by which a user or supervisor ended it; 0 for none.
// outOfMemory is why the kernel killed one of its processes, "" if it did not. The zero value is a program that
// succeeded.
func OutcomeOf(status *os.ProcessState, stop unix.Signal, outOfMemory string) window.Outcome {
	code, by := status.ExitCode(), unix.Signal(0)
	wait, ok := status.Sys().(syscall.WaitStatus)
	switch {
	case ok && wait.Signaled():
		by = wait.Signal()
	case code > cli.ExitSignalBase && unix.SignalName(unix.Signal(code-cli.ExitSignalBase)) != "":
		by = unix.Signal(code - cli.ExitSignalBase) // a shell says so about its program
	case code == 0 && stop == 0:
		return window.Outcome{}
	}
	o := window.Outcome{Unfinished: true, Ended: fmt.Sprintf("exit code %d", code)}
	if by != 0 {
		o.Ended = nameOf(by)
	} else if stop != 0 {
		o.Ended = nameOf(stop) + ", then " + o.Ended
	}
	if stop == 0 && !slices.Contains(ending, os.Signal(by)) {
		o.Failed = true
		if why := cause(by, outOfMemory); why != "" {
			o.Ended += ": " + why
		}
	}
	return o
}

func nameOf(s unix.Signal) string {
	if s == unix.SIGINT {
		return "SIGINT (^C)"
	}
	return unix.SignalName(s)
}

// cause says why a signal came, or which other process of a program was killed.
func cause(by unix.Signal, why string) string {
	switch {
	case why == "" || by != 0 && by != unix.SIGKILL:
		return faults[by]
	case by == 0:
		return "the kernel killed one of its processes, " + why
	}
	return why
}

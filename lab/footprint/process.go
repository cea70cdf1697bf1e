package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// process is the id of a measured process.
type process int

// standInThread is the name of the thread of testdata/fakenvml that plays its file. The driver has no such thread.
const standInThread = "fakenvml"

// onCPU returns the CPU time of all threads without the stand-in's: /proc/PID/task/TID/schedstat in nanoseconds
// (Documentation/scheduler/sched-stats.rst). Threads of a Go program stay.
func (p process) onCPU() (spent time.Duration, err error) {
	folder := fmt.Sprintf("/proc/%d/task", p)
	threads, err := os.ReadDir(folder)
	if err != nil {
		return 0, err
	}
	for _, t := range threads {
		name, err := os.ReadFile(folder + "/" + t.Name() + "/comm")
		if err != nil {
			return 0, err
		}
		if strings.TrimSpace(string(name)) == standInThread {
			continue
		}
		text, err := os.ReadFile(folder + "/" + t.Name() + "/schedstat")
		if err != nil {
			return 0, err
		}
		first, _, _ := strings.Cut(string(text), " ")
		n, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return 0, err
		}
		spent += time.Duration(n)
	}
	return spent, nil
}

// resident returns the process's memory in bytes: VmRSS of /proc/PID/status.
func (p process) resident() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no VmRSS", p)
}

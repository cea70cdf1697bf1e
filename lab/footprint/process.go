package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// process is the id of a measured process.
type process int

// rows does something for all agents at the same time, and prints what each used during that time and its memory
// afterwards. length is how long to measure; 0 for as long as do takes.
func rows(all []*agent, what string, length time.Duration, do func(*agent) error) error {
	cells, errs := make([]string, len(all)), make([]error, len(all))
	var done sync.WaitGroup
	for i, a := range all {
		done.Go(func() {
			cells[i], errs[i] = a.measure(length, func() error { return do(a) })
		})
	}
	done.Wait()
	fmt.Printf("%-58s %s\n", what, strings.Join(cells, ""))
	return errors.Join(errs...)
}

func (p process) measure(length time.Duration, do func() error) (cells string, err error) {
	before, err := p.onCPU()
	if err != nil {
		return "", err
	}
	began := time.Now()
	if err := do(); err != nil {
		return "", err
	}
	took := time.Since(began)
	after, err := p.onCPU()
	if err != nil {
		return "", err
	}
	resident, err := p.resident()
	share := "-"
	if length > 0 {
		share = fmt.Sprintf("%.2f %%", 100*(after-before).Seconds()/took.Seconds())
	}
	return fmt.Sprintf("%12s %11.1f MB", share, float64(resident)/1e6), err
}

// standInThread is the name of the thread of testdata/fakenvml that plays its file. The driver has no such thread.
const standInThread = "fakenvml"

// onCPU returns the CPU time of all threads without the stand-in's.
func (p process) onCPU() (time.Duration, error) {
	own, _, err := p.times()
	return own, err
}

// times returns the CPU time of all threads, and of the stand-in's apart from them:
// /proc/PID/task/TID/schedstat in nanoseconds (Documentation/scheduler/sched-stats.rst). Threads of a Go program stay.
func (p process) times() (own, standIn time.Duration, err error) {
	folder := fmt.Sprintf("/proc/%d/task", p)
	threads, err := os.ReadDir(folder)
	if err != nil {
		return 0, 0, err
	}
	for _, t := range threads {
		text, err := os.ReadFile(folder + "/" + t.Name() + "/schedstat")
		if err != nil {
			return 0, 0, err
		}
		first, _, _ := strings.Cut(string(text), " ")
		n, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return 0, 0, err
		}
		name, err := os.ReadFile(folder + "/" + t.Name() + "/comm")
		if err != nil {
			return 0, 0, err
		}
		if strings.TrimSpace(string(name)) == standInThread {
			standIn += time.Duration(n)
		} else {
			own += time.Duration(n)
		}
	}
	return own, standIn, nil
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

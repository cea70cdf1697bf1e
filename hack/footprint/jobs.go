package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	workVariable = "STALLSPAN_FOOTPRINT_WORK" // makes this program one of the jobs
	workPause    = 100 * time.Millisecond
	workSteps    = 100_000          // about 0.1 ms on a core of 2.5 GHz
	workBytes    = 64 << 10         // read from memory in each step
	jobsStart    = 40 * time.Second // until all are followed
)

// crowded starts jobs that hold memory of GPUs, and measures an agent that follows them next to one on whose GPUs
// no process holds memory. Both have the same GPUs, of the stand-in for the driver.
func crowded(binary, nvml string, gpus, jobs, rounds int, length time.Duration) (err error) {
	if nvml, err = filepath.Abs(nvml); err != nil {
		return err
	}
	var pids []int
	var running []*exec.Cmd
	defer func() {
		for _, c := range running {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for range jobs {
		c := exec.Command(self)
		c.Env = append(os.Environ(), workVariable+"=1", "GOMAXPROCS=1")
		if err := c.Start(); err != nil {
			return err
		}
		running = append(running, c)
		pids = append(pids, c.Process.Pid)
	}
	var all []*agent
	defer func() {
		for _, a := range all {
			err = errors.Join(err, a.stop())
		}
	}()
	for _, held := range [][]int{nil, pids} {
		a, err := startGPUs(binary, nvml, gpus, held)
		if err != nil {
			return err
		}
		all = append(all, a)
	}
	time.Sleep(jobsStart) // a few holders are followed in each second
	return compareJobs(all[0], all[1], fmt.Sprintf("%d GPUs, %d jobs", gpus, jobs), rounds, length)
}

// startGPUs starts an agent with GPUs on which processes hold memory, each on one.
func startGPUs(binary, nvml string, gpus int, pids []int) (*agent, error) {
	dir, err := os.MkdirTemp("", "footprint")
	if err != nil {
		return nil, err
	}
	held := make([][]string, gpus)
	for i, pid := range pids {
		held[i%gpus] = append(held[i%gpus], fmt.Sprintf("%d:%d", pid, 1<<30))
	}
	var text strings.Builder
	text.WriteString("clock monotonic\n")
	for i := range gpus {
		fmt.Fprintf(&text, "gpu %d utilization=%d", i, 30+i)
		if len(held[i]) > 0 {
			text.WriteString(" processes=" + strings.Join(held[i], ","))
		}
		text.WriteString("\n")
	}
	config, file := filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "gpus")
	err = errors.Join(os.WriteFile(config, fmt.Appendf(nil, "sampling: {nvml: %q}\n", nvml), 0o600),
		os.WriteFile(file, []byte(text.String()), 0o600))
	if err != nil {
		return nil, err
	}
	a, err := launch(binary, dir, []string{"--config", config}, "FAKENVML_FILE="+file)
	if err != nil {
		return nil, errors.Join(err, a.stop())
	}
	return a, nil
}

// compareJobs prints what both agents use at the same time, round by round.
func compareJobs(without, with *agent, what string, rounds int, length time.Duration) error {
	var shares [2][]float64
	more := make([]float64, rounds)
	for i := range rounds {
		var before, after [2]time.Duration
		var err error
		read := func(into *[2]time.Duration) {
			for k, a := range []*agent{without, with} {
				one, failed := a.onCPU()
				into[k], err = one, errors.Join(err, failed)
			}
		}
		read(&before)
		began := time.Now()
		time.Sleep(length)
		read(&after)
		if err != nil {
			return err
		}
		for k := range shares {
			shares[k] = append(shares[k], 100*(after[k]-before[k]).Seconds()/time.Since(began).Seconds())
		}
		more[i] = shares[1][i] - shares[0][i]
		fmt.Printf("%-30s %7.2f %% without jobs, %7.2f %% with, %7.2f %% more\n", fmt.Sprintf("round %d, %v", i+1, length),
			shares[0][i], shares[1][i], more[i])
	}
	var resident [2]int64
	for k, a := range []*agent{without, with} {
		var err error
		if resident[k], err = a.resident(); err != nil {
			return err
		}
	}
	fmt.Printf("%-30s %7.2f %% without jobs, %7.2f %% with, %7.2f %% more (%.2f to %.2f)\n", "medians: "+what,
		median(shares[0]), median(shares[1]), median(more), slices.Min(more), slices.Max(more))
	fmt.Printf("%-30s %7.1f MB without jobs, %6.1f MB with\n", "resident", float64(resident[0])/1e6,
		float64(resident[1])/1e6)
	return nil
}

// work is what a job does: little, ten times a second, until it is killed.
func work() {
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		fmt.Fprintln(os.Stderr, "footprint:", err)
		return
	}
	buf := make([]byte, workBytes)
	for sum := byte(0); ; time.Sleep(workPause) {
		_, _ = file.ReadAt(buf, 0)
		for i := range workSteps {
			sum = sum*31 + buf[i%workBytes]
		}
		buf[0] = sum
	}
}

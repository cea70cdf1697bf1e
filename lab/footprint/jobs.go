package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	workVariable = "STALLSPAN_FOOTPRINT_WORK" // makes this program one of the jobs: its pause between two steps
	workSteps    = 100_000                    // about 0.1 ms on a core of 2.5 GHz
	workBytes    = 64 << 10                   // read from memory in each step
	jobsStart    = 40 * time.Second           // until all are followed
)

// Of the second part.
const (
	crowdJobs  = 64
	crowdGPUs  = 16
	crowdPause = 100 * time.Millisecond // between two steps of a job
)

// crowded measures agents of one or two builds, at the same time, that follow jobs which hold memory of GPUs.
func crowded(nvml string, rounds int, length time.Duration, binaries ...string) (costs []cost, err error) {
	if nvml, err = filepath.Abs(nvml); err != nil {
		return nil, err
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
		return nil, err
	}
	for range crowdJobs {
		c := exec.Command(self)
		c.Env = append(os.Environ(), workVariable+"="+crowdPause.String(), "GOMAXPROCS=1")
		if err := c.Start(); err != nil {
			return nil, err
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
	copies, err := copied(binaries)
	defer func() { _ = os.RemoveAll(copies.dir) }()
	if err != nil {
		return nil, err
	}
	for _, binary := range copies.paths {
		a, err := startGPUs(binary, nvml, crowdGPUs, pids)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	time.Sleep(jobsStart) // a few holders are followed in each second
	shares, err := sharesOf(all, rounds, length)
	for i := range shares {
		what := copies.name(i) + fmt.Sprintf("%d jobs on %d GPUs, of one core", crowdJobs, crowdGPUs)
		costs = append(costs, cost{what, shares[i], 4, "%"})
	}
	return costs, err
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
	settings := fmt.Appendf(nil, "sampling: {nvml: %q}\n", nvml)
	err = errors.Join(os.WriteFile(config, settings, 0o600),
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

// work is what a job does: little, again and again, until it is killed.
func work() {
	pause, err := time.ParseDuration(os.Getenv(workVariable))
	if err != nil {
		fmt.Fprintln(os.Stderr, "footprint:", err)
		return
	}
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		fmt.Fprintln(os.Stderr, "footprint:", err)
		return
	}
	buf := make([]byte, workBytes)
	for sum := byte(0); ; time.Sleep(pause) {
		_, _ = file.ReadAt(buf, 0)
		for i := range workSteps {
			sum = sum*31 + buf[i%workBytes]
		}
		buf[0] = sum
	}
}

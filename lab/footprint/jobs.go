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
	workVariable = "STALLSPAN_FOOTPRINT_WORK" // makes this program one of the jobs: its pause between two steps
	workSteps    = 100_000                    // about 0.1 ms on a core of 2.5 GHz
	workBytes    = 64 << 10                   // read from memory in each step
	jobsStart    = 40 * time.Second           // until all are followed
)

// crowded starts jobs that hold memory of GPUs, and measures an agent that follows them next to one on whose GPUs
// no process holds memory: two of each build, with its setting of sampling.detect. All have the same GPUs, of the
// stand-in for the driver.
func crowded(nvml string, gpus, jobs, rounds int, length, pause time.Duration, detected []string, binaries ...string) (
	err error,
) {
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
		c.Env = append(os.Environ(), workVariable+"="+pause.String(), "GOMAXPROCS=1")
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
	var pairs []pair
	copies, err := copied(binaries)
	defer func() { _ = os.RemoveAll(copies.dir) }()
	if err != nil {
		return err
	}
	for i, binary := range copies.paths {
		var of pair
		for k, held := range [][]int{nil, pids} {
			if of[k], err = startGPUs(binary, nvml, detected[i], gpus, held); err != nil {
				return err
			}
			all = append(all, of[k])
		}
		pairs = append(pairs, of)
	}
	time.Sleep(jobsStart) // a few holders are followed in each second
	return compareJobs(pairs, fmt.Sprintf("%d GPUs, %d jobs", gpus, jobs), rounds, length)
}

// pair are two agents of one build: without jobs, and with.
type pair [2]*agent

// startGPUs starts an agent with GPUs on which processes hold memory, each on one.
func startGPUs(binary, nvml, detected string, gpus int, pids []int) (*agent, error) {
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
	settings := fmt.Appendf(nil, "sampling: {nvml: %q, detect: %q}\n", nvml, detected)
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

// compareJobs prints what all agents use at the same time, round by round.
func compareJobs(pairs []pair, what string, rounds int, length time.Duration) error {
	type times struct{ own, standIn time.Duration }
	read := func() (now [][2]times, err error) {
		now = make([][2]times, len(pairs))
		for i, of := range pairs {
			for k, a := range of {
				var failed error
				now[i][k].own, now[i][k].standIn, failed = a.times()
				err = errors.Join(err, failed)
			}
		}
		return now, err
	}
	shares := make([][4][]float64, len(pairs)) // without, with, more; the stand-in
	for i := range rounds {
		before, err := read()
		if err != nil {
			return err
		}
		began := time.Now()
		time.Sleep(length)
		after, err := read()
		if err != nil {
			return err
		}
		took := time.Since(began).Seconds()
		for p := range pairs {
			share := func(k int) float64 { return 100 * (after[p][k].own - before[p][k].own).Seconds() / took }
			without, with := share(0), share(1)
			playing := 100 * (after[p][1].standIn - before[p][1].standIn).Seconds() / took
			for n, value := range []float64{without, with, with - without, playing} {
				shares[p][n] = append(shares[p][n], value)
			}
			fmt.Printf("build %d, round %d, %-15v %7.2f %% without jobs, %7.2f %% with, %7.2f %% more; stand-in %.2f %%\n",
				p+1, i+1, length, without, with, with-without, playing)
		}
	}
	for p, of := range pairs {
		fmt.Printf("build %d, medians: %-13s %7.2f %% without jobs, %7.2f %% with, %7.2f %% more (%.2f to %.2f)\n", p+1, what,
			median(shares[p][0]), median(shares[p][1]), median(shares[p][2]), slices.Min(shares[p][2]), slices.Max(shares[p][2]))
		var resident [2]int64
		for k, a := range of {
			var err error
			if resident[k], err = a.resident(); err != nil {
				return err
			}
		}
		fmt.Printf("build %d, resident %20.1f MB without jobs, %6.1f MB with\n", p+1, float64(resident[0])/1e6,
			float64(resident[1])/1e6)
	}
	return nil
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

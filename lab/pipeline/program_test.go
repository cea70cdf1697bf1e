//go:build linux

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// children returns the child processes of p's training thread.
func children(t *testing.T, p *Program) (pids []int) {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.PID(), p.PID()))
	if err != nil {
		t.Skip("this kernel does not list children: ", err)
	}
	for _, word := range strings.Fields(string(data)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// endless is a plan that no test waits for.
func endless(paths []string, style Style) Plan {
	return Plan{
		Files:    paths,
		Record:   4096,
		Batch:    4,
		Steps:    100,
		Style:    style,
		Workers:  3,
		Prefetch: 2,
		Decode:   20 * time.Second,
	}
}

func TestWorkersAreProcessesOrThreads(t *testing.T) {
	p, paths := start(t), shards(t)
	for style, want := range map[Style]int{Serial: 0, PyTorch: 3, TFData: 0} {
		if err := p.Prepare(endless(paths, style)); err != nil {
			t.Fatal(err)
		}
		if got := children(t, p); len(got) != want {
			t.Errorf("%s has %d worker processes, want %d", style, len(got), want)
		}
	}
}

func TestTheTrainingThreadLeadsItsProcess(t *testing.T) {
	p := start(t)
	run(t, p, Plan{Files: shards(t), Record: 4096, Batch: 1, Steps: 1, Compute: 200 * time.Millisecond, Spin: true})
	all, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.PID()))
	if err != nil || len(all) == 0 {
		t.Fatalf("threads of the program: got %v, %v; want at least one", all, err)
	}
	var leader, sum float64
	for _, path := range all {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // that thread has ended
		}
		on, err := strconv.ParseFloat(strings.Fields(string(data))[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += on
		if strings.Contains(path, fmt.Sprintf("task/%d/", p.PID())) {
			leader = on
		}
	}
	if leader < sum/2 {
		t.Errorf("the leader took %v ns of CPU, all threads %v", leader, sum)
	}
}

func TestAKilledProgramIsAnError(t *testing.T) {
	paths := shards(t)
	for _, style := range []Style{Serial, PyTorch, TFData} {
		p := start(t)
		if err := p.Prepare(endless(paths, style)); err != nil {
			t.Fatal(err)
		}
		workers := children(t, p)
		if err := p.Begin(); err != nil {
			t.Fatal(err)
		}
		if err := p.command.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if _, err := p.End(t.Context()); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("style %s: got error %v, want one that says killed", style, err)
		}
		if err := p.Close(); err != nil {
			t.Errorf("style %s: Close: %v", style, err)
		}
		if err := p.Prepare(endless(paths, style)); err == nil {
			t.Errorf("%s: a closed program prepares", style)
		}
		for _, pid := range workers {
			for tries := 0; alive(pid) && tries < 1000; tries++ { // until its new parent has reaped it
				time.Sleep(10 * time.Millisecond)
			}
			if alive(pid) {
				t.Errorf("%s: worker %d lives on", style, pid)
			}
		}
	}
}

func TestAnEndedContextEndsTheProgram(t *testing.T) {
	p := start(t)
	if err := p.Prepare(endless(shards(t), PyTorch)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := p.Go(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Go: got error %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestCloseInTheMiddle(t *testing.T) {
	p := start(t)
	if err := p.Prepare(endless(shards(t), TFData)); err != nil {
		t.Fatal(err)
	}
	if err := p.Begin(); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestAKilledWorkerIsAnError(t *testing.T) {
	p := start(t)
	if err := p.Prepare(endless(shards(t), PyTorch)); err != nil {
		t.Fatal(err)
	}
	workers := children(t, p)
	if err := p.Begin(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(workers[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := p.End(t.Context()); err == nil || !strings.Contains(err.Error(), "worker 0") {
		t.Errorf("End: got error %v, want one that names worker 0", err)
	}
	run(t, p, Plan{Files: shards(t), Record: 4096, Batch: 1, Steps: 1}) // it continues
}

func TestAFileThatFailsIsNamed(t *testing.T) {
	p := start(t)
	for _, reading := range []Reading{Buffered, Mapped, Direct, Uring} {
		for _, style := range []Style{Serial, PyTorch, TFData} {
			t.Run(fmt.Sprintf("%s/%s", reading, style), func(t *testing.T) {
				paths := shards(t)
				plan := Plan{
					Files:    paths,
					Record:   4096,
					Reading:  reading,
					Depth:    4,
					Batch:    100,
					Steps:    10,
					Style:    style,
					Workers:  3,
					Prefetch: 2,
				}
				skipUnlessOffered(t, p, plan)
				if err := p.Prepare(plan); err != nil {
					t.Fatal(err)
				}
				if err := os.Truncate(paths[1], 0); err != nil {
					t.Fatal(err)
				}
				if _, err := p.Go(t.Context()); err == nil || !strings.Contains(err.Error(), paths[1]) {
					t.Errorf("Go: got error %v, want one that names %s", err, paths[1])
				}
				plan.Steps = 11 // two files hold 1024 records
				if err := p.Prepare(plan); err == nil || !strings.Contains(err.Error(), "write more") {
					t.Errorf("a plan that does not fit: %v", err)
				}
				plan.Files = append(plan.Files, "/nowhere/at-all")
				if err := p.Prepare(plan); err == nil || !strings.Contains(err.Error(), "/nowhere/at-all") {
					t.Errorf("a file that is missing: %v", err)
				}
			})
		}
	}
}

func TestGoWithoutAPlan(t *testing.T) {
	p := start(t)
	if _, err := p.Go(t.Context()); err == nil {
		t.Error("no error")
	}
	if _, err := p.StopNoise(); err == nil {
		t.Error("no error")
	}
}

func TestAnExecutableWithoutMain(t *testing.T) {
	t.Setenv(roleVariable, roleProgram)
	if _, err := Start(t.Context(), StartOptions{}); err == nil || !strings.Contains(err.Error(), "pipeline.Main") {
		t.Errorf("Start: got error %v, want one that names pipeline.Main", err)
	}
}

// The program's parent dies: no process of the program may stay.
func TestAProgramWhoseBenchDies(t *testing.T) {
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	page, err := newPageFile()
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	in, bench, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(executable)
	command.Env = append(os.Environ(), roleVariable+"="+roleProgram, "GORACE=atexit_sleep_ms=0")
	command.Stdin, command.ExtraFiles = in, []*os.File{page, page}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = in.Close(), bench.Close()
	_ = command.Wait() // else the test runs into its time limit
}

func TestCgroup(t *testing.T) {
	var dir string
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
			dir = filepath.Join(root, fmt.Sprintf("stallspan-pipeline-%d", os.Getpid()))
		}
	}
	if dir == "" || os.Mkdir(dir, 0o755) != nil {
		t.Skip("needs root and a cgroup v2")
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	folder, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	p, err := Start(t.Context(), StartOptions{Cgroup: folder, Rate: 1e9, Env: []string{"GORACE=atexit_sleep_ms=0"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Prepare(endless(shards(t), PyTorch)); err != nil {
		t.Error(err)
	}
	if procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs")); err != nil ||
		len(strings.Fields(string(procs))) != 4 {
		t.Errorf("%q, %v: a program and three workers are wanted", procs, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

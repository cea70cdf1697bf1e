package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/lab/turns"
	"github.com/stallspan/stallspan/internal/api"
)

const (
	settling  = 2 * time.Second // skipped at the start of a program
	plainUser = 65534
)

// evidence measures what the scheduler's evidence costs who reads it: `run` as root, and an agent that lends it to the
// `run` of a plain user. Each is compared with the same without it, in alternating order.
func evidence(binary string, rounds int, length time.Duration) error {
	if os.Geteuid() != 0 {
		return errors.New("following the scheduler needs root: run this as root")
	}
	fmt.Printf("%-32s %16s %18s %18s\n", fmt.Sprintf("of one core, medians of %d", rounds), "switches a second",
		"run with - without", "agent")
	for _, lent := range []bool{false, true} {
		for _, switches := range []int{0, 10_000, 100_000} {
			if err := compare(binary, lent, switches, rounds, length); err != nil {
				return err
			}
		}
	}
	return nil
}

// share is what `run` and the agent took of one core, and what the job did.
type share struct {
	run, agent float64
	rate       float64 // switches a second
}

func compare(binary string, lent bool, switches, rounds int, length time.Duration) error {
	job := turns.Job{Length: settling + length + settling}
	if switches > 0 {
		job.Steps = turns.Steps(switches, time.Second).Steps
	}
	var with, without, agents, idle, rates []float64
	for i := range rounds {
		for k := range 2 {
			follows := (i+k)%2 == 0
			s, err := measureShare(binary, lent, follows, job, length)
			if err != nil {
				return err
			}
			if follows {
				with, agents, rates = append(with, s.run), append(agents, s.agent), append(rates, s.rate)
			} else {
				without, idle = append(without, s.run), append(idle, s.agent)
			}
		}
	}
	what := "run of root"
	if lent {
		what = "run of a user, lent by an agent"
	}
	fmt.Printf("%-32s %16.0f %9.2f - %.2f %% %9.2f - %.2f %%\n", what, median(rates), 100*median(with),
		100*median(without), 100*median(agents), 100*median(idle))
	return nil
}

// measureShare runs the job under `run` and measures while it lasts. With lent, there is an agent, and run is a user's.
func measureShare(binary string, lent, follows bool, job turns.Job, length time.Duration) (s share, err error) {
	dir, err := os.MkdirTemp("", "footprint")
	if err != nil {
		return s, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	self, err := os.Executable()
	if err != nil {
		return s, err
	}
	program, tested := filepath.Join(dir, "program"), filepath.Join(dir, "stallspan")
	socket := filepath.Join(dir, "s.sock")
	// A user may not reach them elsewhere.
	if err := errors.Join(os.Chmod(dir, 0o755), install(self, program), install(binary, tested)); err != nil {
		return s, err
	}
	run := exec.Command(tested, "run", "--", program)
	run.Env = append(os.Environ(), api.SocketVariable+"="+socket, job.Environment())
	if !follows {
		run.Env = append(run.Env, "STALLSPAN_SCHEDULE=off")
	}
	var agent process
	if lent {
		lender := exec.Command(tested, "agent")
		lender.Env = append(os.Environ(), api.SocketVariable+"="+socket)
		if err := lender.Start(); err != nil {
			return s, err
		}
		defer func() {
			_ = lender.Process.Signal(syscall.SIGTERM)
			err = errors.Join(err, lender.Wait())
		}()
		if _, err := reach(socket); err != nil {
			return s, err
		}
		if err := os.Chmod(socket, 0o666); err != nil {
			return s, err
		}
		agent = process(lender.Process.Pid)
		run.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: plainUser, Gid: plainUser}}
	}
	var output bytes.Buffer
	run.Stdout = &output
	if err := run.Start(); err != nil {
		return s, err
	}
	time.Sleep(settling)
	s, err = shareOf(process(run.Process.Pid), agent, length)
	var did turns.Result
	if err := errors.Join(err, run.Wait(), json.Unmarshal(output.Bytes(), &did)); err != nil {
		return s, err
	}
	s.rate = float64(did.Switches) / did.Took.Seconds()
	return s, nil
}

func install(from, to string) error {
	program, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, program, 0o755)
}

// shareOf measures for a length. agent is 0 for none.
func shareOf(run, agent process, length time.Duration) (s share, err error) {
	spent := func() (run1, agent1 time.Duration, err error) {
		if run1, err = run.onCPU(); err == nil && agent != 0 {
			agent1, err = agent.onCPU()
		}
		return run1, agent1, err
	}
	began := time.Now()
	runBefore, agentBefore, err := spent()
	if err != nil {
		return s, err
	}
	time.Sleep(length)
	runAfter, agentAfter, err := spent()
	took := time.Since(began).Seconds()
	return share{run: (runAfter - runBefore).Seconds() / took, agent: (agentAfter - agentBefore).Seconds() / took}, err
}

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/stallspan/stallspan/lab/turns"
)

// measureSwitches compares a program that switches so many times a second under `stallspan run`, with the scheduler's
// evidence and without.
func measureSwitches(binary, self string, switches, pairs int, length time.Duration) error {
	job := turns.Steps(switches, length)
	var wall, cpu, rates []float64
	for i := range pairs {
		var with, without turns.Result
		for k := range 2 {
			var err error
			if (i+k)%2 == 0 {
				with, err = runTurns(binary, self, job)
			} else {
				without, err = runTurns(binary, self, job, "STALLSPAN_SCHEDULE=off")
			}
			if err != nil {
				return err
			}
		}
		wall = append(wall, with.Took.Seconds()/without.Took.Seconds()-1)
		cpu = append(cpu, with.CPU.Seconds()/without.CPU.Seconds()-1)
		rates = append(rates, float64(with.Switches)/with.Took.Seconds())
	}
	fmt.Printf("a program that switches %.0f times a second, followed and not (%d pairs of %v):\n", median(rates), pairs,
		length)
	for _, row := range []struct {
		what string
		of   []float64
	}{{"duration", wall}, {"CPU time", cpu}} {
		low, high := interval(row.of)
		fmt.Printf("  %s: median %+.2f %%, 95 %% interval %+.2f to %+.2f %%\n", row.what, 100*median(row.of), 100*low,
			100*high)
	}
	return nil
}

func runTurns(binary, self string, job turns.Job, environment ...string) (r turns.Result, err error) {
	cmd := exec.Command(binary, "run", "--", self)
	cmd.Env = append(append(os.Environ(), job.Environment()), environment...)
	out, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("%s run: %w", binary, err)
	}
	return r, json.Unmarshal(out, &r)
}

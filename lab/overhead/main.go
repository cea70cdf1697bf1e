// Overhead measures what `stallspan run` costs a program that only computes. It runs pairs, one with and one without,
// in alternating order. It prints the median slowdown with its 95 % confidence interval, and the CPU time of stallspan.
//
//	build/overhead-run -stallspan build/stallspan
//	build/overhead-run -stallspan build/stallspan -switches 10000
package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/lab/turns"
)

const workVariable = "OVERHEAD_WORK"

func main() {
	if turns.Main() {
		return
	}
	if rounds := os.Getenv(workVariable); rounds != "" {
		work(rounds)
		return
	}
	if err := measure(); err != nil {
		fmt.Fprintln(os.Stderr, "overhead:", err)
		os.Exit(1)
	}
}

// work is the measured program: it computes a fixed amount and prints how long that took.
func work(rounds string) {
	n, _ := strconv.Atoi(rounds)
	began := time.Now()
	x := uint64(1)
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	elapsed := time.Since(began)
	if x == 0 {
		panic("xorshift never gives zero") // keeps x in use
	}
	fmt.Println(elapsed.Nanoseconds())
}

func measure() error {
	binary := flag.String("stallspan", "build/stallspan", "the program to measure")
	pairs := flag.Int("pairs", 60, "how many pairs")
	length := flag.Duration("length", time.Second, "how long the program computes, about")
	switches := flag.Int("switches", 0,
		"measure a program that switches so many times a second instead, with and without the scheduler's evidence")
	flag.Parse()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if *switches > 0 {
		return measureSwitches(*binary, self, *switches, *pairs, *length)
	}
	rounds := 50_000_000
	if once, err := run(rounds, self); err == nil {
		rounds = int(float64(rounds) * length.Seconds() / once.took.Seconds())
	} else {
		return err
	}
	var slowdowns, costs []float64
	for i := range *pairs {
		var with, without result
		for k := range 2 {
			var err error
			if (i+k)%2 == 0 { // ABBA: a drift of the machine's speed affects both alike
				with, err = run(rounds, *binary, "run", "--", self)
			} else {
				without, err = run(rounds, self)
			}
			if err != nil {
				return err
			}
		}
		slowdowns = append(slowdowns, with.took.Seconds()/without.took.Seconds()-1)
		costs = append(costs, (with.cpu-without.cpu).Seconds()/with.took.Seconds())
	}
	low, high := interval(slowdowns)
	fmt.Printf("slowdown of a CPU-bound program: median %+.2f %%, 95 %% interval %+.2f to %+.2f %% (%d pairs of %v)\n",
		100*median(slowdowns), 100*low, 100*high, *pairs, *length)
	fmt.Printf("CPU time of stallspan, its start and end included: median %.2f %% of one core\n", 100*median(costs))
	return nil
}

type result struct {
	took time.Duration // what the program measured
	cpu  time.Duration // of all processes
}

func run(rounds int, argv ...string) (result, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), workVariable+"="+strconv.Itoa(rounds))
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return result{}, fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, exit.Stderr)
		}
		return result{}, err
	}
	nanoseconds, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return result{}, err
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return result{}, errors.New("this system does not report the CPU time of a process")
	}
	return result{time.Duration(nanoseconds), time.Duration(usage.Utime.Nano() + usage.Stime.Nano())}, nil
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if len(s)%2 == 1 {
		return s[len(s)/2]
	}
	return (s[len(s)/2-1] + s[len(s)/2]) / 2
}

// interval returns the 95 % confidence interval of the median, by resampling the pairs.
func interval(v []float64) (low, high float64) {
	rng := rand.New(rand.NewPCG(1, 2)) // the same data give the same interval
	medians := make([]float64, 4000)
	sample := make([]float64, len(v))
	for i := range medians {
		for k := range sample {
			sample[k] = v[rng.IntN(len(v))]
		}
		medians[i] = median(sample)
	}
	slices.Sort(medians)
	return medians[int(math.Floor(0.025*float64(len(medians))))], medians[int(math.Ceil(0.975*float64(len(medians))))-1]
}

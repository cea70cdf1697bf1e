// Footprint measures what Stallspan costs, and compares it with the budget: the agent while it watches a job of ten
// processes, the agent with 64 jobs on 16 GPUs of the stand-in for the driver, and the receiver in a Collector next to
// host_metrics' disk scraper. It fails if one of them is over. With -against it measures another build of the agent in
// the same minutes: a noisy machine is the same for both. With -soak it loads an agent, or with -collector alone a
// Collector with receiver and processor, and watches whether it grows; that takes builds with the tag overhead.
//
//	build/footprint-run -stallspan build/stallspan -nvml build/fakenvml/libnvidia-ml.so.1
//	build/footprint-run -collector build/otelcol-stallspan
//	build/footprint-run -stallspan build/stallspan -against /tmp/before -nvml build/fakenvml/libnvidia-ml.so.1
//	build/footprint-run -soak -stallspan build/stallspan-overhead -nvml build/fakenvml/libnvidia-ml.so.1 -length 1h
//	build/footprint-run -soak -collector build/otelcol-stallspan -length 10m
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	if os.Getenv(workVariable) != "" {
		work()
		return
	}
	if err := measure(); err != nil {
		fmt.Fprintln(os.Stderr, "footprint:", err)
		os.Exit(1)
	}
}

func measure() (err error) {
	binary := flag.String("stallspan", "", "the agent's program; none without it")
	collector := flag.String("collector", "", "the Collector with the receiver; none without it")
	nvml := flag.String("nvml", "", "the library that the agent takes for the NVIDIA driver's; no jobs on GPUs without it")
	against := flag.String("against", "", "another build of the agent, to be measured in the same minutes")
	rounds := flag.Int("rounds", 5, "rounds of each part; the median counts")
	length := flag.Duration("length", 12*time.Second, "length of a round")
	soaking := flag.Bool("soak", false, "load the agent (as root) or the Collector for -length, and fail if it grows")
	flag.Parse()
	switch {
	case *soaking && *collector != "":
		return soak(*collector, *length)
	case *soaking:
		return soakAgent(*binary, *nvml, *length)
	}
	var costs []cost
	measured := func(more []cost, failed error) { costs, err = append(costs, more...), errors.Join(err, failed) }
	if *binary != "" {
		measured(watching(*rounds, *length, *binary, *against))
	}
	if *binary != "" && *nvml != "" {
		measured(crowded(*nvml, *rounds, *length, *binary, *against))
	}
	if *collector != "" {
		measured(collectors(*collector, *rounds, *length))
	}
	return errors.Join(err, compare(costs))
}

// cost is what was measured, and what it may be.
type cost struct {
	what        string
	got, budget float64
	unit        string
}

// compare prints the costs, and returns an error if one is over its budget.
func compare(costs []cost) (err error) {
	fmt.Printf("%-62s %10s %10s\n", "", "got", "budget")
	for _, c := range costs {
		verdict := "ok"
		if c.got > c.budget {
			verdict = "over"
			err = errors.New("the budget is exceeded")
		}
		fmt.Printf("%-62s %8.2f %-2s %7.2f %-2s %s\n", c.what, c.got, c.unit, c.budget, c.unit, verdict)
	}
	return err
}

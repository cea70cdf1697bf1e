// Footprint measures the CPU time and the resident memory of `stallspan agent`, with every ring of its history full, a
// job of ten processes followed, and an export of metrics to an OTLP server on loopback every ten seconds. It repeats
// the measurement with a thousand open windows, and with ten thousand windows a minute. With -against it measures
// another build in the same minutes: a noisy machine is the same for both. With -collector it measures the
// receiver in a Collector next to host_metrics' disk scraper. With -soak it loads the agent, or with -collector a
// Collector with receiver and processor, and watches whether it grows. With -evidence it measures what following a
// job's threads costs who reads the events. With -jobs it measures an agent whose GPUs so many processes hold.
//
//	go build -tags overhead,grpcnotrace -o build/stallspan-overhead .
//	build/footprint-run -stallspan build/stallspan-overhead
//	build/footprint-run -stallspan build/stallspan-overhead -against /tmp/before -processes 4096
//	build/footprint-run -stallspan build/stallspan -evidence -rounds 3 -length 4s
//	build/footprint-run -stallspan build/stallspan-overhead -jobs 64 -nvml build/fakenvml/libnvidia-ml.so.1
//	build/footprint-run -collector build/otelcol-stallspan -length 15s
//	build/footprint-run -stallspan build/stallspan-overhead -soak -nvml build/fakenvml/libnvidia-ml.so.1 -length 1h
//	build/footprint-run -collector build/otelcol-stallspan -soak -length 10m
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/stallspan/stallspan/lab/turns"
)

func main() {
	if turns.Main() {
		return
	}
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
	binary := flag.String("stallspan", "build/stallspan-overhead", "the program to measure, built with -tags overhead")
	collector := flag.String("collector", "",
		"measure the receiver in this Collector instead, next to host_metrics' disk scraper")
	rounds := flag.Int("rounds", 7, "turns that each Collector gets")
	soaking := flag.Bool("soak", false, "load the agent (as root) or the Collector for -length, and fail if it grows")
	nvml := flag.String("nvml", "", "with -soak and -jobs: a library that the agent takes for the NVIDIA driver's")
	jobs := flag.Int("jobs", 0, "measure an agent whose -gpus so many processes hold, next to one without")
	gpus := flag.Int("gpus", 16, "with -jobs: GPUs")
	detected := flag.String("detect", "auto", "with -jobs: sampling.detect; \"auto,off\" measures both next to each other")
	pause := flag.Duration("pause", 100*time.Millisecond, "with -jobs: between two steps of a job")
	length := flag.Duration("length", time.Minute, "how long each part is measured")
	against := flag.String("against", "", "another build of the program, to be measured in the same minutes")
	processes := flag.Int("processes", 10, "of the job that is watched")
	parts := flag.String("parts", "watch,open,churn", "what is measured")
	evident := flag.Bool("evidence", false, "measure what the scheduler's evidence costs `run` and the agent, as root")
	flag.Parse()
	if *evident {
		return evidence(*binary, *rounds, *length)
	}
	if *jobs > 0 {
		first, second, both := strings.Cut(*detected, ",")
		if both && *against == "" {
			*against = *binary
		}
		if !both {
			second = first
		}
		settings := []string{first, second}
		return crowded(*nvml, *gpus, *jobs, *rounds, *length, *pause, settings, *binary, *against)
	}
	if *soaking && *collector != "" {
		return soak(*collector, *length)
	}
	if *soaking {
		return soakAgent(*binary, *nvml, *length)
	}
	if *collector != "" {
		return collectors(*collector, *rounds, *length)
	}
	return agents(*length, *processes, *parts, *binary, *against)
}

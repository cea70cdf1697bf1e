package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// The configurations of three Collectors of the same build: one does nothing, one samples with our receiver, one
// scrapes disks with host_metrics at the same interval. Each has an OTLP receiver, because a Collector needs a
// receiver, and an exporter that drops everything.
const (
	base = `
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:0"}}}
%s
exporters:
  nop:
service:
  telemetry: {metrics: {level: none}, logs: {level: error}}
  pipelines:
    metrics: {receivers: [%s], exporters: [nop]}
`
	ours = `  stallspan: {collection_interval: 10s, sampling: {interval: 100ms}}`
	host = `  host_metrics: {collection_interval: 100ms, scrapers: {disk: {}}}`
)

// rival is one of the Collectors that are measured in turn.
type rival struct {
	name    string
	command *exec.Cmd
	process process
	shares  []float64 // of one core, per round
}

// collectors measures in turn what our receiver and host_metrics' disk scraper cost, each compared with an idle
// Collector. While one is measured the others are stopped.
func collectors(binary string, rounds int, length time.Duration) (costs []cost, err error) {
	dir, err := os.MkdirTemp("", "footprint")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	rivals := []*rival{{name: "idle Collector"}, {name: "receiver stallspan at 100 ms"},
		{name: "host_metrics, disk at 100 ms"}}
	for i, config := range []string{fmt.Sprintf(base, "", "otlp"), fmt.Sprintf(base, ours, "otlp, stallspan"),
		fmt.Sprintf(base, host, "otlp, host_metrics")} {
		if err := rivals[i].start(binary, filepath.Join(dir, fmt.Sprint(i, ".yaml")), config); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, rivals[i].end()) }()
	}
	time.Sleep(5 * time.Second)
	for range rounds {
		for _, r := range rivals {
			if err := r.turn(rivals, length); err != nil {
				return nil, err
			}
		}
	}
	// Of what each takes more than an idle Collector.
	ratios := make([]float64, rounds)
	for i := range ratios {
		idle := rivals[0].shares[i]
		ratios[i] = (rivals[1].shares[i] - idle) / (rivals[2].shares[i] - idle)
	}
	return []cost{{"the receiver at 100 ms, of host_metrics' disk scraper", median(ratios), 2.0 / 3, ""}}, nil
}

func (r *rival) start(binary, path, config string) error {
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return err
	}
	r.command = exec.Command(binary, "--config", path)
	r.command.Stderr = os.Stderr
	if err := r.command.Start(); err != nil {
		return fmt.Errorf("%s cannot be started, build it with `make collector`: %w", binary, err)
	}
	r.process = process(r.command.Process.Pid)
	return nil
}

func (r *rival) end() error {
	_ = r.command.Process.Signal(syscall.SIGCONT)
	_ = r.command.Process.Signal(syscall.SIGTERM)
	return r.command.Wait()
}

// turn lets only r run, and measures it after a second.
func (r *rival) turn(rivals []*rival, length time.Duration) error {
	for _, other := range rivals {
		signal := syscall.SIGSTOP
		if other == r {
			signal = syscall.SIGCONT
		}
		if err := other.command.Process.Signal(signal); err != nil {
			return err
		}
	}
	time.Sleep(time.Second)
	before, err := r.process.onCPU()
	if err != nil {
		return err
	}
	began := time.Now()
	time.Sleep(length)
	after, err := r.process.onCPU()
	if err != nil {
		return err
	}
	r.shares = append(r.shares, (after-before).Seconds()/time.Since(began).Seconds())
	return nil
}

func median(values []float64) float64 {
	sorted := slices.SortedFunc(slices.Values(values), cmp.Compare)
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

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
func collectors(binary string, rounds int, length time.Duration) (err error) {
	dir, err := os.MkdirTemp("", "footprint")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	rivals := []*rival{{name: "idle Collector"}, {name: "receiver stallspan at 100 ms"},
		{name: "host_metrics, disk at 100 ms"}}
	for i, config := range []string{fmt.Sprintf(base, "", "otlp"), fmt.Sprintf(base, ours, "otlp, stallspan"),
		fmt.Sprintf(base, host, "otlp, host_metrics")} {
		if err := rivals[i].start(binary, filepath.Join(dir, fmt.Sprint(i, ".yaml")), config); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rivals[i].end()) }()
	}
	time.Sleep(5 * time.Second)
	for range rounds {
		for _, r := range rivals {
			if err := r.turn(rivals, length); err != nil {
				return err
			}
		}
	}
	return show(rivals)
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

func show(rivals []*rival) error {
	fmt.Printf("%-58s %12s %12s %14s\n", fmt.Sprintf("medians of %d turns", len(rivals[0].shares)), "of one core",
		"net of idle", "resident")
	net := func(r *rival, i int) float64 { return r.shares[i] - rivals[0].shares[i] }
	for _, r := range rivals {
		resident, err := r.process.resident()
		if err != nil {
			return err
		}
		over := make([]float64, len(r.shares))
		for i := range over {
			over[i] = net(r, i)
		}
		fmt.Printf("%-58s %10.2f %% %10.2f %% %11.1f MB\n", r.name, 100*median(r.shares), 100*median(over),
			float64(resident)/1e6)
	}
	ratios := make([]float64, len(rivals[0].shares))
	for i := range ratios {
		ratios[i] = net(rivals[1], i) / net(rivals[2], i)
	}
	fmt.Printf("ours takes %.2f of the disk scraper's, median of pairs (%.2f to %.2f)\n", median(ratios),
		slices.Min(ratios), slices.Max(ratios))
	return nil
}

func median(values []float64) float64 {
	sorted := slices.SortedFunc(slices.Values(values), cmp.Compare)
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

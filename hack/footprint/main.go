// Footprint measures the CPU time and the resident memory of `stallspan agent`, with every ring of its history full, a
// job of ten processes followed, and an export of metrics to an OTLP server on loopback every ten seconds. It repeats
// the measurement with a thousand open windows, and with ten thousand windows a minute. With -collector it measures the
// receiver in a Collector next to host_metrics' disk scraper. With -soak it loads the agent, or with -collector a
// Collector with receiver and processor, and watches whether it grows. With -evidence it measures what following a
// job's threads costs who reads the events.
//
//	go build -tags overhead -o build/stallspan-overhead .
//	go run ./hack/footprint -stallspan build/stallspan-overhead
//	go run ./hack/footprint -stallspan build/stallspan -evidence -rounds 3 -length 4s
//	go run ./hack/footprint -collector build/otelcol-stallspan -length 15s
//	go run ./hack/footprint -stallspan build/stallspan-overhead -soak -nvml build/fakenvml/libnvidia-ml.so.1 -length 1h
//	go run ./hack/footprint -collector build/otelcol-stallspan -soak -length 10m
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/hack/internal/turns"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/window"
)

func main() {
	if turns.Main() {
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
	nvml := flag.String("nvml", "", "with -soak: a library that the agent takes for the NVIDIA driver's")
	length := flag.Duration("length", time.Minute, "how long each part is measured")
	evident := flag.Bool("evidence", false, "measure what the scheduler's evidence costs `run` and the agent, as root")
	flag.Parse()
	if *evident {
		return evidence(*binary, *rounds, *length)
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
	dir, err := os.MkdirTemp("", "footprint")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	backend, err := serveBackend()
	if err != nil {
		return err
	}
	defer backend.stop()

	job := exec.Command("sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do sleep 100000 & done; wait")
	job.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := job.Start(); err != nil {
		return err
	}
	defer func() {
		_ = syscall.Kill(-job.Process.Pid, syscall.SIGKILL)
		_ = job.Wait()
	}()

	socket := filepath.Join(dir, "s.sock")
	agent := exec.Command(*binary, "agent")
	agent.Env = append(os.Environ(), api.SocketVariable+"="+socket, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+backend.address)
	agent.Stderr = os.Stderr
	if err := agent.Start(); err != nil {
		return fmt.Errorf("%s cannot be started, build it as this file's comment says: %w", *binary, err)
	}
	defer func() {
		_ = agent.Process.Signal(syscall.SIGTERM)
		err = errors.Join(err, agent.Wait())
	}()
	client, err := reach(socket)
	if err != nil {
		return err
	}
	p := process(agent.Process.Pid)
	ctx := context.Background()
	if _, err := client.Begin(ctx, api.Announcement{Kind: window.Custom, Name: "job", PID: job.Process.Pid}); err != nil {
		return err
	}
	time.Sleep(5 * time.Second) // skip the start

	fmt.Printf("%-58s %12s %14s\n", "", "of one core", "resident")
	if err := p.row("watching a job of ten processes, "+length.String(), *length, func() error {
		time.Sleep(*length)
		return nil
	}); err != nil {
		return err
	}
	var ids []string
	if err := p.row("beginning 1,000 windows and leaving them open", 0, func() (err error) {
		ids, err = begin(ctx, client, job.Process.Pid, 1000)
		return err
	}); err != nil {
		return err
	}
	if err := p.row("watching with 1,000 windows open, "+length.String(), *length, func() error {
		time.Sleep(*length)
		return nil
	}); err != nil {
		return err
	}
	if err := end(ctx, client, ids); err != nil {
		return err
	}
	if err := p.row("10,000 windows a minute, for "+length.String(), *length, func() error {
		return churn(ctx, client, job.Process.Pid, 10_000, 20, *length)
	}); err != nil {
		return err
	}
	fmt.Printf("metrics reached the backend %d times, spans %d\n", backend.metrics.Load(), backend.spans.Load())
	return nil
}

func reach(socket string) (*api.Client, error) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			client := api.NewClient(socket)
			if begun, err := client.Begin(context.Background(),
				api.Announcement{Kind: window.Custom, Name: "first"}); err == nil {
				_, err = client.End(context.Background(), begun.ID)
				return client, err
			}
		}
	}
	return nil, errors.New("the agent does not answer")
}

func begin(ctx context.Context, client *api.Client, pid, n int) (ids []string, err error) {
	for i := range n {
		begun, err := client.Begin(ctx, api.Announcement{Kind: window.ModelLoad, PID: pid,
			Model: fmt.Sprintf("model-%d", i%7), Path: "/models/" + strings.Repeat("x", i%50)})
		if err != nil {
			return nil, err
		}
		ids = append(ids, begun.ID)
	}
	return ids, nil
}

func end(ctx context.Context, client *api.Client, ids []string) error {
	for _, id := range ids {
		if _, err := client.End(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// churn begins and ends windows at an even rate, with the given number open at any moment, for a length or until ctx
// ends.
func churn(ctx context.Context, client *api.Client, pid, aMinute, atOnce int, length time.Duration) error {
	ticker := time.NewTicker(time.Minute / time.Duration(aMinute))
	defer ticker.Stop()
	var open []string
	stop := ctx.Done()
	ctx = context.WithoutCancel(ctx) // calls under way succeed
	for over := time.Now().Add(length); time.Now().Before(over); {
		select {
		case <-stop:
			return end(ctx, client, open)
		case <-ticker.C:
		}
		ids, err := begin(ctx, client, pid, 1)
		if err != nil {
			return err
		}
		if open = append(open, ids...); len(open) > atOnce {
			if err := end(ctx, client, open[:1]); err != nil {
				return err
			}
			open = open[1:]
		}
	}
	return end(ctx, client, open)
}

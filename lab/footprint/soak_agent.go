package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/window"
)

const (
	soakDisks    = 24
	soakJobs     = 12 // followed at any moment
	soakWindows  = 600
	jobEvery     = time.Second
	longestJob   = 20 * time.Second
	eventsEvery  = 5 * time.Second
	flapsAndStep = 60 // how often the backend changes and the clock steps during a soak
)

// The stand-in for the driver has the clock of the machine, which does not step with the agent's.
const soakedGPUs = "clock monotonic\ngpu 0 utilization=60\ngpu 1 utilization=30\n"

// A job is a tree of processes that come and go, and read a little.
const soakedJob = `while :; do
	for i in 1 2 3; do head -c 262144 "$0" | head -c 65536 >/dev/null & done
	sleep 0.5 & wait
done`

// soakAgent loads an agent: processes that come and go, 24 disks, a backend that flaps, a wall clock that steps, and
// windows and streams of events that begin and end. It fails if the agent holds more at the end than at the start.
func soakAgent(binary, nvml string, length time.Duration) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("a machine with 24 disks needs mounts: run this as root")
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
	disks, err := newMachine(filepath.Join(dir, "machine"), soakDisks)
	if err != nil {
		return err
	}
	pprof, err := freeAddress()
	if err != nil {
		return err
	}
	if binary, err = filepath.Abs(binary); err != nil {
		return err
	}
	socket, config, gpus := filepath.Join(dir, "s.sock"), filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "gpus")
	settings := fmt.Sprintf("sampling: {root_path: %q, nvml: %q}\n", disks.root, nvml)
	err = errors.Join(os.WriteFile(config, []byte(settings), 0o600), os.WriteFile(gpus, []byte(soakedGPUs), 0o600))
	if err != nil {
		return err
	}
	agent := disks.command(binary, "agent", "--config", config)
	agent.Env = append(os.Environ(), api.SocketVariable+"="+socket,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://"+backend.address, "XDG_STATE_HOME="+dir, "FAKENVML_FILE="+gpus,
		"STALLSPAN_PPROF="+pprof, "STALLSPAN_CLOCK_STEPS="+(length/flapsAndStep).String())
	agent.Stderr = os.Stderr
	if err := agent.Start(); err != nil {
		return fmt.Errorf("%s cannot be started, build it as this program's comment says: %w", binary, err)
	}
	defer func() {
		_ = agent.Process.Signal(syscall.SIGTERM)
		err = errors.Join(err, agent.Wait())
	}()
	client, err := reach(socket)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { backend.flap(ctx, length/flapsAndStep) })
	failed := make([]error, 4)
	for i, do := range []func() error{
		func() error { return disks.work(ctx) },
		func() error { return churn(ctx, client, os.Getpid(), soakWindows, 20, length) },
		func() error { return crowd(ctx, client, binary) },
		func() error { return followEvents(ctx, socket) },
	} {
		all.Go(func() {
			if failed[i] = do(); failed[i] != nil {
				cancel()
			}
		})
	}
	err = subject{process: process(agent.Process.Pid), client: client, pprof: pprof}.watch(ctx, length)
	cancel()
	all.Wait()
	fmt.Printf("metrics reached the backend %d times, spans %d, log records %d\n", backend.metrics.Load(),
		backend.spans.Load(), backend.logs.Load())
	return errors.Join(append(failed, err)...)
}

// freeAddress returns an address on which nothing listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// crowd starts jobs and announces a window of each. It kills them after a while, before the window's end or after it.
func crowd(ctx context.Context, client *api.Client, file string) error {
	var all sync.WaitGroup
	defer all.Wait()
	ticker := time.NewTicker(jobEvery)
	defer ticker.Stop()
	places := make(chan struct{}, soakJobs)
	failed := make(chan error, soakJobs)
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case places <- struct{}{}:
		}
		all.Go(func() {
			defer func() { <-places }()
			lasts := time.Duration(rand.Int64N(int64(longestJob)))
			if err := job(ctx, client, file, n, lasts); err != nil {
				failed <- err
			}
		})
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func job(ctx context.Context, client *api.Client, file string, n int, lasts time.Duration) error {
	shell := exec.Command("sh", "-c", soakedJob, file)
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := shell.Start(); err != nil {
		return err
	}
	killed := false
	kill := func() {
		if !killed {
			_ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL)
			_ = shell.Wait()
		}
		killed = true
	}
	defer kill()
	lasting := context.WithoutCancel(ctx)
	begun, err := client.Begin(lasting, api.Announcement{Kind: window.ModelLoad, PID: shell.Process.Pid,
		Model: fmt.Sprint("model ", n), Path: file})
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-time.After(lasts):
	}
	if n%2 == 0 {
		kill()
		time.Sleep(time.Second) // for a reading without it
	}
	_, err = client.End(lasting, begun.ID)
	return err
}

// followEvents opens a stream of events and leaves it, again and again.
func followEvents(ctx context.Context, socket string) error {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
	for ctx.Err() == nil {
		if err := followFor(ctx, &client, eventsEvery); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func followFor(ctx context.Context, client *http.Client, length time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/v1/events?follow=1", nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("following events: %s", answer.Status)
	}
	select {
	case <-ctx.Done():
	case <-time.After(length):
	}
	return nil
}

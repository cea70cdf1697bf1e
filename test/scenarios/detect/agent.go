//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	agentStart = 20 * time.Second // until it answers
	agentLag   = 4 * time.Second  // from the end of a program until all of its windows have ended
	detected   = "detected"       // stallspan.window.source
)

// agent is one that follows the programs, and knows nothing of their logs.
type agent struct {
	command *exec.Cmd
	client  http.Client
	offset  int64 // of the wall clock from CLOCK_MONOTONIC, in ns
}

// found is what is read of a detected window (docs/report.md).
type found struct {
	ID         string    `json:"id"`
	Kind       string    `json:"kind"`
	Name       string    `json:"name,omitempty"`
	Model      string    `json:"model,omitempty"`
	Source     string    `json:"source"`
	Start      time.Time `json:"start"`
	End        time.Time `json:"end"`
	Unfinished bool      `json:"unfinished,omitempty"`
	GPU        *struct {
		IDs  []string `json:"ids"`
		Busy float64  `json:"busy_s"`
	} `json:"gpu,omitempty"`
	Process *struct {
		OnCPU float64 `json:"on_cpu_s"`
	} `json:"process,omitempty"`
	Stall *struct {
		Storage float64 `json:"storage_s"`
		CPU     float64 `json:"cpu_s"`
		Other   float64 `json:"other_s"`
	} `json:"stall,omitempty"`
	Phases []struct {
		Phase string    `json:"name"`
		Start time.Time `json:"start"`
		End   time.Time `json:"end"`
	} `json:"phases,omitempty"`

	open bool // it had not ended
}

// startAgent starts an agent that sees the GPUs of a folder.
func (o *options) startAgent(ctx context.Context, folder string) (*agent, error) {
	a := &agent{command: exec.CommandContext(ctx, o.stallspan, "agent")}
	socket := filepath.Join(folder, "agent.sock")
	a.command.Env = append(os.Environ(), "STALLSPAN_SOCKET="+socket, "LD_LIBRARY_PATH="+o.library,
		"FAKENVML_FILE="+filepath.Join(folder, gpuFolder, "gpus.txt"), "XDG_STATE_HOME="+filepath.Join(folder, "state"))
	log, err := os.Create(filepath.Join(o.keep, "agent.log"))
	if err != nil {
		return nil, err
	}
	a.command.Stdout, a.command.Stderr = log, log
	a.command.Cancel = func() error { return a.command.Process.Signal(os.Interrupt) }
	a.command.WaitDelay = 10 * time.Second
	a.client.Timeout = agentStart
	a.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	if err := errors.Join(a.command.Start(), log.Close()); err != nil {
		return nil, err
	}
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		_, err := a.windows(ctx)
		if err == nil {
			break
		}
		if time.Since(began) > agentStart || ctx.Err() != nil {
			return nil, errors.Join(fmt.Errorf("the agent does not answer: %w", err), a.stop())
		}
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return nil, errors.Join(err, a.stop())
	}
	a.offset = time.Now().UnixNano() - now.Nano()
	return a, nil
}

// windows returns the detected windows of the last hour.
func (a *agent) windows(ctx context.Context) (all []found, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent/v1/windows", nil)
	if err != nil {
		return nil, err
	}
	response, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var list struct{ Running, Ended []found }
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return nil, err
	}
	for i := range list.Running {
		list.Running[i].open = true
	}
	for _, f := range append(list.Ended, list.Running...) {
		if f.Source == detected {
			all = append(all, f)
		}
	}
	return all, nil
}

// at is a time of a window on CLOCK_MONOTONIC in ns, as the logs count.
func (a *agent) at(t time.Time) int64 { return t.UnixNano() - a.offset }

func (a *agent) stop() error {
	_ = a.command.Process.Signal(os.Interrupt)
	var exit *exec.ExitError
	if err := a.command.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}

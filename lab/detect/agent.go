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
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/lab/joblog"
)

const (
	agentStart = 20 * time.Second // until it answers
	agentLag   = 20 * time.Second // from the end of the last program until all windows have ended
	around     = 5 * time.Second  // before and after a program, in which a window still belongs to it
	detected   = "detected"       // stallspan.window.source
)

// agent is one that follows the programs, and knows nothing of their logs.
type agent struct {
	command *exec.Cmd
	client  http.Client
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
	Verdict    string    `json:"verdict,omitempty"`
	Uncertain  float64   `json:"uncertainty_ratio,omitempty"`
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
		Ready   float64 `json:"ready_s"`
		Other   float64 `json:"other_s"`
	} `json:"stall,omitempty"`
	Phases []phase `json:"phases,omitempty"`

	open bool // it had not ended
}

// phase is a part of a load.
type phase struct {
	Phase  string    `json:"name"`
	Start  time.Time `json:"start"`
	Length float64   `json:"duration_s"`
}

// startAgent starts an agent that sees the GPUs of a folder.
func (o *options) startAgent(ctx context.Context, folder string) (*agent, error) {
	settings := filepath.Join(folder, "agent.yaml")
	if err := os.WriteFile(settings, []byte("sampling:\n  detect: all\n"), 0o600); err != nil {
		return nil, err
	}
	// It outlives an interrupt, because its windows are read after that.
	a := &agent{command: exec.CommandContext(context.WithoutCancel(ctx), o.stallspan, "agent", "--config", settings)}
	socket := filepath.Join(folder, "agent.sock")
	a.command.Env = append(os.Environ(), "STALLSPAN_SOCKET="+socket, "LD_LIBRARY_PATH="+o.library,
		"FAKENVML_FILE="+filepath.Join(folder, gpuFolder, "gpus.txt"), "XDG_STATE_HOME="+filepath.Join(folder, "state"))
	log, err := os.Create(filepath.Join(o.keep, "agent.log"))
	if err != nil {
		return nil, err
	}
	a.command.Stdout, a.command.Stderr = log, log
	a.client.Timeout = agentStart
	a.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	if err := errors.Join(a.command.Start(), log.Close()); err != nil {
		return nil, err
	}
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		_, _, err := a.windows(ctx)
		if err == nil {
			break
		}
		if time.Since(began) > agentStart || ctx.Err() != nil {
			return nil, errors.Join(fmt.Errorf("the agent does not answer: %w", err), a.stop())
		}
	}
	return a, nil
}

// windows returns the detected windows of the last hour.
func (a *agent) windows(ctx context.Context) (ended, running []found, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent/v1/windows", nil)
	if err != nil {
		return nil, nil, err
	}
	response, err := a.client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var list struct{ Running, Ended []found }
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return nil, nil, err
	}
	others := func(f found) bool { return f.Source != detected }
	return slices.DeleteFunc(list.Ended, others), slices.DeleteFunc(list.Running, others), nil
}

// kept is what is kept of an agent: the windows that it detected.
type kept struct {
	Offset  int64     `json:"offset_ns"` // of the wall clock from CLOCK_MONOTONIC
	Now     time.Time `json:"now"`       // when they were read
	Ended   []found   `json:"ended"`
	Running []found   `json:"running"`
}

// keep writes the detected windows to a file.
func (a *agent) keep(ctx context.Context, file string) error {
	k := kept{Now: time.Now()}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return err
	}
	k.Offset = k.Now.UnixNano() - now.Nano()
	var err error
	if k.Ended, k.Running, err = a.windows(ctx); err != nil {
		return err
	}
	text, err := json.MarshalIndent(k, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

func readKept(file string) (*kept, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	k := &kept{}
	if err := json.Unmarshal(text, k); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i := range k.Running {
		k.Running[i].open = true
	}
	return k, nil
}

// at is a time of a window on CLOCK_MONOTONIC in ns, as the logs count.
func (k *kept) at(t time.Time) int64 { return t.UnixNano() - k.Offset }

// of returns the windows that began in the life of a case's programs, or shortly before or after and not in the life of
// another case. Cases run one after another.
func (k *kept) of(l *joblog.Log, all []*joblog.Log) (own []found) {
	for _, f := range slices.Concat(k.Ended, k.Running) {
		began := k.at(f.Start)
		if lived(l, began, 0) || lived(l, began, int64(around)) &&
			!slices.ContainsFunc(all, func(other *joblog.Log) bool { return other != nil && lived(other, began, 0) }) {
			own = append(own, f)
		}
	}
	return own
}

// lived reports whether a program of a case lived at a moment, or so many ns before or after.
func lived(l *joblog.Log, at, around int64) bool {
	return slices.ContainsFunc(l.Labels, func(one joblog.Label) bool {
		return one.Kind == "life" && at > one.Start-around && at < one.End+around
	})
}

func (a *agent) stop() error {
	_ = a.command.Process.Signal(os.Interrupt)
	var exit *exec.ExitError
	if err := a.command.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}

//go:build linux

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// StartOptions are the environment of a program. The zero value is valid.
type StartOptions struct {
	Cgroup *os.File  // an open cgroup v2 directory for the program and its workers; nil for that of this process
	Env    []string  // in addition to the environment of this process: "NAME=value"
	Rate   float64   // from Calibrate, so that several programs do the same work; 0 calibrates again
	Stderr io.Writer // nil for that of this process
}

// Start starts this executable again as a program, which calls Main first. It returns when the program answers. ctx
// limits the start only.
func Start(ctx context.Context, o StartOptions) (*Program, error) {
	if os.Getenv(roleVariable) != "" {
		return nil, errors.New(
			"a training program cannot start another: call pipeline.Main first in this executable, and end when it returns true",
		)
	}
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	file, err := newPageFile()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	life, alive, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer alive.Close()
	p := &Program{command: exec.Command(executable), life: life, rate: o.Rate}
	p.command.Args = []string{executable, "training"}
	p.command.Env = append(
		append(os.Environ(), o.Env...),
		roleVariable+"="+roleProgram,
		"GOGC=off",
		"GODEBUG=asyncpreemptoff=1",
	)
	p.command.ExtraFiles = []*os.File{file, alive} // pageFd and lifeFd
	p.command.Stderr = o.Stderr
	if o.Stderr == nil {
		p.command.Stderr = os.Stderr
	}
	if o.Cgroup != nil {
		p.command.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(o.Cgroup.Fd())}
	}
	if p.accelerator, err = newAccelerator(file); err != nil {
		return nil, errors.Join(err, life.Close())
	}
	if err := p.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a training program: %w", err), life.Close(), p.accelerator.close())
	}
	_ = alive.Close() // this copy would outlive the program
	if _, err := p.answer(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Program) start() (err error) {
	if p.requests, err = p.command.StdinPipe(); err != nil {
		return err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.command.Start(); err != nil {
		return err
	}
	p.replies, p.ended = make(chan reply, 1), make(chan struct{})
	go p.listen(out)
	return nil
}

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

// StartOptions says where and how a program runs. The zero value is fit for use.
type StartOptions struct {
	Cgroup *os.File  // a cgroup v2 folder, opened: the program and all its workers begin in it; nil is our own
	Env    []string  // beside our own environment: "NAME=value"
	Rate   float64   // from Calibrate, so that several programs do the same work; 0 and the program calibrates itself
	Stderr io.Writer // nil is our own
}

// Start runs a program: this executable again, which calls Main before anything else. It returns when the program
// answers. ctx is for the start alone.
func Start(ctx context.Context, o StartOptions) (*Program, error) {
	if os.Getenv(roleVariable) != "" {
		return nil, errors.New("a training program cannot start another: this executable must call pipeline.Main first, and end when it returns true")
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
	p.command.Env = append(append(os.Environ(), o.Env...), roleVariable+"="+roleProgram, "GOGC=off", "GODEBUG=asyncpreemptoff=1")
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
	_ = alive.Close() // ours would outlive the program
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

//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/stallspan/stallspan/lab/joblog"
	"github.com/stallspan/stallspan/lab/scenario"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// known is a program whose answer follows from its times: it sleeps where others read (programs/known.py).
type known struct {
	name                string
	workers, batch      int
	read, decode, steps float64 // seconds; steps is how many items the accelerator takes as long as
}

// batches is how many batches each known program makes.
const batches = 60

// Without a worker, all is in turn. One worker makes items without a pause, and the accelerator takes as long as a
// whole number of them. So it waits for the rest of each batch, and for all of the first one.
var knowns = []known{
	{"known-0", 0, 4, 0.006, 0.002, 3},
	{"known-0", 0, 8, 0.002, 0.004, 4},
	{"known-1", 1, 6, 0.005, 0.003, 2},
	{"known-1", 1, 8, 0.002, 0.004, 3},
}

// answer returns the parts of a window, without the work of the libraries, which is CPU.
func (k known) answer() scenario.Parts {
	items := float64(batches * k.batch)
	if k.workers > 0 {
		items -= (batches - 1) * k.steps
	}
	return scenario.Parts{Busy: batches * k.step(), Storage: items * k.read, CPU: items * k.decode}
}

func (k known) step() float64 { return k.steps * (k.read + k.decode) }

// checkTruth runs the known programs, and prints how far the truth by their logs is from their answer.
func (t tools) checkTruth(ctx context.Context) error {
	seconds := func(v float64) string { return strconv.FormatFloat(v, 'f', 4, 64) }
	fmt.Println("program   answer: busy storage cpu (s)   by the log: busy storage cpu other late ready (s)" +
		"   error of both (points)")
	for _, k := range knowns {
		j := job{
			Name: k.name, Program: "known.py", GPUs: 1, Driver: driver{Period: 20000},
			Disk: diskSpec{Kind: string(slowdisk.Memory)},
			Args: []string{"--items", strconv.Itoa(batches * k.batch), "--batch", strconv.Itoa(k.batch),
				"--workers", strconv.Itoa(k.workers), "--read", seconds(k.read), "--decode", seconds(k.decode),
				"--step", seconds(k.step())},
		}
		l, err := t.logOf(ctx, j)
		if err != nil {
			return err
		}
		w := l.Windows[0]
		d := joblog.Truth(l, joblog.Drivers(l), true, w.Start, w.End, map[joblog.Kind]float64{})
		a, window := k.answer(), float64(w.End-w.Start)/1e9
		fmt.Printf(
			"%s   %15.3f %.3f %.3f   %33.3f %.3f %.3f %.3f %.3f %.3f   %12.1f %.1f\n",
			k.name, a.Busy, a.Storage, a.CPU,
			d.Busy, d.Storage, d.CPU, d.Other, d.Late, d.Ready,
			100*(d.Busy-a.Busy)/window, 100*(d.Storage-a.Storage)/window,
		)
	}
	return nil
}

// logOf runs a job and reads its log.
func (t tools) logOf(ctx context.Context, j job) (l *joblog.Log, err error) {
	r, err := t.prepare(ctx, j, 0)
	if r != nil {
		defer func() { _ = r.remove() }()
	}
	if err != nil {
		return nil, err
	}
	log := filepath.Join(r.folder, logFolder)
	c := r.command(ctx, j, log, sampled)
	if out, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", j.Name, err, bytes.TrimSpace(out))
	}
	l, err = joblog.Read(log)
	if err == nil && len(l.Windows) != 1 {
		err = fmt.Errorf("%s: the log has %d windows, want 1", j.Name, len(l.Windows))
	}
	return l, err
}

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/source/pagecache"
	"github.com/stallspan/stallspan/test/scenarios/joblog"
	"github.com/stallspan/stallspan/test/slowdisk"
)

const (
	gpuFolder = "gpus"            // of the programs' accelerators, in the run's folder
	longest   = 240 * time.Second // a program
	diskSize  = 1 << 30
)

// bench is what all cases of a run share.
type bench struct {
	*options
	folder string // in memory
	disks  map[slowdisk.Kind]*slowdisk.Disk
	agent  *agent
}

// run runs the cases next to one agent.
func (o *options) run(ctx context.Context, chosen []entry) (results []*result, err error) {
	folder, err := os.MkdirTemp("/dev/shm", "stallspan-detect-")
	if err != nil {
		return nil, err
	}
	b := &bench{options: o, folder: folder, disks: map[slowdisk.Kind]*slowdisk.Disk{}}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.gpus(); err != nil {
		return nil, err
	}
	if b.agent, err = o.startAgent(ctx, folder); err != nil {
		return nil, err
	}
	for _, e := range chosen {
		r, err := b.perform(ctx, e.plan(o.seed))
		if ctx.Err() != nil {
			return results, ctx.Err()
		}
		if err != nil {
			r.Failed = err.Error()
		}
		results = append(results, r)
		fmt.Println(r.line())
	}
	return results, nil
}

func (b *bench) close() error {
	var problems []error
	if b.agent != nil {
		problems = append(problems, b.agent.stop())
	}
	for _, d := range b.disks {
		problems = append(problems, d.Close())
	}
	return errors.Join(append(problems, os.RemoveAll(b.folder))...)
}

// gpus shows two GPUs without processes.
func (b *bench) gpus() error {
	folder := filepath.Join(b.folder, gpuFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	text := "period_us 20000\n"
	for n := range 2 {
		path := filepath.Join(folder, strconv.Itoa(n))
		if err := os.WriteFile(path, make([]byte, 32), 0o644); err != nil {
			return err
		}
		text += fmt.Sprintf("gpu %d busy_file=%s memory_used=0\n", n, path)
	}
	path := filepath.Join(folder, "gpus.txt")
	return errors.Join(os.WriteFile(path+".new", []byte(text), 0o644), os.Rename(path+".new", path))
}

// disk returns the disk of a kind, which is opened when it is first needed.
func (b *bench) disk(ctx context.Context, p *plan) (*slowdisk.Disk, error) {
	d := b.disks[p.Disk]
	if d == nil {
		var err error
		options := slowdisk.Options{Size: diskSize}
		if p.Disk == slowdisk.Throttled {
			options.IOPS = unlimited
		}
		if d, err = slowdisk.Open(ctx, p.Disk, options); err != nil {
			return nil, err
		}
		b.disks[p.Disk] = d
	}
	if p.Disk == slowdisk.Local {
		return d, nil
	}
	d.Options.BytesPerSecond, d.Options.Delay = p.Rate, p.Delay
	return d, d.Fast()
}

// unlimited is more operations a second than any rate of bytes allows.
const unlimited = 1e6

// perform runs a case, and compares the windows that the agent detected in its time.
func (b *bench) perform(ctx context.Context, p *plan) (r *result, err error) {
	r = &result{Case: p.Name, Seed: p.Seed, Disk: string(p.Disk)}
	d, err := b.disk(ctx, p)
	if err != nil {
		return r, err
	}
	folder := filepath.Join(d.Dir, p.Name)
	memory := filepath.Join(b.folder, p.Name)
	defer func() { err = errors.Join(err, os.RemoveAll(folder), os.RemoveAll(memory)) }()
	for _, f := range []string{folder, memory} {
		if err := os.MkdirAll(f, 0o755); err != nil {
			return r, err
		}
	}
	expand := strings.NewReplacer("{disk}", folder, "{memory}", memory).Replace
	if err := b.models(ctx, p, expand); err != nil {
		return r, err
	}
	if err := d.Slow(); err != nil {
		return r, err
	}
	began := time.Now()
	logs, err := b.programsOf(ctx, p, expand)
	if err != nil {
		return r, errors.Join(err, d.Fast())
	}
	ended := time.Now()
	l, err := joblog.Read(logs...)
	if err != nil {
		return r, err
	}
	all, err := b.settled(ctx, began)
	if err != nil {
		return r, err
	}
	if err := b.keepCase(p, logs, all); err != nil {
		return r, err
	}
	r.compare(l, all, b.agent.at(ended), b.agent.at)
	return r, b.gpus()
}

// settled returns the windows that began since a moment, after the agent had time to end them.
func (b *bench) settled(ctx context.Context, began time.Time) (own []found, err error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(agentLag):
	}
	all, err := b.agent.windows(ctx)
	for _, f := range all {
		if f.End.After(began) { // a window can be back-dated, but not to the time of the case before
			own = append(own, f)
		}
	}
	return own, err
}

// keepCase keeps what a case was judged by.
func (b *bench) keepCase(p *plan, logs []string, all []found) error {
	var text bytes.Buffer
	for _, folder := range logs {
		files, err := filepath.Glob(filepath.Join(folder, "*.log"))
		if err != nil {
			return err
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			text.Write(data)
		}
	}
	windows, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return err
	}
	path := filepath.Join(b.keep, fmt.Sprintf("%s-%d", p.Name, p.Seed))
	return errors.Join(os.WriteFile(path+".log", text.Bytes(), 0o644), os.WriteFile(path+".json", windows, 0o644))
}

// models writes the models and data sets of a case.
func (b *bench) models(ctx context.Context, p *plan, expand func(string) string) error {
	var text bytes.Buffer
	for _, m := range p.Models {
		line, err := json.Marshal(m)
		if err != nil {
			return err
		}
		text.WriteString(expand(string(line)) + "\n")
	}
	c := exec.CommandContext(ctx, python, filepath.Join(b.programs, "models.py"))
	c.Stdin = &text
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("models.py: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// programsOf runs the programs of a case in parallel, and returns the folders of their logs.
func (b *bench) programsOf(ctx context.Context, p *plan, expand func(string) string) (logs []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	failed := make([]error, len(p.Programs))
	var group sync.WaitGroup
	for n, one := range p.Programs {
		log := filepath.Join(b.folder, p.Name, "log"+strconv.Itoa(n))
		if err := os.MkdirAll(log, 0o755); err != nil {
			return nil, err
		}
		logs = append(logs, log)
		args := []string{filepath.Join(b.programs, one[0])}
		for _, a := range one[1:] {
			args = append(args, glob(expand(a))...)
		}
		c := exec.CommandContext(ctx, python, args...)
		c.Env = append(os.Environ(), "JOBS_LOG="+log, "JOBS_GPUS="+filepath.Join(b.folder, gpuFolder),
			"DETECT_RATE="+strconv.FormatInt(p.Bus, 10), "PYTHONDONTWRITEBYTECODE=1",
			"PYTHONPATH="+filepath.Join(b.programs, "../../jobs/programs"))
		group.Go(func() { failed[n] = serve(c) })
	}
	group.Wait()
	return logs, errors.Join(failed...)
}

// glob returns the files that a pattern names, or the argument itself.
func glob(argument string) []string {
	if files, err := filepath.Glob(argument); err == nil && len(files) > 0 {
		return files
	}
	return []string{argument}
}

// serve runs a program, and drops the files from the page cache that it names.
func serve(c *exec.Cmd) error {
	var problems bytes.Buffer
	c.Stderr = &problems
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0] != "cold" {
			continue
		}
		for _, path := range words[1:] {
			err = errors.Join(err, forget(path))
		}
		_, _ = io.WriteString(in, "\n")
	}
	if failed := c.Wait(); failed != nil && !terminated(c) {
		err = errors.Join(err, fmt.Errorf("%s: %w: %s", filepath.Base(c.Args[1]), failed, bytes.TrimSpace(problems.Bytes())))
	}
	return err
}

// terminated reports whether a program ended itself with SIGTERM, as one that is stopped while it loads.
func terminated(c *exec.Cmd) bool {
	status, ok := c.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGTERM
}

// forget writes a file back and drops it from the page cache.
func forget(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := file.Sync(); err != nil {
		return err
	}
	for try := range 20 {
		time.Sleep(time.Duration(try) * time.Millisecond)
		if err := pagecache.Forget(file); err != nil {
			return err
		}
		if left, _, err := pagecache.Resident(file); err != nil || left == 0 {
			return err
		}
	}
	return fmt.Errorf("%s stays in the page cache", path)
}

//go:build linux

// Command rhythm runs real programs, keeps what detectors get of them, and compares the epochs that are found with the
// programs' own logs: docs/internals/benches.md.
//
//	rhythm -seed 1                 run the programs with a seed
//	rhythm -again -seed 101        run nothing: judge what was kept of that seed
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/test/looks"
)

type options struct {
	seed     uint64
	seeds    int
	only     string
	again    bool
	print    bool
	features bool
	which    string
	parallel int
	programs string
	keep     string
	work     string
}

const python = "/usr/bin/python3"

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 101, "`number` that draws sizes, times and options; 1 to 3 are for tuning")
	flag.IntVar(&o.seeds, "seeds", 1, "how many seeds, from -seed on")
	flag.StringVar(&o.only, "only", "", "only programs whose name matches this `regexp`")
	flag.StringVar(&o.which, "which", "all", "tuned, held (nothing was tuned with these programs) or all")
	flag.BoolVar(&o.again, "again", false, "run nothing: judge what was kept")
	flag.BoolVar(&o.print, "print", false, "also print each epoch")
	flag.BoolVar(&o.features, "features", false,
		"print the features of what repeats, with 1 for epochs, to fit the weights")
	flag.IntVar(&o.parallel, "parallel", 2, "how many programs run at a time")
	flag.StringVar(&o.programs, "programs", "lab/rhythm/programs", "`folder` of the programs")
	flag.StringVar(&o.keep, "keep", "build/rhythm", "`folder` for what is kept")
	flag.StringVar(&o.work, "work", "/dev/shm", "`folder` for data: in memory, because epochs are the same there, and what others write delays nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	if err := o.main(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "rhythm:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be done
	}
}

func (o *options) main(ctx context.Context) error {
	wanted, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	if o.programs, err = filepath.Abs(o.programs); err != nil {
		return err
	}
	if err := os.MkdirAll(o.keep, 0o755); err != nil {
		return err
	}
	var list []entry
	for _, e := range entries() {
		if wanted.MatchString(e.name) && (o.which == "all" || (o.which == "held") == e.held) {
			list = append(list, e)
		}
	}
	var group sync.WaitGroup
	places := make(chan struct{}, o.parallel)
	for seed := o.seed; seed < o.seed+uint64(o.seeds); seed++ {
		for _, e := range list {
			name := fmt.Sprintf("%s-%d", e.name, seed)
			if o.again || ctx.Err() != nil {
				continue
			}
			places <- struct{}{}
			group.Go(func() {
				defer func() { <-places }()
				if err := o.run(ctx, e.made(seed), seed, filepath.Join(o.keep, name)); err != nil {
					fmt.Printf("FAILED %s: %v\n", name, err)
				}
			})
		}
	}
	group.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return o.judge(list)
}

// run runs one program and keeps what detectors get.
func (o *options) run(ctx context.Context, j job, seed uint64, kept string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 400*time.Second)
	defer cancel()
	dir, err := os.MkdirTemp(o.work, "stallspan-rhythm-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, sub := range []string{"data", "log", "gpus"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	expand := strings.NewReplacer("{data}", filepath.Join(dir, "data")).Replace
	for _, d := range j.data {
		maker := filepath.Join(o.programs, "make.py")
		if strings.Contains(j.program, "jobs/programs") {
			maker = filepath.Join(o.programs, "../../jobs/programs/data.py")
		}
		out, err := exec.CommandContext(ctx, python, maker, d.kind, expand(d.path),
			strconv.Itoa(d.count), strconv.Itoa(d.size),
			strconv.FormatUint(seed, 10)).CombinedOutput()
		if err != nil {
			return fmt.Errorf("data: %w: %s", err, out)
		}
	}
	command := j.command
	if j.program != "" {
		command = []string{python, filepath.Join(o.programs, j.program)}
	}
	command = append(command, j.args...)
	for i, a := range command {
		command[i] = expand(a)
	}
	w := watcher{data: []string{filepath.Join(dir, "data")}}
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 5 * time.Second
	c.Env = append(os.Environ(), "JOBS_LOG="+filepath.Join(dir, "log"), "PYTHONDONTWRITEBYTECODE=1",
		"PYTHONPATH="+filepath.Join(o.programs, "../../jobs/programs"), "OMP_NUM_THREADS=1")
	if j.gpu {
		w.gpu = filepath.Join(dir, "gpus", "0")
		if err := os.WriteFile(w.gpu, make([]byte, 32), 0o644); err != nil {
			return err
		}
		c.Env = append(c.Env, "JOBS_GPUS="+filepath.Join(dir, "gpus"))
	}
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	c.Stdout, c.Stderr = out, out
	if err := w.listen(); err != nil {
		return fmt.Errorf("fanotify: %w", err)
	}
	defer func() { _ = unix.Close(w.opens) }()
	if len(j.next) > 0 {
		next := exec.CommandContext(ctx, j.next[0])
		for _, a := range j.next[1:] {
			next.Args = append(next.Args, expand(a))
		}
		if err := next.Start(); err != nil {
			return err
		}
		defer func() { _ = next.Process.Kill(); _ = next.Wait() }()
	}
	var file bytes.Buffer // a disk that is slow would delay looks
	if err := c.Start(); err != nil {
		return err
	}
	w.pid, w.out = c.Process.Pid, looks.NewWriter(&file)
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	err = w.watch(done)
	if err != nil && ctx.Err() == nil {
		text, _ := os.ReadFile(out.Name())
		_ = c.Process.Kill()
		err = fmt.Errorf("%w: %s", err, text[max(0, len(text)-400):])
	}
	err = errors.Join(err, w.out.Close())
	return errors.Join(err, os.WriteFile(kept+".looks.gz", file.Bytes(), 0o644),
		keepLog(filepath.Join(dir, "log"), kept+".log"))
}

// keepLog keeps the lines about windows.
func keepLog(dir, kept string) error {
	var lines []string
	logs, _ := filepath.Glob(filepath.Join(dir, "*.log")) // the pattern is right
	for _, log := range logs {
		file, err := os.Open(log)
		if err != nil {
			return err
		}
		in := bufio.NewScanner(file)
		for in.Scan() {
			if f := strings.Fields(in.Text()); len(f) == 5 && (f[1] == "window" || f[1] == "begin") {
				lines = append(lines, in.Text())
			}
		}
		_ = file.Close()
	}
	return os.WriteFile(kept, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

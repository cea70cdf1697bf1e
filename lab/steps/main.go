//go:build linux

// Command steps runs trainings under stallspan run, keeps the recordings, and compares the steps that reports have with
// the programs' own logs: docs/internals/benches.md.
//
//	steps -seed 1                 run the programs with a seed, as root
//	steps -again -seed 1          run nothing: replay the recordings that were kept, with the present build
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const python = "/usr/bin/python3"

// near is by how much of it a found period may differ from the logged one to be right.
const near = 0.05

type options struct {
	seed            uint64
	seeds           int
	only, which     string
	again           bool
	parallel        int
	programs, keep  string
	stallspan, nvml string
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "`number` that draws times and options; 1 to 99 are for tuning")
	flag.IntVar(&o.seeds, "seeds", 1, "how many seeds, from -seed on")
	flag.StringVar(&o.only, "only", "", "only programs whose name matches this `regexp`")
	flag.StringVar(&o.which, "which", "tuned", "tuned, held (nothing was tuned with these programs) or all")
	flag.BoolVar(&o.again, "again", false, "run nothing: replay what was kept")
	flag.IntVar(&o.parallel, "parallel", 2, "how many programs run at a time")
	flag.StringVar(&o.programs, "programs", "lab/steps/programs", "`folder` of the programs")
	flag.StringVar(&o.keep, "keep", "build/steps", "`folder` for what is kept")
	flag.StringVar(&o.stallspan, "stallspan", "build/stallspan", "the `program` to check")
	flag.StringVar(&o.nvml, "nvml", "build/fakenvml", "`folder` of the stand-in for the driver's library")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.main(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "steps:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be done
	}
}

func (o *options) main(ctx context.Context) error {
	wanted, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	for _, path := range []*string{&o.programs, &o.keep, &o.stallspan, &o.nvml} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
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
	if !o.again {
		var group sync.WaitGroup
		places := make(chan struct{}, o.parallel)
		for seed := o.seed; seed < o.seed+uint64(o.seeds); seed++ {
			for _, e := range list {
				places <- struct{}{}
				group.Go(func() {
					defer func() { <-places }()
					if ctx.Err() != nil {
						return
					}
					if err := o.run(ctx, e.made(seed), o.kept(e, seed)); err != nil {
						fmt.Printf("FAILED %s, seed %d: %v\n", e.name, seed, err)
					}
				})
			}
		}
		group.Wait()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return o.judge(ctx, list)
}

func (o *options) kept(e entry, seed uint64) string {
	return filepath.Join(o.keep, fmt.Sprintf("%s-%d", e.name, seed))
}

// run runs one program, and keeps its recording and log.
func (o *options) run(ctx context.Context, j job, kept string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 200*time.Second)
	defer cancel()
	dir, err := os.MkdirTemp("/dev/shm", "stallspan-steps-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	log, gpus := filepath.Join(dir, "log"), filepath.Join(dir, "gpus")
	err = errors.Join(os.Mkdir(log, 0o755), os.Mkdir(gpus, 0o755))
	args := append([]string{"run", "--baseline", "off", "--quiet", "--record", kept + ".gz", "--"},
		j.command(o.programs)...)
	c := exec.CommandContext(ctx, o.stallspan, args...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 5 * time.Second
	c.Env = append(os.Environ(), "JOBS_LOG="+log, "PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=2",
		"PYTHONPATH="+filepath.Join(o.programs, "../../jobs/programs"), "XDG_STATE_HOME="+dir, "HOME="+dir)
	if j.gpu {
		plays := fmt.Sprintf("period_us 166666\ngpu 0 busy_file=%s/0 gpm=0\n", gpus)
		err = errors.Join(err, os.WriteFile(filepath.Join(gpus, "0"), make([]byte, 32), 0o644),
			os.WriteFile(filepath.Join(dir, "gpus.txt"), []byte(plays), 0o644))
		c.Env = append(c.Env, "JOBS_GPUS="+gpus, "FAKENVML_FILE="+filepath.Join(dir, "gpus.txt"),
			"LD_LIBRARY_PATH="+o.nvml)
	}
	if err != nil {
		return err
	}
	_ = os.Remove(kept + ".gz") // it may not be there
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out[max(0, len(out)-400):])
	}
	return keepLog(log, kept+".log")
}

// keepLog keeps the lines about steps and epochs.
func keepLog(dir, kept string) error {
	var lines bytes.Buffer
	logs, _ := filepath.Glob(filepath.Join(dir, "*.log")) // the pattern is right
	for _, log := range logs {
		file, err := os.Open(log)
		if err != nil {
			return err
		}
		in := bufio.NewScanner(file)
		for in.Scan() {
			if f := strings.Fields(in.Text()); len(f) == 5 && (f[1] == "step" || f[1] == "window") {
				lines.WriteString(in.Text() + "\n")
			}
		}
		_ = file.Close()
	}
	return os.WriteFile(kept, lines.Bytes(), 0o644)
}

// logged are the lengths of steps in seconds, by the number of the epoch. An epoch without any has an empty list.
func logged(path string) (map[int][]float64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all := map[int][]float64{}
	for line := range strings.Lines(string(text)) {
		var thread, kind, argument string
		var start, end time.Duration
		if n, _ := fmt.Sscan(line, &thread, &kind, &start, &end, &argument); n != 5 {
			continue
		}
		number, _ := strconv.Atoi(strings.TrimSuffix(argument, ":"))
		all[number] = append(all[number], nil...)
		if kind == "step" {
			all[number] = append(all[number], (end - start).Seconds())
		}
	}
	return all, nil
}

// tally sums up epochs.
type tally struct{ epochs, found, right, counted int }

func (o *options) judge(ctx context.Context, list []entry) error {
	var with, without tally
	fmt.Printf("%-22s %4s  %s\n", "program", "seed", "for each epoch: logged period and number; found")
	for _, e := range list {
		for seed := o.seed; seed < o.seed+uint64(o.seeds); seed++ {
			kept := o.kept(e, seed)
			steps, err := logged(kept + ".log")
			if errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err != nil {
				return err
			}
			text, err := exec.CommandContext(ctx, o.stallspan, "replay", "--json", kept+".gz").Output()
			if err != nil {
				return fmt.Errorf("%s: replay: %w", kept, err)
			}
			line, err := compare(text, steps, e.steps, &with, &without)
			if err != nil {
				return fmt.Errorf("%s: %w", kept, err)
			}
			fmt.Printf("%-22s %4d  %s\n", e.name, seed, line)
		}
	}
	fmt.Printf("precision %d of %d, recall %d of %d epochs; the number within 5 %% in %d of %d\n",
		with.right, with.found+without.found, with.right, with.epochs, with.counted, with.right)
	fmt.Printf("epochs without steps: %d of %d gave nothing\n", without.epochs-without.found, without.epochs)
	return nil
}

func compare(report []byte, steps map[int][]float64, has bool, with, without *tally) (line string, err error) {
	var r struct {
		Windows []struct {
			Kind  string
			Epoch *int
			Steps *struct {
				Period     float64 `json:"period_s"`
				Count      int     `json:"count"`
				Confidence float64 `json:"confidence"`
			}
		}
	}
	if err := json.Unmarshal(report, &r); err != nil {
		return "", err
	}
	for _, w := range r.Windows {
		if w.Kind != "epoch" || w.Epoch == nil {
			continue
		}
		lengths := steps[*w.Epoch]
		to := without
		if has {
			to = with
		}
		to.epochs++
		period := median(lengths)
		line += fmt.Sprintf("  %.3f x %d: ", period, len(lengths))
		if w.Steps == nil {
			line += "-"
			continue
		}
		to.found++
		mark := " WRONG"
		if has && math.Abs(w.Steps.Period-period) <= near*period {
			to.right++
			mark = ""
			if math.Abs(float64(w.Steps.Count-len(lengths))) <= max(1, near*float64(len(lengths))) {
				to.counted++
			}
		}
		line += fmt.Sprintf("%.3f x %d (%.2f)%s", w.Steps.Period, w.Steps.Count, w.Steps.Confidence, mark)
	}
	return line, nil
}

func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

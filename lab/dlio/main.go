//go:build linux

// Command dlio runs DLIO, the benchmark behind MLPerf Storage, under stallspan run: on a slow disk, and again from
// memory. It compares what both say: docs/internals/benches.md. It runs a checkout of
// https://github.com/argonne-lcf/dlio_benchmark, with stand-ins for its tracer and for Hydra, as root.
//
//	dlio -checkout ../dlio_benchmark -stallspan build/stallspan
package main

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/slowdisk"
)

//go:embed all:standins
var standIns embed.FS

const (
	// Debian's, with python3-torch, -mpi4py, -h5py, -pandas, -omegaconf and -pil.
	python = "/usr/bin/python3"
	// longest is the time limit of a run.
	longest = 3 * time.Minute
	files   = 42
	size    = 8 << 20
	batch   = 2
)

type options struct {
	checkout, stallspan, keep, evidence string
	formats, readers, ranks             string
	context                             string
	compute                             float64
	rate                                int64
	repeat                              int
}

func main() {
	if slowdisk.Serve() {
		return
	}
	var o options
	flag.StringVar(&o.checkout, "checkout", "", "`folder` of DLIO")
	flag.StringVar(&o.stallspan, "stallspan", "build/stallspan", "the `program` to check")
	flag.StringVar(&o.keep, "keep", "build/dlio", "`folder` for reports, recordings and DLIO's output")
	flag.StringVar(&o.evidence, "evidence", "schedule", "schedule or sampled")
	flag.StringVar(&o.formats, "formats", "npz,hdf5,jpeg", "of the files, a `list`")
	flag.StringVar(&o.readers, "readers", "0,1,4,8", "worker processes of a rank, a `list`")
	flag.StringVar(&o.ranks, "ranks", "1,2", "a `list`; 1 runs without mpirun")
	flag.StringVar(&o.context, "context", "fork", "how workers start: fork, spawn or forkserver")
	flag.Float64Var(&o.compute, "compute", 0.1, "`seconds` of a step's computation")
	flag.Int64Var(&o.rate, "rate", 40, "of the disk, in `MiB/s`")
	flag.IntVar(&o.repeat, "repeat", 1, "`times` that each is run; the medians count")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dlio:", err)
		os.Exit(1)
	}
}

// bench is the data of one format, on the disk and in memory.
type bench struct {
	options
	format string
	folder string // in memory
	disk   *slowdisk.Disk
}

func (o options) run(ctx context.Context) error {
	for _, path := range []*string{&o.checkout, &o.stallspan, &o.keep} { // DLIO runs in another folder
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	if err := os.MkdirAll(o.keep, 0o755); err != nil {
		return err
	}
	fmt.Println("| files | readers | ranks | utilization: DLIO | ledger | storage: from memory | ledger " +
		"| faster: measured | predicted | verdict |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|")
	var problems []error
	for format := range strings.SplitSeq(o.formats, ",") {
		problems = append(problems, o.runFormat(ctx, format))
	}
	return errors.Join(problems...)
}

func (o options) runFormat(ctx context.Context, format string) (err error) {
	folder, err := os.MkdirTemp("/dev/shm", "stallspan-dlio-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	b := &bench{options: o, format: format, folder: folder}
	if err := os.CopyFS(folder, standIns); err != nil {
		return err
	}
	b.disk, err = slowdisk.Open(ctx, slowdisk.Throttled, slowdisk.Options{
		Size: 1 << 30, BytesPerSecond: o.rate << 20, IOPS: 1 << 20})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.disk.Close()) }()
	if _, err := b.dlio(ctx, b.disk.Dir, 0, 1, "", "++workload.workflow.generate_data=True",
		"++workload.workflow.train=False"); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(folder, "memory"), os.DirFS(b.disk.Dir)); err != nil {
		return err
	}
	for readers := range strings.SplitSeq(o.readers, ",") {
		for ranks := range strings.SplitSeq(o.ranks, ",") {
			n, err1 := strconv.Atoi(readers)
			m, err2 := strconv.Atoi(ranks)
			if err := errors.Join(err1, err2); err != nil {
				return err
			}
			if err := b.compare(ctx, n, m); err != nil {
				return fmt.Errorf("%s, %d readers, %d ranks: %w", format, n, m, err)
			}
		}
	}
	return nil
}

// found is what one run on the disk, and the one after it from memory, showed. Shares are of the epoch.
type found struct {
	dlio, ledger     float64 // utilization of the accelerator, whose work is a sleep
	storage, stalled float64 // the time that memory saves, and the ledger's
	faster, expected float64
	verdict          window.Verdict
}

func (b *bench) compare(ctx context.Context, readers, ranks int) error {
	var all []found
	for i := range b.repeat {
		one, err := b.pair(ctx, readers, ranks, fmt.Sprintf("%s-%d-%d-%d", b.format, readers, ranks, i))
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	median := func(of func(found) float64) float64 {
		slices.SortFunc(all, func(x, y found) int { return cmp.Compare(of(x), of(y)) })
		return of(all[len(all)/2])
	}
	var verdicts []string
	for _, one := range all {
		verdicts = append(verdicts, string(one.verdict))
	}
	slices.Sort(verdicts)
	fmt.Printf("| %s | %d | %d | %.0f %% | %.0f %% | %.0f %% | %.0f %% | %.2f | %.2f | %s |\n", b.format, readers, ranks,
		100*median(func(f found) float64 { return f.dlio }), 100*median(func(f found) float64 { return f.ledger }),
		100*median(func(f found) float64 { return f.storage }), 100*median(func(f found) float64 { return f.stalled }),
		median(func(f found) float64 { return f.faster }), median(func(f found) float64 { return f.expected }),
		strings.Join(slices.Compact(verdicts), ", "))
	return nil
}

var (
	lasted      = regexp.MustCompile(`Ending epoch 1 - \d+ steps completed in ([\d.]+) s`)
	utilization = regexp.MustCompile(`Training Accelerator Utilization \[AU\] \(%\): ([\d.]+) \(`)
)

// pair runs DLIO on the disk under stallspan, and from memory without it.
func (b *bench) pair(ctx context.Context, readers, ranks int, name string) (one found, err error) {
	report := filepath.Join(b.keep, name+".json")
	if err := b.disk.Slow(); err != nil {
		return one, err
	}
	slow, err := b.dlio(ctx, b.disk.Dir, readers, ranks, report)
	if err != nil {
		return one, err
	}
	if err := os.WriteFile(filepath.Join(b.keep, name+".txt"), []byte(slow), 0o644); err != nil {
		return one, err
	}
	fast, err := b.dlio(ctx, filepath.Join(b.folder, "memory"), readers, ranks, "")
	if err != nil {
		return one, err
	}
	cold, err1 := number(lasted, slow)
	warm, err2 := number(lasted, fast)
	used, err3 := number(utilization, slow)
	text, err4 := os.ReadFile(report)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return one, err
	}
	var r struct {
		Windows []struct {
			Kind     string  `json:"kind"`
			Duration float64 `json:"duration_s"`
			Stall    struct {
				Storage float64 `json:"storage_s"`
				Reasons []struct {
					Kind string  `json:"kind"`
					Time float64 `json:"time_s"`
				} `json:"other_reasons"`
			} `json:"stall"`
			Verdict window.Verdict `json:"verdict"`
			Speedup float64        `json:"speedup_bound"`
		} `json:"windows"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return one, err
	}
	if len(r.Windows) == 0 {
		return one, fmt.Errorf("%s has no window", report)
	}
	w := r.Windows[0]
	slept := 0.0
	for _, reason := range w.Stall.Reasons {
		if reason.Kind == "timer" {
			slept += reason.Time
		}
	}
	return found{
		dlio: used / 100, ledger: slept / w.Duration,
		storage: (cold - warm) / cold, stalled: w.Stall.Storage / w.Duration,
		faster: cold / warm, expected: max(1, w.Speedup), verdict: w.Verdict,
	}, nil
}

func number(of *regexp.Regexp, text string) (float64, error) {
	match := of.FindStringSubmatch(text)
	if match == nil {
		return 0, fmt.Errorf("DLIO did not print %s", of)
	}
	return strconv.ParseFloat(match[1], 64)
}

// dlio runs DLIO on the data in a folder, with stallspan if a report is wanted, and returns what both print.
func (b *bench) dlio(
	ctx context.Context, data string, readers, ranks int, report string, more ...string,
) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	args := []string{python, "-m", "dlio_benchmark.main", "workload=unet3d_a100"}
	if ranks > 1 {
		args = append([]string{"mpirun", "-n", strconv.Itoa(ranks), "--oversubscribe"}, args...)
	}
	if report != "" {
		args = append([]string{b.stallspan, "run", "--baseline", "off", "--report", report,
			"--record", strings.TrimSuffix(report, ".json") + ".jsonl.gz", "--"}, args...)
	}
	for name, value := range map[string]any{
		"workflow.checkpoint": "False", "output.folder": filepath.Join(b.folder, "output"),
		"output.metric.exclude_start_steps": 0, // the utilization of the whole epoch
		"dataset.data_folder":               filepath.Join(data, "data"), "dataset.format": b.format,
		"dataset.num_files_train": files, "dataset.record_length_bytes": size, "dataset.record_length_bytes_stdev": 0,
		"reader.batch_size": batch, "reader.read_threads": readers, "reader.multiprocessing_context": b.context,
		"train.epochs": 1, "train.computation_time": b.compute,
	} {
		args = append(args, fmt.Sprintf("++workload.%s=%v", name, value))
	}
	c := exec.CommandContext(ctx, args[0], append(args[1:], more...)...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 10 * time.Second
	c.Dir = b.folder
	c.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(b.folder, "standins")+":"+b.checkout,
		"PYTHONDONTWRITEBYTECODE=1", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	if b.evidence == "sampled" {
		c.Env = append(c.Env, "STALLSPAN_SCHEDULE=off")
	}
	out, err := c.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return string(out), nil
}

package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/agent/internal/runs"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/state/ceiling"
)

// options are the flags of bench.
type options struct {
	Options
	asJSON, force bool
	baseline      string // "" for the default file
}

// Command is stallspan bench.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "bench [flags] DEVICE|PATH",
		Short: "Measure how fast a disk can read, and keep the result",
		Long: `Measures what hdparm -Tt measures, and random reads of 4 KiB at queue depths from 1 to 32. It takes
under 30 s, and writes nothing without --make-file. Later windows are compared with the result and
no longer with the highest throughput seen so far. It refuses to run while a window is open.`,
		Example: `  sudo stallspan bench nvme0n1
  stallspan bench /data
  stallspan bench --make-file --json .
  stallspan bench load /models/llama-8b`,
		Args:              cli.Needs(0, 1, "bench reads one disk: stallspan bench nvme0n1, or stallspan bench /data"),
		ValidArgsFunction: cli.CompleteOneWord(cli.WholeDisks),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Device, o.Path = deviceOrPath(args[0])
			}
			if err := o.Check(); err != nil {
				return cli.Usage(err)
			}
			return o.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.MakeFile, "make-file", false, "write a file of 1 GiB into the folder PATH, read it and remove it")
	flags.BoolVar(&o.asJSON, "json", false, "print one JSON object")
	flags.BoolVar(&o.force, "force", false, "measure although a window is open")
	cli.DurationFlag(flags, &o.Step, "step", "the `duration` of each of the eight steps (default 2.5s)")
	flags.Uint64Var(&o.Seed, "seed", 0, "the `number` that seeds the random offsets (default: any)")
	cli.BaselineFlag(flags, &o.baseline, "keep the result next to this `file` of baselines, or \"off\" to keep none")
	cmd.AddCommand(LoadCommand())
	return cmd
}

func (o *options) run(ctx context.Context, out io.Writer) error {
	baselines, err := cli.BaselineFile(o.baseline, "--baseline")
	if err != nil {
		return err
	}
	if err := o.Exists(); err != nil { // before the question whether a window is open
		return err
	}
	if !o.force {
		if err := noWindowIsOpen(ctx); err != nil {
			return err
		}
	}
	result, failed := Run(ctx, o.Options)
	if result == nil {
		return unmeasured(ctx, failed)
	}
	report := Report{Result: result}
	keepErr := report.keep(baselines)
	err = output.Print(out, o.asJSON, report, report.draw)
	return cmp.Or(outcome(err, failed, result.Interrupted, "steps"), keepErr)
}

// unmeasured is the error of a measurement without a result.
func unmeasured(ctx context.Context, failed error) error {
	if ctx.Err() != nil {
		return cli.ExitError{Code: cli.ExitInterrupted, Err: errors.New("interrupted before anything was measured")}
	}
	return failed
}

// outcome is the error of a measurement whose result was printed: of printing, of measuring, or that some of its parts
// were not measured.
func outcome(printing, failed error, interrupted bool, parts string) error {
	switch {
	case printing != nil:
		return printing
	case failed != nil:
		return failed
	case interrupted:
		return cli.ExitError{Code: cli.ExitInterrupted,
			Err: fmt.Errorf("interrupted: the remaining %s were not measured", parts)}
	}
	return nil
}

// Report is what bench --json prints.
type Report struct {
	*Result
	Ceiling  float64 `json:"ceiling_bytes_per_second,omitempty"` // the highest of the direct reads
	Identity string  `json:"identity,omitempty"`                 // of the disk
	KeptIn   string  `json:"kept_in,omitempty"`                  // the file that later windows read the ceiling from
}

// keep stores the result for later windows, if it certainly is the disk's own, and not slower only the first time.
func (r *Report) keep(baselines string) error {
	r.Ceiling = r.Result.Ceiling()
	if r.Device != "" {
		r.Identity = ceiling.Identify("", r.Device)
	}
	if !r.OfDisk || r.slowTouch || r.Identity == "" || r.Ceiling <= 0 || r.Await() <= 0 || baselines == "" {
		return nil
	}
	path := ceiling.PathNextTo(baselines)
	err := ceiling.Store(path, ceiling.Measured{
		Disk: r.Device, Identity: r.Identity, Read: r.Ceiling, Await: r.Await(), At: time.Now().UTC().Truncate(time.Second),
	})
	if err == nil {
		r.KeptIn = path
	}
	return err
}

// statusTimeout bounds the wait for each server that may have an open window.
const statusTimeout = 2 * time.Second

// noWindowIsOpen returns an error if a window is open, or may be: in the agent or Collector that serves the API, and in
// each stallspan run with the same folder for temporary files.
func noWindowIsOpen(ctx context.Context) error {
	for _, path := range append([]string{api.DefaultSocket()}, runs.Sockets()...) {
		open, err := openWindows(ctx, path)
		if err != nil {
			return fmt.Errorf("cannot find out whether a window is open at %s (%w): --force measures anyway", path, err)
		}
		if open > 0 {
			return fmt.Errorf("a window is open (%s), and measuring would slow its work down: "+
				"wait for its end, or give --force", path)
		}
	}
	return nil
}

// openWindows requests the number of open windows from a server: 0 if none answers.
func openWindows(ctx context.Context, path string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	status, err := api.NewClient(path).Status(ctx)
	switch {
	case err == nil:
		return status.WindowsOpen, nil
	case cli.Unserved(err):
		return 0, nil
	case errors.Is(err, fs.ErrPermission):
		return 0, errors.New("permission denied")
	case errors.Is(err, context.DeadlineExceeded):
		return 0, errors.New("no answer")
	}
	return 0, err
}

// draw writes the result as a table.
func (r *Report) draw(t *output.Table) {
	what := r.Path + ": " + explain.Size(r.Size)
	if r.Device != "" {
		what += ", disk " + r.Device
	}
	t.Text("", what)
	way := "O_DIRECT"
	if !r.Direct {
		way = "buffered"
	}
	if r.Cached > 0 {
		t.Line(fmt.Sprintf(" Timing cached reads:         %14s   from memory, no disk", output.SpeedText(r.Cached)))
	}
	if r.Sequential > 0 {
		t.Line(fmt.Sprintf(" Timing %s disk reads:  %14s   1 MiB each, 4 at once", way, output.SpeedText(r.Sequential)))
	}
	if len(r.Random) > 0 {
		t.Line("")
		t.Line(" Random reads of 4 KiB")
		t.Line(fmt.Sprintf(" %8s %12s %14s %12s %12s", "at once", "IOPS", "throughput", "await p50", "await p99"))
	}
	for _, at := range r.Random {
		t.Line(fmt.Sprintf(" %8d %12s %14s %12s %12s", at.Depth, output.Grouped(at.IOPS), output.SpeedText(at.Rate),
			explain.Duration(at.AwaitP50), explain.Duration(at.AwaitP99)))
	}
	t.Line("")
	for _, note := range r.Notes {
		t.Text("Note: ", note)
	}
	switch {
	case r.KeptIn != "":
		t.Text("", fmt.Sprintf("Kept in %s: %s can read %s, and a single read takes %s.",
			r.KeptIn, r.Device, output.SpeedText(r.Ceiling), explain.Duration(r.Await())))
	case r.slowTouch:
		t.Text("", "Not kept: what had been read before is faster.")
	case !r.OfDisk && len(r.Random) > 0:
		t.Text("", "Not kept: these numbers may not be those of a single disk.")
	default:
		t.Text("", "Not kept.")
	}
}

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/bench"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/ceiling"
)

// benchOptions are the flags of bench.
type benchOptions struct {
	bench.Options
	asJSON, force bool
	baseline      *string // nil for the default file
}

func benchCommand() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench --device DEVICE | --path PATH",
		Short: "Measure what a disk can do, by reading alone, and keep that for later",
		Long: `Shows what hdparm -Tt shows, and reads of 4 KiB at random offsets with 1 to 32 of them at once. It takes under 30 s and
writes nothing to the disk. What a disk could do is kept, and how near a model load or epoch comes to it is then judged by
that, and no longer by the most that was seen so far. It refuses to disturb a window that is being watched.`,
		Example: `  sudo stallspan bench --device nvme0n1
  stallspan bench --path /data
  stallspan bench --path . --make-file --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.Device == "" && o.Path == "":
				return errors.New("bench needs --device DEVICE, as lsblk lists them, or --path with a file or folder on it")
			case o.Device != "" && o.Path != "":
				return errors.New("--device and --path: give one of them")
			case o.MakeFile && o.Path == "":
				return errors.New("--make-file needs --path with the folder to make it in")
			}
			return o.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Device, "device", "", "the block `device` to read: sda, /dev/sda, /dev/disk/by-id/...")
	flags.StringVar(&o.Path, "path", "", "the `file` to read, or a folder, of which the largest file is read")
	flags.BoolVar(&o.MakeFile, "make-file", false, "write a file of 1 GiB into the folder --path, read it and remove it")
	flags.BoolVar(&o.asJSON, "json", false, "print one JSON object")
	flags.BoolVar(&o.force, "force", false, "measure although a window is being watched")
	flags.DurationVar(&o.Step, "step", 0, "how long each of the eight `steps` reads (default 2.5s)")
	flags.Uint64Var(&o.Seed, "seed", 0, "the `number` that the random offsets follow from (default: any)")
	flags.Func("baseline", "the `file` of baselines beside which the result is kept; \"off\" to keep none",
		func(path string) error { o.baseline = &path; return nil })
	return cmd
}

func (o *benchOptions) run(ctx context.Context, out io.Writer) error {
	baselines, err := baselineFile(o.baseline, "--baseline")
	if err != nil {
		return failure{exitFailed, err}
	}
	if !o.force {
		if err := undisturbed(ctx); err != nil {
			return failure{exitFailed, err}
		}
	}
	result, failed := bench.Run(ctx, o.Options)
	if result == nil {
		if ctx.Err() != nil {
			return failure{exitSignalBase + 2, errors.New("interrupted before anything was measured")}
		}
		return failure{exitFailed, failed}
	}
	report := benchReport{Result: result}
	keepErr := report.keep(baselines)
	write := printBench
	if o.asJSON {
		write = printBenchJSON
	}
	if err := write(out, &report); err != nil {
		return failure{exitFailed, fmt.Errorf("the numbers cannot be written: %w", err)}
	}
	switch {
	case failed != nil:
		return failure{exitFailed, failed}
	case result.Interrupted:
		return failure{exitSignalBase + 2, errors.New("interrupted: what is missing was not measured")}
	case keepErr != nil:
		return failure{exitFailed, keepErr}
	}
	return nil
}

// benchReport is what bench --json prints.
type benchReport struct {
	*bench.Result
	Ceiling  float64 `json:"ceiling_bytes_per_second,omitempty"` // the highest of the direct reads
	Identity string  `json:"identity,omitempty"`                 // of the disk
	KeptIn   string  `json:"kept_in,omitempty"`                  // the file from which later windows know the ceiling
}

// keep puts what the disk could do where later windows find it. What is not surely the disk's own is not kept.
func (r *benchReport) keep(baselines string) error {
	r.Ceiling = r.Result.Ceiling()
	if r.Device != "" {
		r.Identity = ceiling.Identify("", r.Device)
	}
	if !r.OfDisk || r.Identity == "" || r.Ceiling <= 0 || r.Await() <= 0 || baselines == "" {
		return nil
	}
	path := ceiling.Beside(baselines)
	err := ceiling.Store(path, ceiling.Measured{
		Disk: r.Device, Identity: r.Identity, Read: r.Ceiling, Await: r.Await(), At: time.Now().UTC().Truncate(time.Second),
	})
	if err == nil {
		r.KeptIn = path
	}
	return err
}

func printBenchJSON(out io.Writer, r *benchReport) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// askTime bounds how long is waited for each server that may watch a window.
const askTime = 2 * time.Second

// undisturbed is an error where a window is being watched, or may be: by whatever serves the API, and by each stallspan
// run that has the same folder for temporary files.
func undisturbed(ctx context.Context) error {
	runs, _ := filepath.Glob(filepath.Join(os.TempDir(), "stallspan-*", "api.sock"))
	for _, path := range append([]string{api.DefaultSocket()}, runs...) {
		open, err := openWindows(ctx, path)
		if err != nil {
			return fmt.Errorf("whether a window is being watched cannot be asked at %s (%w): --force measures anyway", path, err)
		}
		if open > 0 {
			return fmt.Errorf("a window is being watched (%s), and measuring would slow its work down: wait for its end, or give --force", path)
		}
	}
	return nil
}

// openWindows asks a server how many windows are open. Where none answers there are none.
func openWindows(ctx context.Context, path string) (int, error) {
	asked, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	status, err := api.NewClient(path).Status(asked)
	switch {
	case err == nil:
		return status.WindowsOpen, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return 0, nil
	case errors.Is(err, fs.ErrPermission):
		return 0, errors.New("only its owner and group may ask")
	case errors.Is(err, context.DeadlineExceeded):
		return 0, errors.New("it does not answer")
	}
	return 0, err
}

// grouped writes a whole number with commas.
func grouped(v float64) string {
	text := fmt.Sprintf("%.0f", v)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return strings.TrimSpace(text)
}

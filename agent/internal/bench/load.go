package bench

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/history"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/window"
)

// loadOptions are the flags of bench load.
type loadOptions struct {
	ModelOptions
	asJSON, force bool
}

// LoadCommand is stallspan bench load.
func LoadCommand() *cobra.Command {
	var o loadOptions
	cmd := &cobra.Command{
		Use:   "load FILE|FOLDER",
		Short: "Measure how fast a model can be loaded here, from memory and from storage",
		Long: `Reads a model as loaders do: with read and with mmap, by one reader and by several, from storage and from
the page cache, and with O_DIRECT. It prints what a loader can reach, and what the last loads of this
model did reach. It takes under 30 s, and writes nothing. It drops the model from the page cache, as a
load after a boot finds it; --keep-cache leaves that as it is, and measures less. It refuses to run while
a window is open.`,
		Example: `  stallspan bench load /models/llama-8b
  stallspan bench load model.safetensors --readers 32 --json`,
		Args: cli.Needs(1, 1, "bench load needs one file or folder, such as /models/llama-8b"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Path = args[0]
			if cmd.Flags().Changed("readers") && o.Readers == 0 { // Check takes 0 for the default
				return cli.Usagef("--readers 0: give 2 or more")
			}
			if err := o.Check(); err != nil {
				return cli.Usage(err)
			}
			return o.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Readers, "readers", DefaultReaders, "the `number` of readers of the ways with several")
	cli.DurationFlag(flags, &o.Step, "step", "the longest `duration` of each way (default 2.5s)")
	flags.BoolVar(&o.KeepCache, "keep-cache", false, "leave the page cache as it is")
	flags.BoolVar(&o.asJSON, "json", false, "print one JSON object")
	flags.BoolVar(&o.force, "force", false, "measure although a window is open")
	return cmd
}

func (o *loadOptions) run(ctx context.Context, out io.Writer) error {
	if !o.force {
		o.Before = func() error { return noWindowIsOpen(ctx) }
	}
	result, failed := Model(ctx, o.ModelOptions)
	if result == nil {
		return unmeasured(ctx, failed)
	}
	report := LoadReport{ModelResult: result}
	report.Past, report.NoPast = pastLoads(ctx, o.Path)
	report.judge()
	err := output.Print(out, o.asJSON, report, report.print)
	return outcome(err, failed, result.Interrupted, "ways")
}

// LoadReport is what bench load --json prints.
type LoadReport struct {
	*ModelResult
	Reachable float64    `json:"reachable_bytes_per_second,omitempty"` // by the fastest way from storage
	Finding   string     `json:"finding,omitempty"`
	Past      []pastLoad `json:"loads"` // of the last week, newest first
	NoPast    string     `json:"no_loads,omitempty"`
}

// pastLoad is a load of this model, or of a part of it.
type pastLoad struct {
	Name     string    `json:"name,omitempty"`
	Start    time.Time `json:"start"`
	Duration float64   `json:"duration_s"`
	Size     uint64    `json:"size_bytes"`
	Rate     float64   `json:"bytes_per_second"`
	Storage  float64   `json:"storage_s"` // of its duration, waiting for storage
	Hit      *float64  `json:"page_cache_hit_ratio,omitempty"`
}

const (
	pastAge      = 7 * 24 * time.Hour
	maxPastLoads = 100
	slowerThan   = 0.5 // of what is reachable, from which on a finding names it
)

// pastLoads returns the last loads that the agent keeps, newest first, or why they are not known.
func pastLoads(ctx context.Context, path string) (loads []pastLoad, none string) {
	loads = []pastLoad{}
	wanted := resolved(path)
	kept, err := history.Windows(ctx, time.Now().Add(-pastAge), maxPastLoads, func(r *explain.Report) bool {
		return r.Kind == window.ModelLoad && r.Load != nil && r.Load.Size > 0 && r.Duration > 0 &&
			sameModel(resolved(r.Load.Path), wanted)
	})
	if err != nil {
		return loads, "past loads are not known: " + err.Error()
	}
	for _, r := range slices.Backward(kept) {
		l := pastLoad{Name: r.Label(), Start: r.Start, Duration: r.Duration, Size: r.Load.Size,
			Rate: float64(r.Load.Size) / r.Duration, Hit: r.Load.Hit}
		if r.Stall != nil {
			l.Storage = r.Stall.Storage
		}
		loads = append(loads, l)
	}
	return loads, ""
}

// resolved returns a path without symbolic links, where it exists.
func resolved(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

// sameModel reports whether one of two paths is in the other.
func sameModel(a, b string) bool {
	within := func(path, folder string) bool {
		relative, err := filepath.Rel(folder, path)
		return err == nil && relative != ".." && !strings.HasPrefix(relative, "../")
	}
	return within(a, b) || within(b, a)
}

// judge says what the numbers mean.
func (r *LoadReport) judge() {
	best := r.ModelResult.Reachable()
	if best == nil {
		return
	}
	if memory := r.fastest(func(w *Way) bool { return w.Cached }); memory != nil && memory.Rate < best.Rate {
		r.Finding = "Storage was as fast as memory, so it is not known how fast a first load is: what is below the disk " +
			"may have kept the model, or other programs took the cores."
		return
	}
	r.Reachable = best.Rate
	r.Finding = fmt.Sprintf("From storage, this model can be read in %s: %s, with %s.", explain.Duration(best.Load),
		output.SpeedText(best.Rate), wayText(best))
	for _, how := range []How{Read, Mapped} {
		one := r.Of(how, false, false)
		if one != nil && one.Rate < slowerThan*best.Rate {
			r.Finding += fmt.Sprintf(" A loader that uses %s takes %s.", wayText(one), explain.Duration(one.Load))
		}
	}
	if len(r.Past) == 0 {
		return
	}
	var rates []float64
	for _, l := range r.Past {
		rates = append(rates, l.Rate)
	}
	slices.Sort(rates)
	middle := rates[len(rates)/2]
	times := fmt.Sprintf("The last %d loads", len(rates))
	if len(rates) == 1 {
		times = "The last load"
	}
	r.Finding += fmt.Sprintf(" %s reached %s (median): %.0f %% of that.", times, output.SpeedText(middle),
		100*middle/best.Rate)
	if len(rates) == 1 {
		r.Finding = strings.Replace(r.Finding, " (median)", "", 1)
	}
}

func wayText(w *Way) string {
	if w.Readers == 1 {
		return howText(w.How) + " and one reader"
	}
	return fmt.Sprintf("%s and %d readers", howText(w.How), w.Readers)
}

func howText(how How) string {
	if how == Direct {
		return "O_DIRECT"
	}
	return string(how)
}

// print writes the report as a table.
func (r *LoadReport) print(t *output.Table) {
	head := fmt.Sprintf("%s: %s in %d files", r.Path, explain.Size(r.Size), r.Files)
	if r.Files == 1 {
		head = fmt.Sprintf("%s: %s", r.Path, explain.Size(r.Size))
	}
	if r.FileSystem != "" {
		head += " on " + r.FileSystem
	}
	if r.Device != "" {
		head += ", disk " + r.Device
	}
	if r.InCache != nil {
		head += fmt.Sprintf("; %s of it in the page cache", explain.Size(*r.InCache))
	}
	t.Text("", head+".")
	t.Line("")
	several := 0
	for i := range r.Ways {
		several = max(several, r.Ways[i].Readers)
	}
	t.Line("How fast it can be read, and the time for the whole model:")
	t.Line(fmt.Sprintf("%-12s %-9s %26s %26s", "from", "with", "one reader", fmt.Sprintf("%d readers", max(2, several))))
	for _, cached := range []bool{false, true} {
		for _, how := range []How{Read, Mapped, Direct} {
			one, many := r.Of(how, cached, false), r.Of(how, cached, true)
			if one == nil && many == nil {
				continue
			}
			from := "storage"
			if cached {
				from = "page cache"
			}
			t.Line(fmt.Sprintf("%-12s %-9s %26s %26s", from, howText(how), wayCell(one), wayCell(many)))
		}
	}
	t.Line("")
	t.Text("", r.Finding)
	for i, l := range r.Past {
		if i == maxPastRows {
			t.Line(fmt.Sprintf("  ... and %d more in the last week (--json)", len(r.Past)-i))
			break
		}
		t.Line(fmt.Sprintf("  %s  %s in %s, %s, %s waiting for storage", l.Start.Local().Format("Jan _2 15:04"),
			explain.Size(l.Size), explain.Duration(l.Duration), output.SpeedText(l.Rate), explain.Duration(l.Storage)))
	}
	for _, note := range r.Notes {
		t.Text("Note: ", note)
	}
	if r.NoPast != "" {
		t.Text("Note: ", r.NoPast+".")
	}
}

// maxPastRows is how many past loads the table lists.
const maxPastRows = 5

func wayCell(w *Way) string {
	if w == nil {
		return "-"
	}
	return fmt.Sprintf("%s %10s", output.SpeedText(w.Rate), explain.Duration(w.Load))
}

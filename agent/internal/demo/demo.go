// Package demo is the command demo: it finds the storage stall of an emulated training run.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/agent/internal/reports"
	"github.com/stallspan/stallspan/agent/internal/telemetry"
	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/emulate"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

const (
	name        = "demo"
	model       = "demo-model"
	accelerator = "emulated-0"
)

// Command is stallspan demo.
func Command() *cobra.Command {
	var dir string
	var outputs reports.OutputFlags
	var spans cli.SpanFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Find the storage stall of a training run on this machine's disk, with an emulated GPU",
		Long: `Writes up to 512 MiB of files to a real disk, and trains on them with an emulated GPU: a cold model
load, an epoch that reads its samples from the disk one at a time, and the same epoch from the page
cache. Prints where the time of each went. The first epoch predicts a speed-up; the second one
measures it. Takes under a minute, needs neither a GPU nor root, and removes its files.`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			files, err := outputs.Open()
			if err != nil {
				return err
			}
			defer files.Discard()
			d := &demo{out: cmd.OutOrStdout(), outputs: outputs, written: files, spans: spans}
			err = d.run(cmd.Context(), dir)
			if errors.Is(err, context.Canceled) {
				return cli.ExitError{Code: cli.ExitInterrupted, Err: errors.New("the demo was interrupted; its files are removed")}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "",
		"`folder` on the disk to read (default: the one for temporary files, or this one)")
	outputs.Add(cmd.Flags(), "on standard output")
	spans.Add(cmd)
	return cmd
}

// demo is one run of the demonstration.
type demo struct {
	out     io.Writer
	outputs reports.OutputFlags
	written *reports.Outputs
	spans   cli.SpanFlags

	files       *emulate.Files
	accelerator *emulate.Accelerator
	plan        emulate.Plan
	monitor     *monitor.Monitor
	client      *windows.Client
	timeline    telemetry.Timeline
}

func (d *demo) run(ctx context.Context, dir string) (err error) {
	d.files, err = emulate.Prepare(ctx, dir, emulate.Options{Writing: func(dir string, on emulate.FileSystem) {
		d.say("Writing files to a real disk, at most 512 MiB: to %s (%s).", dir, on.Name)
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.files.Close()) }()
	d.accelerator = emulate.NewAccelerator(accelerator)
	d.say("Measuring how long a read of a 4 KiB sample takes.")
	d.plan, err = emulate.Calibrate(ctx, d.files, d.accelerator, 0)
	if err != nil {
		return err
	}
	d.say("A sample takes %s from the disk and %s from memory; a step reads %d of them and computes for %s.",
		explain.Duration(d.plan.Cold.Seconds()), explain.Duration(d.plan.Warm.Seconds()), d.plan.RecordsPerStep,
		explain.Duration(d.plan.Compute.Seconds()))
	return d.watch(ctx)
}

// watch runs the load and the two epochs under a monitor.
func (d *demo) watch(ctx context.Context) error {
	settings := monitor.NewConfig(config.DefaultSampling())
	settings.Jobs = false // it follows its own program alone
	settings.Accelerator = d.accelerator
	settings.Journal = d.written.Live(nil)
	m, err := monitor.New(settings)
	if err != nil {
		return err
	}
	d.monitor = m
	m.Start()
	defer m.Stop()
	t, err := telemetry.Open(ctx, m, d.spans.Spans)
	if err != nil {
		return err
	}
	if err := m.Jobs.Follow(name, os.Getpid(), "", false); err != nil {
		return err
	}
	defer m.Jobs.Unfollow(name)
	runtime.LockOSThread() // the loop is one thread, as in most training programs
	defer runtime.UnlockOSThread()
	m.Jobs.Lead(name, syscall.Gettid())
	began := m.Now()
	root := t.Exporter.Begin(telemetry.RootName(name), began.At.Wall, trace.SpanContext{})
	d.client = telemetry.NewClient(m, t, &d.timeline, name, name, root.SpanContext())
	whole := window.Window{Kind: window.Custom, Name: name, Run: name, Job: name, Source: window.Announced,
		Owned: true}
	id, err := m.Windows.Begin(whole, began)
	if err != nil {
		return err
	}

	cold, warm, err := d.train(ctx)
	report, _ := m.Windows.End(id, m.Now())
	root.End(t.RootSpan(name, began.At.Wall, report))
	if err == nil {
		shown := d.show(cold, warm)
		err = cli.SayAll(append(d.save(report), shown)...)
	}
	t.Close(ctx)
	return err
}

// train does the work, and returns the reports of the cold and the warm epoch.
func (d *demo) train(ctx context.Context) (cold, warm *window.Report, err error) {
	d.say("Loading a model of %d MiB that is not in memory.", d.files.ModelBytes()>>20)
	if err := d.cold(); err != nil {
		return nil, nil, err
	}
	_, err = d.window(window.Window{Kind: window.ModelLoad, Model: model, Path: d.files.Model()},
		func() error { return emulate.Load(ctx, d.files) })
	if err != nil {
		return nil, nil, err
	}
	d.say("Training an epoch of %d steps from the disk, for about %s.", d.plan.Steps, explain.Duration(
		d.plan.ColdTime().Seconds()))
	if err := d.cold(); err != nil {
		return nil, nil, err
	}
	if cold, err = d.epoch(ctx, 1); err != nil {
		return nil, nil, err
	}
	d.say("Training the same epoch from memory, for about %s.", explain.Duration(d.plan.WarmTime().Seconds()))
	if err := d.files.Warm(ctx); err != nil {
		return nil, nil, err
	}
	warm, err = d.epoch(ctx, 2)
	return cold, warm, err
}

// cold drops the files from the page cache. If a file system keeps some of them, it prints a warning and goes on.
func (d *demo) cold() error {
	err := d.files.Cold()
	var still *emulate.StillCachedError
	if errors.As(err, &still) {
		cli.Say("%v", err)
		return nil
	}
	return err
}

func (d *demo) epoch(ctx context.Context, number int) (*window.Report, error) {
	return d.window(window.Window{Kind: window.Epoch, Epoch: number, HasEpoch: true},
		func() error { return emulate.Epoch(ctx, d.files, d.accelerator, d.plan) })
}

// window runs work in a window of its own, as a training loop would.
func (d *demo) window(w window.Window, work func() error) (*window.Report, error) {
	w.Source, w.Owned = window.Announced, true
	id, _, err := d.client.BeginAt(w, d.monitor.Now(), trace.SpanContext{})
	if err != nil {
		return nil, err
	}
	failed := work()
	r, err := d.client.EndAt(id, d.monitor.Now(), window.Outcome{Unfinished: failed != nil, Failed: failed != nil})
	return r, errors.Join(failed, err)
}

func (d *demo) show(cold, warm *window.Report) error {
	windows, _ := d.timeline.Sorted()
	measured := cold.Duration().Seconds() / warm.Duration().Seconds()
	if d.outputs.JSON {
		doc := reports.NewDocument(nil, windows, d.monitor.Problems())
		doc.MeasuredSpeedup = &measured
		if cold.Speedup > 0 {
			doc.PredictedSpeedup = &cold.Speedup
		}
		return output.WriteJSON(d.out, doc)
	}
	reports.PrintTable(d.out, windows, d.monitor.Problems())
	if d.outputs.WhatIf {
		reports.PrintWhatIf(d.out, windows)
	}
	t := output.NewTable(d.out)
	t.Line("")
	if cold.Speedup > 0 {
		t.Text("", "Predicted: epoch 1 would be "+explain.Faster(cold.Speedup, cold.SpeedupLow, cold.SpeedupHigh)+
			" without waiting for storage.")
	}
	t.Text("", fmt.Sprintf("Measured: epoch 2, the same work from memory, was %.2fx faster%s.", measured,
		missed(cold, warm, measured)))
	if slices.ContainsFunc(windows, func(r *window.Report) bool { return r.Slow }) {
		t.Text("", "SLOW: storage took more than half of a window.") // nothing else makes one slow here
	}
	if cold.Pressure == nil {
		t.Text("", "This kernel reports no I/O pressure (boot with psi=1): the stall is estimated from the disk's queue.")
	}
	t.Line("")
	t.Line("Now your own program:  stallspan run -- python3 train.py")
	return nil
}

// save writes the files that are wanted.
func (d *demo) save(whole *window.Report) []error {
	windows, _ := d.timeline.Sorted()
	return d.written.Save(reports.NewDocument(whole, windows, d.monitor.Problems()), reports.Pictured{
		Title: "stallspan demo", Facts: reports.Host(), Monitor: d.monitor, Whole: whole, Windows: windows,
	})
}

// say reports the progress on standard error, as standard output is for the report.
func (d *demo) say(format string, args ...any) {
	_ = output.WriteTable(os.Stderr, func(t *output.Table) { t.Text("", fmt.Sprintf(format, args...)) })
}

// missed reports a measured speed-up outside of the range that was predicted, with the reason, if that is known; "" for
// one within.
func missed(cold, warm *window.Report, measured float64) string {
	low, high := cold.SpeedupLow, cold.SpeedupHigh
	const digit = 0.05 // the range is shown with one
	if low <= 0 || measured >= low-digit && (high <= 0 || measured <= high+digit) {
		return ""
	}
	text := ", which is outside of this range"
	switch less, had := cold.Shares().Ready, warm.Shares().Ready; {
	case measured < low && had > less, measured > high && less > had:
		text += ": other programs took the cores for longer in one of them"
	case measured > high && cold.CPU-cold.Ready > warm.CPU-warm.Ready:
		text += ": its other work was faster, too"
	case measured < low && warm.CPU-warm.Ready > cold.CPU-cold.Ready:
		text += ": its other work was slower"
	}
	return text
}

// Package run is the command run: it runs a program, and shows where its time went.
package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/export"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/agent/internal/record"
	"github.com/stallspan/stallspan/agent/internal/reports"
	"github.com/stallspan/stallspan/agent/internal/runs"
	"github.com/stallspan/stallspan/agent/internal/telemetry"
	"github.com/stallspan/stallspan/agent/internal/version"
	"github.com/stallspan/stallspan/agent/internal/wrap"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/identity"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/progress"
	"github.com/stallspan/stallspan/internal/progress/follow"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
	"github.com/stallspan/stallspan/semconv"
)

// options are the flags of run.
type options struct {
	outputs  reports.OutputFlags
	name     string
	failOn   string
	slow     cli.SlowFlags
	spans    cli.SpanFlags
	quiet    bool
	patterns progress.Options
	recorder record.Recorder
}

// runJob names the wrapped program's process tree.
const runJob = "run"

// Command is stallspan run.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a program, and show where the time of each epoch and model load went",
		Long: `Runs a program with its input, output, signals and exit code untouched. Meanwhile it reads this
machine's devices, and recognizes epochs and model loads in the program's output. At the end it
prints a table on standard error. With OTEL_EXPORTER_OTLP_ENDPOINT set, it exports metrics and
spans over OTLP.`,
		Example: `  stallspan run -- python3 train.py
  stallspan run --report report.json --fail-on slow -- python3 train.py
  stallspan run --load-begin 'Loading (?P<model>\S+)' --load-end 'ready' -- ./serve`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage(errors.New("run needs a program: stallspan run -- python3 train.py"))
			}
			return o.run(cmd.Context(), args)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	o.outputs.Add(flags, "on standard error, in place of the table")
	flags.StringVar(&o.recorder.Path, "record", "", "also record all readings to this `file`, for stallspan replay")
	flags.StringVar(&o.name, "name", "", "`name` of the run on spans and metrics (default: the program or script)")
	flags.StringVar(&o.patterns.EpochPattern, "epoch-pattern", "",
		"`regexp` of a line that begins an epoch;\nits group \"epoch\", or the first one, is the number")
	flags.StringVar(&o.patterns.EpochEnd, "epoch-end-pattern", "",
		"`regexp` of a line that ends an epoch, with the\nsame groups; alone, an epoch begins where one ended")
	flags.StringVar(&o.patterns.LoadBegin, "load-begin", "",
		"`regexp` of a line that begins a model load;\nits group \"model\" is the name")
	flags.StringVar(&o.patterns.LoadEnd, "load-end", "", "`regexp` of a line that ends a model load")
	flags.BoolVar(&o.quiet, "quiet", false, "print no lines while the program runs, and no table")
	flags.StringVar(&o.failOn, "fail-on", "", "exit with code 3 if the program succeeds but a window was `slow`")
	cli.Section(flags, "Recognize epochs and loads", "epoch-pattern", "epoch-end-pattern", "load-begin", "load-end")
	o.slow.Add(cmd)
	o.spans.Add(cmd)
	return cmd
}

func (o *options) run(ctx context.Context, argv []string) error {
	if o.failOn != "" && o.failOn != "slow" {
		return cli.Usagef("--fail-on %q is unknown: the only choice is slow", o.failOn)
	}
	limits, noBaselines, err := o.slow.Resolve()
	if err != nil {
		return cli.Usage(err)
	}
	reader, err := progress.NewReader(o.patterns)
	if err != nil {
		return cli.Usage(err)
	}
	files, err := o.outputs.Open()
	if err != nil {
		return cli.ExitError{Code: cli.ExitRun, Err: err}
	}
	defer files.Discard()
	if err := o.recorder.Open(); err != nil {
		return cli.ExitError{Code: cli.ExitRun, Err: err}
	}
	defer func() { _ = o.recorder.Close() }()
	if o.name == "" {
		o.name = identity.NameOf(argv)
	}
	r := &run{options: o, argv: argv, reader: reader, files: files, limits: limits, noBaselines: noBaselines,
		live:    &liveLines{on: !o.quiet && !o.outputs.JSON && term.IsTerminal(int(os.Stderr.Fd()))},
		signals: wrap.NewRelay(ctx, unix.SIGWINCH)}
	defer r.signals.Stop()
	r.windows.Added = func(w *window.Report) {
		r.live.print(liveLine(w))
		r.telemetry.Handover.Ended(w)
	}
	return r.do(context.WithoutCancel(ctx)) // ^C is for the program
}

// run is one wrapped program from before its start to after its end.
type run struct {
	options *options
	argv    []string
	reader  *progress.Reader
	live    *liveLines
	signals *wrap.Relay
	files   *reports.Outputs
	limits  config.Slow

	monitor   *monitor.Monitor
	telemetry *telemetry.Telemetry
	client    *windows.Client
	announced *follow.Windows
	windows   telemetry.Timeline
	follower  *follow.Follower
	root      *export.Open // the run's own span
	began     monitor.Moment
	id        string // of the window that is the whole run
	whole     *window.Report
	code      int
	ended     window.Outcome // of the program
	exited    bool           // by itself, not by a signal
	pid       int

	noBaselines error // why windows are not compared with earlier ones
	unfollowed  error // why the program's own reads and CPU time are not known
	recorded    error // why the recording is incomplete
	unprinted   error // why the report of --json was not printed
}

func (r *run) do(ctx context.Context) error {
	runs.Sweep(runs.SweepAge)
	m, err := monitor.New(monitor.Config{
		Journal: r.files.Live(r.options.recorder.Journal()), Slow: r.limits, Schedule: monitor.WithSchedule(),
		Latency: monitor.WithSchedule(),
	})
	if err != nil {
		return cli.ExitError{Code: cli.ExitRun, Err: err}
	}
	r.monitor = m
	m.Start()
	defer m.Stop()

	r.telemetry, err = telemetry.Open(ctx, m, r.options.spans.Spans)
	if err != nil {
		return cli.ExitError{Code: cli.ExitRun, Err: err}
	}
	r.telemetry.Handover = telemetry.NewHandover(api.AgentSockets())
	r.root = r.telemetry.Exporter.Begin(telemetry.RootName(r.options.name), time.Now(), telemetry.ParentFromEnvironment())
	r.client = telemetry.NewClient(m, r.telemetry, &r.windows, r.options.name, runJob, r.root.SpanContext())

	r.announced = &follow.Windows{Client: r.client}
	server := runs.Serve(r.monitor, r.announced)
	err = r.watch(server.Path)
	server.Stop()
	r.recorded = r.options.recorder.Close()
	if err != nil {
		r.root.Drop()
		r.telemetry.Close(ctx)
		return err
	}
	m.SaveBaselines()                                           // before its problems are printed
	if err := r.print(); err != nil && r.options.outputs.JSON { // who asked for it counts on it
		r.unprinted = fmt.Errorf("the report cannot be printed: %w", err)
	} else if err != nil {
		cli.Say("the report cannot be printed: %v", err)
	}
	if server.Err != nil {
		cli.Say("warning: the program could not announce windows: %v", server.Err)
	}
	return r.finish(ctx)
}

// soonest is how long a program runs before its first epoch at least, if a user ends it there.
const soonest = 30 * time.Second

// wentOn is how long after ^C a window begins in a program that goes on. One that ends may print a line before it does.
const wentOn = time.Second

// watch runs the program, from its start to the last byte of its output.
func (r *run) watch(socket string) error {
	group := runs.NewCgroup()
	defer runs.RemoveCgroup(group)
	followed := group != nil && r.monitor.Jobs.Follow(runJob, 0, group.Path, true) == nil
	r.began = r.monitor.Now()
	r.follower = follow.New(r.monitor, r.announced, r.reader, runJob, r.began)

	environment := append(os.Environ(), "TRACEPARENT="+r.root.Traceparent())
	if socket != "" {
		environment = append(environment, "STALLSPAN_SOCKET="+socket)
	}
	r.live.print(fmt.Sprintf("watching %s; kill -USR1 %d shows the state so far", window.ShownName(r.options.name),
		os.Getpid()))
	c, err := wrap.Start(r.argv, environment, group, r.signals, wrap.Hooks{Line: r.follower.Line,
		Passed: r.live.passed, Status: r.status})
	if err != nil {
		return err
	}
	r.pid = c.Cmd.Process.Pid
	if !followed || !c.OwnCgroup {
		r.monitor.Jobs.Unfollow(runJob)
		r.unfollowed = r.monitor.Jobs.Follow(runJob, r.pid, "", false)
	} else {
		r.monitor.Now() // finds its first process, whose threads are followed from now on
	}
	r.monitor.Jobs.WatchMemory(runJob, r.pid)
	r.id, _ = r.monitor.Windows.Begin(window.Window{Kind: window.Custom, Name: r.options.name, Run: r.options.name,
		Job: runJob, Source: window.Announced, Owned: true, PID: r.pid}, r.began)

	var exit monitor.Moment
	code, status := c.Wait(func() {
		r.client.Close() // before the reading: no window may begin after it
		exit = r.follower.Exited()
	})
	stopped := r.signals.Stopped()
	if stopped.At+wentOn < r.announced.Newest() {
		stopped.Signal = 0
	}
	r.code, r.exited, r.ended = code, status.Exited(), wrap.OutcomeOf(status, stopped.Signal,
		r.monitor.Jobs.OutOfMemory(runJob))
	r.follower.Close(r.ended)
	open := r.ended
	if !open.Unfinished {
		open.Ended = "the program ended"
	}
	r.client.EndAll(exit, open)
	if code == 0 {
		r.ended = window.Outcome{}
	}
	r.whole, _ = r.monitor.Windows.Cut(r.id, exit, r.ended) // ErrUnknown: it did not begin, as thousands were open
	if r.whole != nil {
		r.telemetry.Handover.Ended(r.whole)
	}
	r.monitor.Jobs.Unfollow(runJob)
	return nil
}

// status prints the ledgers of the windows that are open.
func (r *run) status() {
	reports.PrintTable(os.Stderr, r.monitor.Windows.Running(), r.problems())
}

// print prints the result on standard error: standard output is the program's.
func (r *run) print() error {
	switch {
	case r.options.outputs.JSON:
		return output.WriteJSON(os.Stderr, r.document())
	case r.options.quiet:
		return nil
	}
	reports.PrintTable(os.Stderr, r.timeline(), r.problems())
	if r.options.outputs.WhatIf {
		reports.PrintWhatIf(os.Stderr, r.timeline())
	}
	err := output.WriteTable(os.Stderr, r.summary().Write)
	if r.ended.Failed {
		cli.Say("the program failed: %s", r.ended.Ended)
	} else if r.ended.Unfinished {
		cli.Say("the program was ended: %s", r.ended.Ended)
	}
	return err
}

// document is the report with the program.
func (r *run) document() reports.Document {
	d := reports.NewDocument(r.whole, r.timeline(), r.problems())
	host, _ := os.Hostname()
	d.Program = &reports.ProgramDocument{Command: r.argv, Code: r.code, Ended: r.ended.Ended, Host: host,
		Version: version.Number(),
		Schema:  semconv.SchemaURL, GPUs: map[string]string{}}
	now := r.monitor.Collect()
	for i := range now.GPUs.GPUs {
		d.Program.GPUs[now.GPUs.GPUs[i].ID] = now.GPUs.GPUs[i].Name
	}
	return d
}

func (r *run) summary() *reports.Summary {
	windows, _ := r.windows.Sorted()
	s := reports.NewSummary(r.whole, windows)
	cut := r.ended.Failed || r.ended.Unfinished && r.whole != nil && r.whole.Duration() < soonest
	if hint := r.reader.Hint(); len(windows) == 0 && !cut {
		s.NoEpochs = &hint
	}
	return s
}

// timeline returns the windows for the table and the report: the whole run if there are no others.
func (r *run) timeline() []*window.Report {
	windows, _ := r.windows.Sorted()
	if len(windows) == 0 && r.whole != nil {
		return []*window.Report{r.whole}
	}
	return windows
}

// problems lists what could not be read.
func (r *run) problems() []error {
	list := r.monitor.Problems()
	if r.noBaselines != nil {
		list = append(list, cli.NoBaselines(r.noBaselines))
	}
	if r.unfollowed != nil {
		list = append(list, fmt.Errorf("the program's own reads and CPU time are unknown: %w", r.unfollowed))
	}
	if _, dropped := r.windows.Sorted(); dropped > 0 {
		list = append(list, fmt.Errorf("%d windows after the first %d are only in the telemetry", dropped,
			telemetry.MaxReports))
	}
	return list
}

// finish writes the report, flushes the telemetry, and returns the exit code.
func (r *run) finish(ctx context.Context) error {
	saved := r.files.Save(r.document(), reports.Pictured{
		Title: r.options.name, Facts: reports.Host(), Monitor: r.monitor, Whole: r.whole, Windows: r.timeline(),
	})
	failed := cli.SayAll(append(saved, r.recorded, r.unprinted)...)
	r.root.End(r.span())
	r.telemetry.Close(ctx)
	return r.outcome(failed)
}

// outcome is the exit code. The program's own comes first, then a report or recording that failed, then slow windows.
func (r *run) outcome(failed error) error {
	switch {
	case r.code != 0:
		return cli.ExitError{Code: r.code}
	case failed != nil:
		return cli.ExitError{Code: cli.ExitRun}
	case r.options.failOn == "slow" && slices.ContainsFunc(r.timeline(), func(w *window.Report) bool { return w.Slow }):
		return cli.ExitError{Code: cli.ExitSlow}
	}
	return nil
}

// span is the span of the whole run.
func (r *run) span() emit.Span {
	s := r.telemetry.RootSpan(r.options.name, r.began.At.Wall, r.whole)
	s.Attributes = append(s.Attributes, semconv.ProcessPIDKey.Int(r.pid))
	if r.exited {
		s.Attributes = append(s.Attributes, semconv.ProcessExitCodeKey.Int(r.code))
	}
	return s
}

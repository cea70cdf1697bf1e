// Package record is the command record, and writes the recordings of run: all readings of a machine, in files.
package record

import (
	"context"
	"fmt"
	"io"
	"net"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/daemon"
	"github.com/stallspan/stallspan/agent/internal/export"
	"github.com/stallspan/stallspan/agent/internal/reports"
	"github.com/stallspan/stallspan/agent/internal/stat"
	"github.com/stallspan/stallspan/agent/internal/telemetry"
	"github.com/stallspan/stallspan/agent/internal/version"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/window"
)

// Name is the name of the window over a whole recording.
const Name = "recording"

// WholeWindow is the window over a whole recording.
func WholeWindow() window.Window {
	return window.Window{Kind: window.Custom, Name: Name, Run: Name, Source: window.Announced, Owned: true}
}

// Command is stallspan record.
func Command() *cobra.Command {
	var r record
	cmd := &cobra.Command{
		Use:   "record [flags] FILE",
		Short: "Record this machine's readings until stopped, to replay them elsewhere",
		Long: `Records every reading of this machine, and every window that programs announce, until ^C. At the
end it prints a table: of the windows or, if there were none, of the devices. An earlier recording
in FILE becomes FILE.1.`,
		Example: `  stallspan record machine.gz
  stallspan record --for 10m --report report.json machine.gz`,
		Args: cli.Needs(1, 1, "record needs one file: stallspan record machine.gz"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("for") && r.length <= 0 {
				return cli.Usagef("--for %v: give a positive duration such as 10m", r.length)
			}
			if args[0] == "-" {
				return cli.Usagef("a recording is a file, not standard output: give a name such as machine.gz")
			}
			r.out, r.Path = cmd.OutOrStdout(), args[0]
			return r.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	cli.DurationFlag(flags, &r.length, "for", "stop after this `duration` (default: until ^C)")
	flags.StringVar(&r.reportPath, "report", "", "write the report as JSON to this `file`")
	r.spans.Add(cmd)
	return cmd
}

// record is one recording from before its start to after its end.
type record struct {
	Recorder
	daemon.Daemon
	reportPath string
	spans      cli.SpanFlags
	length     time.Duration
	out        io.Writer // for the table

	report  *reports.ReportFile
	windows telemetry.Timeline
	devices *stat.Devices
	root    *export.Open // the recording's own span
	id      string       // of the window over the whole recording
	began   time.Time
}

func (r *record) run(ctx context.Context) (err error) {
	if r.report, err = reports.OpenReport(r.reportPath); err != nil {
		return err
	}
	defer r.report.Discard()
	if err = r.Open(); err != nil {
		return err
	}
	defer func() { _ = r.Close() }()

	lasting := context.WithoutCancel(ctx) // for the flush after ctx has ended
	// A terminal that is closed ends a recording as ^C does.
	ctx, stop := signal.NotifyContext(ctx, append(cli.NotIgnored(syscall.SIGHUP), syscall.SIGTERM)...)
	defer stop()
	r.devices = stat.NewDevices(endOnError{r.file, stop})
	r.Monitor, err = monitor.New(monitor.Config{Journal: r.devices, Schedule: monitor.WithSchedule()})
	if err != nil {
		return err
	}
	r.Monitor.Start()
	defer r.Monitor.Stop()
	if err := r.begin(lasting); err != nil {
		return err
	}
	failed := r.serve(ctx)
	return r.finish(lasting, failed)
}

// begin begins the window over the whole recording.
func (r *record) begin(ctx context.Context) (err error) {
	r.Telemetry, err = telemetry.Open(ctx, r.Monitor, r.spans.Spans)
	if err != nil {
		return err
	}
	at := r.Monitor.Now()
	r.began = at.At.Wall
	r.root = r.Telemetry.Exporter.Begin(telemetry.RootName(Name), r.began, telemetry.ParentFromEnvironment())
	r.Client = telemetry.NewClient(r.Monitor, r.Telemetry, &r.windows, "", "", r.root.SpanContext())
	r.id, err = r.Monitor.Windows.Begin(WholeWindow(), at)
	return err
}

// finish ends the open windows, and shows the result.
func (r *record) finish(ctx context.Context, failed error) error {
	r.Client.Close()
	end := r.Monitor.Now()
	r.Client.EndAll(end, window.Outcome{Ended: "the end of the recording"})
	whole, err := r.Monitor.Windows.End(r.id, end)
	if err != nil {
		return err // not possible: only finish ends it
	}
	closed := r.Close()
	saved := r.show(whole)
	cli.Say("recorded %s to %s: %s", explain.Size(uint64(r.file.Size())), r.Path,
		explain.Duration(whole.Duration().Seconds()))
	r.root.End(r.Telemetry.RootSpan(Name, r.began, whole))
	r.Telemetry.Close(ctx)
	return cli.SayAll(failed, closed, saved)
}

// serve accepts announced windows until the recording ends. If the socket cannot be opened, it records without them.
func (r *record) serve(ctx context.Context) error {
	var listeners []net.Listener
	socket, err := api.Listen(api.DefaultSocket())
	if err == nil {
		defer func() { _ = socket.Close() }()
		listeners = append(listeners, socket)
		cli.Say("recording to %s, with windows announced at %s; stop with ^C", r.Path, socket.Addr())
	} else {
		cli.Say("recording to %s, without announced windows (%v); stop with ^C", r.Path, err)
	}
	if r.length > 0 {
		timed, stop := context.WithTimeout(ctx, r.length)
		defer stop()
		ctx = timed
	}
	return r.Serve(ctx, listeners, 0)
}

// show prints the table, and writes the report.
func (r *record) show(whole *window.Report) error {
	windows, dropped := r.windows.Sorted()
	problems := r.Monitor.Problems()
	if len(windows) == 0 {
		shown := r.devices.Print(r.out, problems)
		return cli.SayAll(shown, r.report.Save(reports.NewDocument(whole, []*window.Report{whole}, problems)))
	}
	if dropped > 0 {
		problems = append(problems, fmt.Errorf("%d windows after the first %d are only in the recording", dropped,
			telemetry.MaxReports))
	}
	reports.PrintTable(r.out, windows, problems)
	return r.report.Save(reports.NewDocument(whole, windows, problems))
}

// Recorder is the recording of a command that may make one.
type Recorder struct {
	Path string          // empty without a recording
	file *recording.File // nil before open, and without a recording
}

// Open creates the recording before anything else begins, so that a wrong path is found at once.
func (r *Recorder) Open() (err error) {
	if r.Path == "" {
		return nil
	}
	h := recording.ThisMachine(monitor.Boot(""), config.DefaultInterval, version.Number())
	r.file, err = recording.Create(r.Path, h)
	return err
}

// Journal is the monitor's output to the recording.
func (r *Recorder) Journal() monitor.Journal {
	if r.file == nil {
		return nil
	}
	return r.file
}

// Close completes the recording. The error is why it is incomplete. Later calls have no effect.
func (r *Recorder) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// endOnError ends the command when the journal cannot be written.
type endOnError struct {
	monitor.Journal
	end context.CancelFunc
}

func (j endOnError) Write(e *recording.Entry) error {
	err := j.Journal.Write(e)
	if err != nil {
		j.end()
	}
	return err
}

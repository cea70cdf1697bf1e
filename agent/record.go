package agent

import (
	"context"
	"fmt"
	"io"
	"net"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/export"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/window"
)

const (
	recordName  = "recording" // of the window over a whole recording
	minPartSize = 1 << 20     // bytes of a recording's file: some minutes of a small machine
)

func wholeRecording() window.Window {
	return window.Window{Kind: window.Custom, Name: recordName, Run: recordName, Source: window.Announced, Owned: true}
}

func recordCommand() *cobra.Command {
	var r record
	cmd := &cobra.Command{
		Use:   "record [flags] FILE",
		Short: "Record this machine's readings until stopped, to replay them elsewhere",
		Long: `Records every reading of this machine, and every window that programs announce, until ^C. At the
end it prints a table: of the windows or, if there were none, of the devices. FILE is always the
newest part of the recording. When it is full it becomes FILE.1, which becomes FILE.2, and so on. An
earlier recording in FILE also becomes FILE.1.`,
		Example: `  stallspan record machine.gz
  stallspan record --for 10m --report report.json machine.gz`,
		Args: needs(1, 1, "record needs one file: stallspan record machine.gz"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if cmd.Flags().Changed("for") && r.length <= 0 {
				return usagef("--for %v: give a positive duration such as 10m", r.length)
			}
			if r.rotation.MaxSize, err = parseSize("--max-size", r.size, minPartSize); err != nil {
				return err
			}
			if keep := r.rotation.Keep; keep != 0 && (keep < recording.MinKeep || keep > recording.MaxKeep) {
				return usagef("--keep %d: choose %d to %d", keep, recording.MinKeep, recording.MaxKeep)
			}
			if args[0] == "-" {
				return usagef("a recording is a series of files, not standard output: give a name such as machine.gz")
			}
			r.out, r.path = cmd.OutOrStdout(), args[0]
			return r.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&r.size, "max-size", "256MiB", "`size` at which a file is full and the next one begins")
	flags.IntVar(&r.rotation.Keep, "keep", recording.DefaultKeep, "`number` of files to keep")
	durationFlag(flags, &r.length, "for", "stop after this `duration` (default: until ^C)")
	flags.StringVar(&r.reportPath, "report", "", "write the report as JSON to this `file`")
	r.spans.add(cmd)
	return cmd
}

// record is one recording from before its start to after its end.
type record struct {
	recorder
	daemon
	reportPath string
	spans      spanFlags
	size       string
	length     time.Duration
	out        io.Writer // for the table

	report  *reportFile
	windows timeline
	devices *deviceSummary
	root    *export.Open // the recording's own span
	id      string       // of the window over the whole recording
	began   time.Time
}

func (r *record) run(ctx context.Context) (err error) {
	if r.report, err = openReport(r.reportPath); err != nil {
		return err
	}
	defer r.report.discard()
	if err = r.open(); err != nil {
		return err
	}
	defer func() { _ = r.close() }()

	lasting := context.WithoutCancel(ctx) // for the flush after ctx has ended
	// A terminal that is closed ends a recording as ^C does.
	ctx, stop := signal.NotifyContext(ctx, append(notIgnored(syscall.SIGHUP), syscall.SIGTERM)...)
	defer stop()
	r.devices = newDeviceSummary(endOnError{r.file, stop})
	r.monitor, err = monitor.New(monitor.Config{Journal: r.devices, Schedule: monitor.WithSchedule()})
	if err != nil {
		return err
	}
	r.monitor.Start()
	defer r.monitor.Stop()
	if err := r.begin(lasting); err != nil {
		return err
	}
	failed := r.serve(ctx)
	return r.finish(lasting, failed)
}

// begin begins the window over the whole recording.
func (r *record) begin(ctx context.Context) (err error) {
	r.telemetry, err = openTelemetry(ctx, r.monitor, r.spans.Spans)
	if err != nil {
		return err
	}
	at := r.monitor.Now()
	r.began = at.At.Wall
	r.root = r.telemetry.exporter.Begin(rootName(recordName), r.began, parentFromEnvironment())
	r.client = newClient(r.monitor, r.telemetry, &r.windows, "", "", r.root.SpanContext())
	r.id, err = r.monitor.Windows.Begin(wholeRecording(), at)
	return err
}

// finish ends the open windows, and shows the result.
func (r *record) finish(ctx context.Context, failed error) error {
	r.client.Close()
	end := r.monitor.Now()
	r.client.EndAll(end)
	whole, err := r.monitor.Windows.End(r.id, end)
	if err != nil {
		return err // not possible: only finish ends it
	}
	closed := r.close()
	saved := r.show(whole)
	say("%s: %s", r.summary(), explain.Duration(whole.Duration().Seconds()))
	r.root.End(r.telemetry.rootSpan(recordName, r.began, whole))
	r.telemetry.close(ctx)
	return sayAll(failed, closed, saved)
}

// serve accepts announced windows until the recording ends. If the socket cannot be opened, it records without them.
func (r *record) serve(ctx context.Context) error {
	var listeners []net.Listener
	socket, err := api.Listen(api.DefaultSocket())
	if err == nil {
		defer func() { _ = socket.Close() }()
		listeners = append(listeners, socket)
		say("recording to %s, with windows announced at %s; stop with ^C", r.path, socket.Addr())
	} else {
		say("recording to %s, without announced windows (%v); stop with ^C", r.path, err)
	}
	if r.length > 0 {
		timed, stop := context.WithTimeout(ctx, r.length)
		defer stop()
		ctx = timed
	}
	return r.daemon.serve(ctx, listeners, notifier{})
}

// show prints the table, and writes the report.
func (r *record) show(whole *window.Report) error {
	windows, dropped := r.windows.sorted()
	problems := r.monitor.Problems()
	if len(windows) == 0 {
		shown := r.devices.write(r.out, problems)
		return sayAll(shown, r.report.save(newDocument(whole, []*window.Report{whole}, problems)))
	}
	if dropped > 0 {
		problems = append(problems, fmt.Errorf("%d windows after the first %d are only in the recording", dropped,
			maxReports))
	}
	printTable(r.out, windows, problems)
	return r.report.save(newDocument(whole, windows, problems))
}

package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/export"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/window"
)

// recordName is what the window over all of a recording is called.
const recordName = "recording"

func wholeRecording() window.Window {
	return window.Window{Kind: window.Custom, Name: recordName, Run: recordName, Source: window.Announced, Owned: true}
}

func recordCommand() *cobra.Command {
	var r record
	cmd := &cobra.Command{
		Use:   "record [flags] FILE",
		Short: "Record what this machine's devices do until stopped, to be replayed elsewhere",
		Long: `Watches this machine until it is stopped with ^C, records every reading and every window that programs announce, and
prints a table at the end. FILE is always the newest part of the recording; one that is full becomes FILE.1, that one
FILE.2 and so on. A recording that FILE holds already becomes FILE.1 too.`,
		Example: `  stallspan record machine.gz
  stallspan record --for 10m --report report.json machine.gz`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("record needs one file: stallspan record machine.gz")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("for") && r.length <= 0 {
				return fmt.Errorf("--for %v: a recording lasts for some time, like 10m", r.length)
			}
			r.out, r.path = cmd.OutOrStdout(), args[0]
			return r.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&r.size, "max-size", "256MiB", "`size` at which a file is complete and the next one begins")
	flags.IntVar(&r.rotation.Keep, "keep", recording.DefaultKeep, "`number` of files that are kept")
	flags.DurationVar(&r.length, "for", 0, "end after this `duration` (default: when stopped)")
	flags.StringVar(&r.reportPath, "report", "", "write the report as JSON to this `file`")
	return cmd
}

// record is one recording from before its start to after its end.
type record struct {
	recorder
	daemon
	reportPath string
	size       string
	length     time.Duration
	out        io.Writer // takes the table

	report *reportFile
	root   *export.Open // the recording's own span
	id     string       // of the window that is the whole recording
	began  time.Time
}

func (r *record) run(ctx context.Context) (err error) {
	if r.rotation.MaxSize, err = parseSize("--max-size", r.size, leastPart); err != nil {
		return err
	}
	if r.report, err = openReport(r.reportPath); err != nil {
		return failure{exitFailed, err}
	}
	defer r.report.discard()
	if err = r.open(); err != nil {
		return failure{exitFailed, err}
	}
	defer func() { _ = r.close() }()

	lasting := context.WithoutCancel(ctx) // what is left is sent after ctx has ended
	// A terminal that is gone ends a recording as ^C does.
	ctx, stop := signal.NotifyContext(ctx, append(heeded(syscall.SIGHUP), syscall.SIGTERM)...)
	defer stop()
	r.monitor, err = monitor.New(monitor.Config{Journal: ending{r.file, stop}})
	if err != nil {
		return failure{exitFailed, err}
	}
	r.monitor.Start()
	defer r.monitor.Stop()
	if err := r.begin(lasting); err != nil {
		return failure{exitFailed, err}
	}
	failed := r.serve(ctx)
	return r.finish(lasting, failed)
}

// begin begins the window that is the whole recording.
func (r *record) begin(ctx context.Context) (err error) {
	r.telemetry, err = openTelemetry(ctx, r.monitor)
	if err != nil {
		return err
	}
	at := r.monitor.Now()
	r.began = at.At.Wall
	r.root = r.telemetry.exporter.Begin(rootName(recordName), r.began, parentFromEnvironment())
	r.session = newSession(r.monitor, r.telemetry, "", "", r.root.SpanContext())
	r.id, err = r.monitor.Begin(wholeRecording(), at)
	return err
}

// finish ends what is open, and shows what was seen.
func (r *record) finish(ctx context.Context, failed error) error {
	r.session.Close()
	end := r.monitor.Now()
	r.session.EndAll(end)
	whole, err := r.monitor.End(r.id, end)
	if err != nil {
		return failure{exitFailed, err} // nobody else ends it
	}
	closed := r.close()
	saved := r.show(whole)
	say("%s: %s", r.summary(), window.Short(whole.Duration().Seconds()))
	r.root.End(rootSpan(recordName, r.began, whole))
	r.telemetry.close(ctx)
	return sayAll(failed, closed, saved)
}

// serve lets programs announce windows until the recording is to end. Without the socket there is the recording's own
// window still.
func (r *record) serve(ctx context.Context) error {
	var listeners []net.Listener
	socket, err := api.Listen(api.DefaultSocket())
	if err == nil {
		defer func() { _ = socket.Close() }()
		listeners = append(listeners, socket)
		say("recording to %s, with the windows that are announced at %s; ^C ends it", r.path, socket.Addr())
	} else {
		say("recording to %s, without windows that programs announce (%v); ^C ends it", r.path, err)
	}
	if r.length > 0 {
		timed, stop := context.WithTimeout(ctx, r.length)
		defer stop()
		ctx = timed
	}
	return r.daemon.serve(ctx, listeners)
}

// show prints the table, and writes the report.
func (r *record) show(whole *window.Report) error {
	windows, problems := r.session.Timeline(), r.monitor.Problems()
	if len(windows) == 0 {
		windows = append(windows, whole)
	}
	if n := r.session.Left(); n > 0 {
		problems = append(problems, fmt.Errorf("%d windows after the first %d: the recording has them", n, mostReports))
	}
	printTable(r.out, windows, problems)
	return r.report.save(document{Run: whole, Windows: windows, Problems: texts(problems)})
}

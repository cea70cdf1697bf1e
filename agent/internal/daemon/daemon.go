// Package daemon is the command agent: it watches the machine until it is stopped.
package daemon

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/agent/internal/agentconfig"
	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/export"
	"github.com/stallspan/stallspan/agent/internal/scrape"
	"github.com/stallspan/stallspan/agent/internal/telemetry"
	"github.com/stallspan/stallspan/agent/internal/version"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/helper"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/progress/follow"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/state/drives"
	"github.com/stallspan/stallspan/internal/store/past"
	"github.com/stallspan/stallspan/internal/windows"
)

// Name is the first argument of the agent.
const Name = "agent"

// Command is stallspan agent.
func Command() *cobra.Command {
	var path, listen string
	cmd := &cobra.Command{
		Use:   Name + " [--config FILE] [--listen PORT]",
		Short: "Watch this machine until stopped: metrics, and a span for each announced window",
		Long: `Watches this machine's GPUs, disks, pressure and CPU until it is stopped. Every ten seconds it sends
metrics to the OTLP backend in OTEL_EXPORTER_OTLP_ENDPOINT. Programs announce model loads, epochs
and other windows with its API; each becomes a span that shows where its time went. Without a
backend it serves the API only.

With --listen it also serves the API on a port, and a page for a browser: the machine's curves and
windows, live. stallspan page shows your own windows there without a port of the agent.`,
		Example: `  OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317 stallspan agent
  stallspan agent --config /etc/stallspan/agent.yaml
  stallspan agent --listen 127.0.0.1:4319`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := agentconfig.Read(path)
			if err != nil {
				return cli.Usage(err)
			}
			if listen != "" {
				if _, err := api.Endpoint(listen); err != nil {
					return cli.Usagef("--listen %q is not a port: give localhost:4319, or ADDRESS:4319 for other machines", listen)
				}
				c.Endpoint = listen
			}
			return (&Daemon{config: c}).run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "read the settings from this `file` (stallspan docs agent)")
	cmd.Flags().StringVar(&listen, "listen", "", "serve the API and a page on this `address:port`, as the setting endpoint")
	cmd.AddCommand(releaseCommand())
	return cmd
}

// Daemon is the agent from its start to its end.
type Daemon struct {
	config *agentconfig.Config
	token  []byte // that clients of the port need; nil for none, and where there is no port

	helpers   helper.Helpers
	Monitor   *monitor.Monitor
	Telemetry *telemetry.Telemetry
	Client    *windows.Client
	events    *eventDispatcher
	past      *past.Recorder // nil for none
	scrape    *scrape.Server // nil for none
}

// gcPercent is GOGC: the growth of the heap until the next collection. Nearly all of the heap is the history's rings.
// They hold no pointers, so a collection is cheap, and memory is worth more here than time. 20 took 2 MB less, and 4 %
// more CPU time with 10,000 windows a minute.
const gcPercent = 40

// run watches until ctx ends. The socket comes first: a second agent has nothing to do.
func (d *Daemon) run(ctx context.Context) (err error) {
	debug.SetGCPercent(gcPercent)
	runtime.GOMAXPROCS(1) // never more than one core, and no second thread that spins for work
	late := time.AfterFunc(endTime, giveUp)
	late.Stop()
	defer late.Stop()
	defer context.AfterFunc(ctx, func() { late.Reset(endTime) })()
	d.token = d.config.APIToken
	listeners, err := d.listen()
	defer func() {
		for _, l := range listeners {
			_ = l.Close() // again, where serve did not close it
		}
	}()
	if err != nil {
		return err
	}
	if d.config.Scrape.Endpoint != "" {
		if d.scrape, err = d.config.Scrape.Listen(); err != nil {
			return err
		}
		defer d.scrape.Close() // again, where serve did not close it
	}
	if err := d.watch(); err != nil {
		return err
	}
	defer d.stop()

	if err := d.Monitor.CheckSources("sampling.root_path"); err != nil {
		return err
	}

	lasting := context.WithoutCancel(ctx) // for the flush after ctx has ended
	d.Telemetry, err = telemetry.OpenWith(lasting, d.Monitor, export.Options{Logs: true}, d.config.Metrics.Disabled()...)
	if err != nil {
		return err
	}
	d.events, err = watchEvents(d.Monitor, d.Telemetry, d.config.Actions)
	if err != nil {
		d.Telemetry.Close(lasting)
		return err
	}
	d.events.past = d.past
	d.Client = d.Monitor.Windows.NewClient(windows.Options{Spans: d.events.begin, Show: d.config.Spans,
		Durations: d.Telemetry.Metrics.Durations})
	d.Client.TakeDetected()
	d.greet(listeners)
	say(systemd.SdNotifyReady)
	if problem := d.config.NoBaseline; problem != nil {
		cli.Warn(cli.NoBaselines(problem))
	}
	err = d.Serve(ctx, listeners, watchdog())
	say(systemd.SdNotifyStopping)
	d.end(lasting)
	return err
}

// The end has steps, each with a limit, so that what hangs costs only what depends on it. Together they take less than
// endTime in all cases but some in which several parts hang. Units and charts have room for it (TimeoutStopSec).
const (
	endTime   = 20 * time.Second // then the program exits
	flushTime = 8 * time.Second  // for the backend
)

// giveUp is called if the steps of the end take too long.
func giveUp() {
	cli.Say("warning: a part of the agent hangs and does not stop: what it had to write may be lost")
	os.Exit(cli.ExitFailed)
}

// end ends what is open, and writes and sends all there is: the history, spans, events and logs at the same time.
func (d *Daemon) end(ctx context.Context) {
	_, printed := d.Monitor.NewProblems(0)
	d.Monitor.End(d.Client)
	var flushes sync.WaitGroup
	flushes.Go(d.past.Stop)
	flushes.Go(func() { d.events.close(ctx) })
	ctx, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	d.Telemetry.Close(ctx)
	flushes.Wait()
	problems, _ := d.Monitor.NewProblems(printed)
	for _, problem := range problems {
		cli.Warn(problem)
	}
}

// watch starts the monitor.
func (d *Daemon) watch() (err error) {
	config := d.config.Monitor()
	if d.helpers, err = helper.Inherit(); err != nil {
		return err
	}
	config.Use(d.helpers)
	d.past = d.config.Past()
	config.Reports = d.past.Window
	if d.Monitor, err = monitor.New(config); err != nil {
		return err
	}
	d.Monitor.Start()
	d.past.Start(d.Monitor.History(), past.Times{Now: d.Monitor.JobTimes, Boot: drives.Boot(config.Root)},
		func(err error) { d.Monitor.Note("store", err) })
	return nil
}

// stop stops what watch started.
func (d *Daemon) stop() {
	d.past.Stop()
	d.Monitor.Stop()
	sample.Within(helpersTime, d.helpers.Close)
}

const helpersTime = time.Second // they may hang in the kernel, and end with this process

func (d *Daemon) listen() ([]net.Listener, error) {
	path := d.config.Socket
	if path == "" || os.Getenv(api.SocketVariable) != "" {
		path = api.DefaultSocket()
	}
	socket, err := api.Listen(path)
	if err != nil {
		return nil, err
	}
	listeners := []net.Listener{socket}
	if d.config.Endpoint == "" {
		return listeners, nil
	}
	port, err := api.ListenTCP(d.config.Endpoint, d.token)
	if err != nil {
		return listeners, err
	}
	return append(listeners, port), nil
}

// greet prints what is watched, where windows are announced, and what cannot be read.
func (d *Daemon) greet(listeners []net.Listener) {
	cli.Say("agent %s watches %v", version.Number(), d.Monitor.Inventory())
	for _, problem := range d.Monitor.Problems() {
		cli.Warn(problem)
	}
	for _, l := range listeners {
		cli.Say("windows are announced at %s", l.Addr())
		if l.Addr().Network() == "tcp" {
			cli.Say("a browser shows this machine at http://%s/", l.Addr())
		}
	}
	if d.scrape != nil {
		cli.Say("metrics for Prometheus are at %s/metrics", d.scrape.URL())
	} else if !d.Telemetry.Exporter.Exports() {
		cli.Say("nothing is sent: set OTEL_EXPORTER_OTLP_ENDPOINT to your backend, such as http://localhost:4317")
	}
}

// Serve answers on all listeners until ctx ends, or until one of them fails. With a limit, it reports to systemd more
// often than that that the readings go on.
func (d *Daemon) Serve(ctx context.Context, listeners []net.Listener, limit time.Duration) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	failed := make([]error, len(listeners)+1)
	metrics, err := d.scraped(ctx)
	if err != nil {
		return err
	}
	logs := follow.NewLogs(d.Monitor, d.Client)
	defer logs.Close()
	for i, l := range listeners {
		all.Go(func() {
			defer stop()
			server := api.NewServer(d.Monitor, logs, version.Number()).With(d.events.api()).
				Requiring(d.token).Scraping(metrics)
			if d.past != nil {
				server.Keeping(d.past)
			}
			failed[i] = server.Serve(ctx, l)
		})
	}
	if d.scrape != nil {
		all.Go(func() {
			defer stop()
			failed[len(listeners)] = d.scrape.Serve(ctx, metrics)
		})
	}
	all.Go(func() { d.reportTrouble(ctx) })
	all.Go(func() { d.onSignal(ctx, unix.SIGHUP, d.Monitor.Retry) })
	all.Go(func() { d.onSignal(ctx, unix.SIGUSR2, d.releaseGPUs) })
	all.Go(func() { reportAlive(ctx, limit, d.Monitor.Rounds) })
	all.Wait()
	return cmp.Or(failed...)
}

const (
	troubleInterval = 5 * time.Second  // between two checks for new trouble
	repeatInterval  = 10 * time.Minute // between two reports of failing actions
)

// releaseGPUs lets go of the GPUs' driver.
func (d *Daemon) releaseGPUs() {
	if err := d.Monitor.ReleaseGPUs(api.ReleasedFor); err != nil {
		cli.Warn(err)
		return
	}
	cli.Say("no file of the GPUs' driver is open for %v", api.ReleasedFor)
}

// onSignal calls act at each signal, unless that is ignored, as SIGHUP is by nohup.
func (d *Daemon) onSignal(ctx context.Context, s os.Signal, act func()) {
	if signal.Ignored(s) {
		return
	}
	received := make(chan os.Signal, 1)
	signal.Notify(received, s)
	defer signal.Stop(received)
	for {
		select {
		case <-ctx.Done():
			return
		case <-received:
			act()
		}
	}
}

// reportRefusals prints what the kernel refuses, by cause, if that is not as before.
func reportRefusals(now, before []string) []string {
	switch {
	case slices.Equal(now, before):
	case len(now) == 0:
		cli.Say("the kernel refuses nothing any more")
	default:
		cli.Warn(errors.New("the kernel refuses a part of the evidence; left out: " + strings.Join(now, ", ")))
	}
	return now
}

// reportTrouble prints new problems, failing actions, and the begin and end of a failing export.
func (d *Daemon) reportTrouble(ctx context.Context) {
	ticker := time.NewTicker(troubleInterval)
	defer ticker.Stop()
	_, printed := d.Monitor.NewProblems(0)
	down := false
	refused := reportRefusals(d.Monitor.Refusals().Causes(), nil)
	var trouble []string // the lines printed last
	var troubleAt time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		problems, next := d.Monitor.NewProblems(printed)
		for _, problem := range problems {
			cli.Warn(problem)
		}
		printed = next
		refused = reportRefusals(d.Monitor.Refusals().Causes(), refused)
		d.events.look()
		lines := d.events.trouble()
		due := troubleAt.IsZero() || time.Since(troubleAt) > repeatInterval
		if len(lines) > 0 && due && !slices.Equal(lines, trouble) {
			for _, line := range lines {
				cli.Say("warning: %s", line)
			}
			troubleAt, trouble = time.Now(), lines
		}
		if failing := d.Telemetry.Exporter.Failing(); failing != nil && !down {
			cli.Say("warning: export failing, windows and counters are kept for the backend: %v", failing)
			down = true
		} else if failing == nil && down {
			cli.Say("export works again")
			down = false
		}
	}
}

// scraped makes what Prometheus can get: nothing from record, which has no config.
func (d *Daemon) scraped(ctx context.Context) (api.Scraped, error) {
	if d.config == nil {
		return api.Scraped{}, nil
	}
	of, err := export.Resource(ctx, d.Monitor.Root())
	if err != nil {
		return api.Scraped{}, err
	}
	o := scrape.Options{Version: version.Number(), Disabled: d.config.Metrics.Disabled(), Resource: of,
		Collect: d.Monitor.Collect, Own: d.Telemetry.Metrics.Own}
	machine, err := scrape.New(o)
	o.Jobs = true
	o.Durations = d.Telemetry.Metrics.Durations
	all, failed := scrape.New(o)
	return api.Scraped{All: all, Machine: machine}, errors.Join(err, failed)
}

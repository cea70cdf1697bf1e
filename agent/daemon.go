package agent

import (
	"cmp"
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/export"
	"github.com/stallspan/stallspan/agent/internal/scrape"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/helper"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/state/drives"
	"github.com/stallspan/stallspan/internal/store/past"
	"github.com/stallspan/stallspan/internal/windows"
)

// agentName is the first argument of the agent.
const agentName = "agent"

func agentCommand() *cobra.Command {
	var path, listen string
	cmd := &cobra.Command{
		Use:   agentName + " [--config FILE] [--listen PORT]",
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
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := readConfig(path)
			if err != nil {
				return usage(err)
			}
			if listen != "" {
				if _, err := api.Endpoint(listen); err != nil {
					return usagef("--listen %q is not a port: give localhost:4319, or ADDRESS:4319 for other machines", listen)
				}
				c.Endpoint = listen
			}
			return (&daemon{config: c}).run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "read the settings from this `file` (stallspan docs agent)")
	cmd.Flags().StringVar(&listen, "listen", "", "serve the API and a page on this `address:port`, as the setting endpoint")
	return cmd
}

// daemon is the agent from its start to its end.
type daemon struct {
	config *agentConfig
	token  []byte // that clients of the port need; nil for none, and where there is no port

	helpers   helper.Helpers
	monitor   *monitor.Monitor
	telemetry *telemetry
	client    *windows.Client
	events    *eventDispatcher
	past      *past.Recorder // nil for none
	scrape    *scrape.Server // nil for none
}

// gcPercent is GOGC: the growth of the heap until the next collection. Nearly all of the heap is the history's rings.
// They hold no pointers, so a collection is cheap, and memory is worth more here than time. 20 took 2 MB less, and 4 %
// more CPU time with 10,000 windows a minute.
const gcPercent = 40

// run watches until ctx ends. The socket comes first: a second agent has nothing to do.
func (d *daemon) run(ctx context.Context) (err error) {
	debug.SetGCPercent(gcPercent)
	runtime.GOMAXPROCS(1) // never more than one core, and no second thread that spins for work
	d.token = d.config.token
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

	if err := d.monitor.CheckSources("sampling.root_path"); err != nil {
		return err
	}

	lasting := context.WithoutCancel(ctx) // for the flush after ctx has ended
	d.telemetry, err = openTelemetryWith(lasting, d.monitor, export.Options{Logs: true}, d.config.Metrics.Disabled()...)
	if err != nil {
		return err
	}
	d.events, err = watchEvents(d.monitor, d.telemetry, d.config.Actions)
	if err != nil {
		d.telemetry.close(lasting)
		return err
	}
	d.events.past = d.past
	d.client = d.monitor.Windows.NewClient(windows.Options{Spans: d.events.begin, Show: d.config.Spans,
		Durations: d.telemetry.metrics.Durations})
	d.client.TakeDetected()
	d.greet(listeners)
	service := newNotifier()
	service.say("READY=1")
	if problem := d.config.noBaseline; problem != nil {
		warn(noBaselines(problem))
	}
	err = d.serve(ctx, listeners, service)
	service.say("STOPPING=1")
	d.monitor.End(d.client)
	d.past.Stop()
	var ended sync.WaitGroup // the flush does not wait for an action that hangs
	ended.Go(func() { d.events.close(lasting) })
	d.telemetry.close(lasting)
	ended.Wait()
	return err
}

// watch starts the monitor. The helper that reads, reads the machine's own /proc and no other one.
func (d *daemon) watch() (err error) {
	config := d.config.monitor()
	if d.helpers, err = helper.Inherit(); err != nil {
		return err
	}
	if d.helpers.Reader != nil && filepath.Join("/", config.Root) == "/" {
		config.Reader = d.helpers.Reader
	}
	if d.helpers.Tracer != nil {
		config.Tracing, config.Latencies = d.helpers.Tracer.Open, d.helpers.Tracer.OpenLatency
		config.Opens = d.helpers.Tracer.OpenOpens
	}
	d.past = d.config.past()
	config.Reports = d.past.Window
	if d.monitor, err = monitor.New(config); err != nil {
		return err
	}
	d.monitor.Start()
	d.past.Start(d.monitor.History(), past.Times{Now: d.monitor.JobTimes, Boot: drives.Boot(config.Root)},
		func(err error) { d.monitor.Note("store", err) })
	return nil
}

// stop stops what watch started.
func (d *daemon) stop() {
	d.past.Stop()
	d.monitor.Stop()
	d.helpers.Close()
}

func (d *daemon) listen() ([]net.Listener, error) {
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
func (d *daemon) greet(listeners []net.Listener) {
	say("agent %s watches %v", version(), d.monitor.Inventory())
	for _, problem := range d.monitor.Problems() {
		warn(problem)
	}
	for _, l := range listeners {
		say("windows are announced at %s", l.Addr())
		if l.Addr().Network() == "tcp" {
			say("a browser shows this machine at http://%s/", l.Addr())
		}
	}
	if d.scrape != nil {
		say("metrics for Prometheus are at %s/metrics", d.scrape.URL())
	} else if !d.telemetry.exporter.Exports() {
		say("nothing is sent: set OTEL_EXPORTER_OTLP_ENDPOINT to your backend, such as http://localhost:4317")
	}
}

// serve answers on all listeners until ctx ends, or until one of them fails.
func (d *daemon) serve(ctx context.Context, listeners []net.Listener, service notifier) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	failed := make([]error, len(listeners)+1)
	metrics, err := d.scraped(ctx)
	if err != nil {
		return err
	}
	lender := d.monitor.Lender()
	for i, l := range listeners {
		all.Go(func() {
			defer stop()
			server := api.NewServer(d.monitor, d.client, version()).With(d.events.api()).Lending(lender).
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
	all.Go(func() { service.watch(ctx, d.monitor.Rounds) })
	all.Wait()
	return cmp.Or(failed...)
}

const (
	troubleInterval = 5 * time.Second  // between two checks for new trouble
	repeatInterval  = 10 * time.Minute // between two reports of failing actions
)

// reportTrouble prints new problems, failing actions, and the begin and end of a failing export.
func (d *daemon) reportTrouble(ctx context.Context) {
	ticker := time.NewTicker(troubleInterval)
	defer ticker.Stop()
	_, printed := d.monitor.NewProblems(0)
	down := false
	var trouble []string // the lines printed last
	var troubleAt time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		problems, next := d.monitor.NewProblems(printed)
		for _, problem := range problems {
			warn(problem)
		}
		printed = next
		d.events.look()
		lines := d.events.trouble()
		due := troubleAt.IsZero() || time.Since(troubleAt) > repeatInterval
		if len(lines) > 0 && due && !slices.Equal(lines, trouble) {
			for _, line := range lines {
				say("warning: %s", line)
			}
			troubleAt, trouble = time.Now(), lines
		}
		if failing := d.telemetry.exporter.Failing(); failing != nil && !down {
			say("warning: export failing, windows and counters are kept for the backend: %v", failing)
			down = true
		} else if failing == nil && down {
			say("export works again")
			down = false
		}
	}
}

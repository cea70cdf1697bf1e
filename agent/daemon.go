package agent

import (
	"cmp"
	"context"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/export"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/session"
)

func agentCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "agent [--config FILE]",
		Short: "Watch this machine until stopped: metrics, and spans for the windows that programs announce",
		Long: `Watches this machine's GPUs, disks, pressure and CPU until it is stopped, sends metrics every ten seconds to the OTLP
backend that OTEL_EXPORTER_OTLP_ENDPOINT names, and serves the API with which programs announce model loads, epochs and
other windows; each becomes a span that says what its time went to. Without a backend it serves the API alone.`,
		Example: `  OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317 stallspan agent
  stallspan agent --config /etc/stallspan.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := readConfig(path)
			if err != nil {
				return failure{exitUsage, err}
			}
			if err := (&daemon{config: c}).run(cmd.Context()); err != nil {
				return failure{exitFailed, err}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "read the settings from this `file` (docs/agent.md)")
	return cmd
}

// daemon is the agent from its start to its end.
type daemon struct {
	config *config

	monitor   *monitor.Monitor
	telemetry *telemetry
	session   *session.Session
	events    *happenings
}

// garbage is by how much the heap may grow before it is collected, in per cent of what is in use. Nearly all of that are
// the history's rings, which hold no pointers and cost a collection nothing: memory is worth more here than time.
const garbage = 20

// run watches until ctx ends. The socket comes first: a second agent has nothing to do here.
func (d *daemon) run(ctx context.Context) (err error) {
	debug.SetGCPercent(garbage)
	runtime.GOMAXPROCS(1) // never more than one core; and no second thread is woken to look for work that there is not
	listeners, err := d.listen()
	defer func() {
		for _, l := range listeners {
			_ = l.Close() // once more, where nobody served it
		}
	}()
	if err != nil {
		return err
	}
	settings, problem := d.config.monitor()
	d.monitor, err = monitor.New(settings)
	if err != nil {
		return err
	}
	d.monitor.Start()
	defer d.monitor.Stop()

	if err := d.monitor.Blind("sampling.root_path"); err != nil {
		return err
	}

	// What is left is sent after ctx has ended.
	lasting := context.WithoutCancel(ctx)
	d.telemetry, err = openTelemetryWith(lasting, d.monitor, export.Options{Logs: true}, d.config.disabled()...)
	if err != nil {
		return err
	}
	d.events, err = watchEvents(d.monitor, d.telemetry, d.config.Actions)
	if err != nil {
		d.telemetry.close(lasting)
		return err
	}
	d.session = session.New(d.monitor, session.Options{Spans: d.events.begin, Durations: &d.telemetry.metrics.Durations})
	d.greet(listeners)
	if problem != nil {
		say("not seen: whether windows took longer than usual: %v", problem)
	}
	err = d.serve(ctx, listeners)
	d.session.Close()
	d.session.EndAll(d.monitor.Now())
	var ended sync.WaitGroup // what is to be sent does not wait for an action that hangs
	ended.Go(func() { d.events.close(lasting) })
	d.telemetry.close(lasting)
	ended.Wait()
	return err
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
	port, err := api.ListenTCP(d.config.Endpoint)
	if err != nil {
		return listeners, err
	}
	return append(listeners, port), nil
}

// greet says in a few lines what is watched, where windows are announced and what leaves.
func (d *daemon) greet(listeners []net.Listener) {
	say("agent %s watches %v", version(), d.monitor.Sight())
	for _, problem := range d.monitor.Problems() {
		say("not seen: %v", problem)
	}
	for _, l := range listeners {
		say("windows are announced at %s", l.Addr())
		if tcp, ok := l.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
			say("%s is open to other machines, and asks nobody who they are", l.Addr())
		}
	}
	if !d.telemetry.exporter.Exports() {
		say("nothing is sent: set OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317, or where your backend is")
	}
}

// serve answers on all listeners until ctx ends, or until one of them fails.
func (d *daemon) serve(ctx context.Context, listeners []net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	failed := make([]error, len(listeners))
	for i, l := range listeners {
		all.Go(func() {
			defer stop()
			failed[i] = api.NewServer(d.monitor, d.session, version()).With(d.events.api()).Serve(ctx, l)
		})
	}
	all.Go(func() { d.tellTrouble(ctx) })
	all.Wait()
	return cmp.Or(failed...)
}

// lookEvery is how often the agent looks whether something new has to be told.
const lookEvery = 5 * time.Second

// troubleEvery is the time between two words about actions that fail.
const troubleEvery = 10 * time.Minute

// tellTrouble says when the backend stops taking what is sent, when it takes it again, and what can no longer be read.
func (d *daemon) tellTrouble(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	told, down := len(d.monitor.Problems()), false
	var trouble []string
	var sayTrouble time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		problems := d.monitor.Problems()
		for _, problem := range problems[told:] {
			say("not seen: %v", problem)
		}
		told = len(problems)
		d.events.look()
		if lines := d.events.trouble(); len(lines) > 0 && (sayTrouble.IsZero() || time.Since(sayTrouble) > troubleEvery) && !slices.Equal(lines, trouble) {
			for _, line := range lines {
				say("%s", line)
			}
			sayTrouble, trouble = time.Now(), lines
		}
		if failing := d.telemetry.exporter.Failing(); failing != nil && !down {
			say("the OTLP backend takes nothing, windows and counters are kept for it: %v", failing)
			down = true
		} else if failing == nil && down {
			say("the OTLP backend takes everything again")
			down = false
		}
	}
}

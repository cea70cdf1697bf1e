package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
)

type options struct {
	agents    int
	intervals int
	interval  time.Duration
	away      [2]int // the store is away from one interval to another; equal: never
	kill      int    // interval in which a gateway is killed; 0: never
	restart   int    // interval in which the other one is restarted
	folder    string
	recording string
	gateway   string
	store     string
	config    string
}

func main() {
	var o options
	flag.IntVar(&o.agents, "agents", 1000, "how many agents")
	flag.IntVar(&o.intervals, "intervals", 12, "how many times each sends")
	flag.DurationVar(&o.interval, "interval", 10*time.Second, "simulated time between two times")
	flag.IntVar(&o.away[0], "away", 0, "interval at which the store goes away")
	flag.IntVar(&o.away[1], "back", 0, "interval at which it comes back")
	flag.IntVar(&o.kill, "kill", 0, "interval in which a gateway is killed (SIGKILL) and started again")
	flag.IntVar(&o.restart, "restart", 0, "interval in which the other gateway restarts (SIGTERM)")
	flag.StringVar(&o.folder, "folder", "build/fleet", "for data and logs; its data are removed first")
	flag.StringVar(&o.recording, "recording", "testdata/recordings/gpu.jsonl.gz", "what agents send variations of")
	flag.StringVar(&o.gateway, "gateway", "build/otelcol-stallspan", "the Collector")
	flag.StringVar(&o.store, "store", "build/backends/victoria-metrics", "VictoriaMetrics")
	flag.StringVar(&o.config, "config", "examples/collector/gateway.yaml", "of the gateways")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has run
	}
}

// fleet is a run.
type fleet struct {
	options
	nodes       []*node
	gateways    [2]*process
	store       *process
	storeURL    string
	ways        []*way
	wire        wire
	sink        *sink
	began       time.Time // of the simulated time
	sinkAddress string

	mu     sync.Mutex
	sent   int // points that a gateway has accepted, each once
	lost   int // points that no gateway took
	unsure int // of lost ones: points that a gateway may have taken all the same
	retry  int // requests that were sent again
	active int // points of the newest interval: one of each series
	made   int // series of jobs that began after the first interval
	jobs   int // these jobs
	slow   []trace.SpanID
	roots  int
	gone   int // windows that no gateway took
}

func (o options) run(ctx context.Context) error {
	t, err := play(o.recording)
	if err != nil {
		return err
	}
	f := &fleet{options: o, sink: &sink{roots: map[trace.SpanID]bool{}}}
	length := time.Duration(o.intervals) * o.interval
	f.began = time.Now().Truncate(time.Second).Add(-length)
	const before = 3 * time.Hour // until as many jobs end as begin
	for i := range o.agents {
		n := newNode(t, i, f.began.Add(-before))
		for at := n.began; at.Before(f.began); at = at.Add(time.Minute) {
			n.live(at, time.Minute)
		}
		n.ended = nil
		f.nodes = append(f.nodes, n)
	}
	for _, data := range []string{"store", "gateway-0", "gateway-1"} {
		if err := errors.Join(os.RemoveAll(filepath.Join(o.folder, data)),
			os.MkdirAll(filepath.Join(o.folder, data), 0o700)); err != nil {
			return err
		}
	}
	if err := f.prepare(ctx); err != nil {
		return err
	}
	defer func() {
		for _, p := range append(f.gateways[:], f.store) {
			p.stop(syscall.SIGKILL)
		}
	}()
	server := grpc.NewServer()
	defer server.Stop()
	return f.measure(ctx, server)
}

// prepare describes the programs, and finds their ports.
func (f *fleet) prepare(ctx context.Context) error {
	var ports [11]string
	for i := range ports {
		port, err := freePort()
		if err != nil {
			return err
		}
		ports[i] = port
	}
	f.storeURL = "http://" + ports[0]
	f.store = &process{name: "store", path: f.options.store, metrics: f.storeURL + "/metrics", args: []string{
		"-httpListenAddr=" + ports[0], "-storageDataPath=" + filepath.Join(f.folder, "store"), "-search.latencyOffset=0s",
		"-opentelemetry.usePrometheusNaming", "-dedup.minScrapeInterval=1ms", "-search.maxUniqueTimeseries=20000000",
		"-search.maxSamplesPerQuery=20000000000", "-search.maxQueryDuration=10m", "-memory.allowedBytes=8GB"}}
	for i := range f.gateways {
		p := ports[1+4*i:]
		f.gateways[i] = &process{name: fmt.Sprint("gateway-", i), path: f.gateway, args: []string{"--config", f.config},
			metrics: "http://" + p[3] + "/metrics", env: []string{"OTLP_GRPC=" + p[0], "PEER_GRPC=" + p[1], "HEALTH=" + p[2],
				"OWN_METRICS_PORT=" + p[3][strings.LastIndex(p[3], ":")+1:], "TEMPO=" + ports[9], "LOKI=http://" + ports[10],
				"METRICS=" + f.storeURL + "/opentelemetry/v1/metrics",
				"STATE=" + filepath.Join(f.folder, fmt.Sprint("gateway-", i)),
				"PEERS=[" + ports[2] + "," + ports[6] + "]"}}
		to, err := f.wire.open(p[0])
		if err != nil {
			return err
		}
		f.ways = append(f.ways, to)
	}
	f.sinkAddress = ports[9]
	for _, p := range append([]*process{f.store}, f.gateways[:]...) {
		if err := p.start(ctx, f.folder); err != nil {
			return err
		}
	}
	return nil
}

// measure sends everything, and compares it with what arrived.
func (f *fleet) measure(ctx context.Context, server *grpc.Server) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", f.sinkAddress)
	if err != nil {
		return err
	}
	ptraceotlp.RegisterGRPCServer(server, f.sink)
	go func() { _ = server.Serve(listener) }() // until run stops it
	start := time.Now()
	var queued int64
	for i := 1; i <= f.intervals; i++ {
		if err := f.events(ctx, i); err != nil {
			return err
		}
		if err := f.tick(ctx, i); err != nil {
			return err
		}
		if queue := size(filepath.Join(f.folder, "gateway-0")) + size(filepath.Join(f.folder, "gateway-1")); queue > queued {
			queued = queue
		}
		for _, p := range append(f.gateways[:], f.store) {
			p.measure()
		}
		if i == 1 || i%30 == 0 || i == f.intervals {
			fmt.Printf("# interval %d of %d, %.0f s, %d points, queues on disk %.0f MB\n", i, f.intervals,
				time.Since(start).Seconds(), f.sent, float64(queued)/1e6)
		}
	}
	sending := time.Since(start)
	if err := f.drain(ctx); err != nil {
		return err
	}
	return f.report(ctx, sending, time.Since(start), queued)
}

// events lets the store go and come back.
func (f *fleet) events(ctx context.Context, i int) error {
	if f.away[0] == f.away[1] {
		return nil
	}
	switch i {
	case f.away[0]:
		f.store.stop(syscall.SIGTERM)
	case f.away[1]:
		return f.store.start(ctx, f.folder)
	}
	return nil
}

// tick sends what all agents send in one interval. At a third of it, a gateway may go.
func (f *fleet) tick(ctx context.Context, i int) error {
	at := f.began.Add(time.Duration(i) * f.interval)
	f.active = 0
	work := make(chan int)
	var workers, others sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for n := range work {
				f.send(ctx, n, at)
			}
		})
	}
	failed := make(chan error, 2)
	for n := range f.nodes {
		work <- n
		if n != len(f.nodes)/3 {
			continue
		}
		for event, g := range map[int]*process{f.kill: f.gateways[1], f.restart: f.gateways[0]} {
			if event != i {
				continue
			}
			signal := syscall.SIGKILL
			if event == f.restart {
				signal = syscall.SIGTERM
			}
			others.Go(func() {
				g.stop(signal)
				time.Sleep(2 * time.Second)
				failed <- g.start(ctx, f.folder)
			})
		}
	}
	close(work)
	workers.Wait()
	others.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// send sends what one agent sends in one interval.
func (f *fleet) send(ctx context.Context, number int, at time.Time) {
	n := f.nodes[number]
	n.live(at, f.interval)
	for _, r := range n.collect(at) {
		request := pmetricotlp.NewExportRequestFromMetrics(r.metrics)
		ok, twice := deliver(ctx, f.ways, number, func(ctx context.Context, to *way) error {
			_, err := to.metrics.Export(ctx, request)
			return err
		})
		f.mu.Lock()
		switch {
		case ok:
			f.sent += r.points
		default:
			f.lost += r.points
			f.unsure += r.points
		}
		if twice {
			f.retry++
		}
		f.active += r.points
		if at.After(f.began.Add(f.interval)) {
			f.made += r.series
			if r.series > 0 {
				f.jobs++
			}
		}
		f.mu.Unlock()
	}
	spans, slow := n.spans(at)
	if spans.SpanCount() == 0 {
		return
	}
	roots := 0
	for _, s := range spans.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
		if s.ParentSpanID().IsEmpty() {
			roots++
		}
	}
	request := ptraceotlp.NewExportRequestFromTraces(spans)
	ok, _ := deliver(ctx, f.ways, number, func(ctx context.Context, to *way) error {
		_, err := to.traces.Export(ctx, request)
		return err
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if !ok {
		f.gone += roots
		return
	}
	f.roots += roots
	f.slow = append(f.slow, slow...)
}

// drain waits until the gateways have sent everything.
func (f *fleet) drain(ctx context.Context) error {
	for end := time.Now().Add(20 * time.Minute); ctx.Err() == nil; time.Sleep(time.Second) {
		left := 0.0
		for _, g := range f.gateways {
			g.measure()
			left += g.sum(ctx, "otelcol_exporter_queue_size", "") + g.sum(ctx, "otelcol_exporter_in_flight_requests", "")
		}
		f.store.measure()
		if left == 0 {
			time.Sleep(3 * time.Second) // what is between a queue and a batch
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the gateways still have %.0f after 20 minutes: see the logs in %s", left, f.folder)
		}
	}
	return ctx.Err()
}

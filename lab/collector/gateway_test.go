package collector

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/test/fixture"
)

// fleet is two gateways that know each other, and the Collector and the database behind them.
type fleet struct {
	gateways [2]*collector
	backend  *collector
	database string
}

// gateways starts them. They keep no share of traces without a slow window, and decide after five seconds. In addition
// each writes the whole traces that it keeps to its own output.
func gateways(t *testing.T) (f fleet) {
	t.Helper()
	const own = `
processors: {tail_sampling: {decision_wait: 5s}}
exporters: {file/whole: {path: "${env:OUTPUT}/spans.json", create_directory: true}}
service: {pipelines: {traces/whole: {exporters: [otlp_grpc/tempo, file/whole]}}}
`
	f.backend = prepare(t, "--config", "../../examples/collector/file.yaml").start()
	f.database = victoria(t)
	peers := [2]string{fixture.FreePort(t), fixture.FreePort(t)}
	for i := range f.gateways {
		c := prepare(t, "--config", "../../examples/collector/gateway.yaml", "--config", "yaml:"+own)
		c.set("PEER_GRPC", peers[i])
		c.set("PEERS", fmt.Sprintf("[%s, %s]", peers[0], peers[1]))
		c.set("TEMPO", f.backend.otlp)
		c.set("METRICS", "http://"+f.database+"/opentelemetry/v1/metrics")
		c.set("LOKI", "http://"+fixture.FreePort(t)) // not there
		c.set("HEALTH", fixture.FreePort(t))
		c.set("STATE", t.TempDir())
		c.set("SAMPLING_PERCENTAGE", "0")
		c.set("SPAN_METRICS_INTERVAL", "1s")
		f.gateways[i] = c.start()
	}
	return f
}

// All slow windows arrive, each with its trace, and one gateway has all spans of a trace. Each trace has spans of two
// nodes, and these send to different gateways. The span of a window comes last.
func TestGateways(t *testing.T) {
	f := gateways(t)
	nodes := [2]trace.Tracer{}
	for i, g := range f.gateways {
		nodes[i] = tracer(t, g.otlp, attribute.String("host.name", fmt.Sprint("node-", i)))
	}
	const traces, children = 24, 2
	slow := map[string]bool{} // by trace ID
	ended := map[string]func(){}
	for i := range traces {
		ctx, window := nodes[i%2].Start(context.Background(), "epoch")
		id := window.SpanContext().TraceID().String()
		slow[id] = i%3 == 0
		for child := range children {
			_, span := nodes[child].Start(ctx, "step")
			span.End()
		}
		ended[id] = func() {
			window.SetAttributes(attribute.Bool("stallspan.slow", slow[id]))
			window.End()
		}
	}
	// Half of the windows end when the first decision about their traces is long past.
	for id, end := range ended {
		if id < "8" {
			end()
		}
	}
	time.Sleep(12 * time.Second)
	for id, end := range ended {
		if id >= "8" {
			end()
		}
	}

	arrived := func() map[string]int {
		found := map[string]int{}
		for _, s := range f.backend.spans() {
			found[s.TraceID]++
			if s.Name == "epoch" {
				found[s.TraceID] += 100
			}
		}
		return found
	}
	f.backend.until("all slow windows are there", func() bool {
		found := arrived()
		for id, is := range slow {
			if is && (found[id] < 101 || id < "8" && found[id] < 101+children) {
				return false
			}
		}
		return true
	})
	time.Sleep(7 * time.Second) // in which a trace that is not kept would come
	for id := range arrived() {
		if !slow[id] {
			t.Errorf("trace %s: got it kept, want it left out: no window in it is slow", id)
		}
	}
	at := map[string]int{}
	for i, g := range f.gateways {
		kept := 0
		for _, s := range g.spans() {
			if other, ok := at[s.TraceID]; ok && other != i {
				t.Errorf("trace %s: got spans on both gateways, want them on one", s.TraceID)
			}
			at[s.TraceID] = i
			kept++
		}
		if kept == 0 {
			t.Errorf("gateway %d: got no spans, want those of some traces", i)
		}
	}
	// Metrics count the spans that were left out, too.
	f.backend.until("the database counts all spans", func() bool {
		return f.backend.query(f.database, "sum(traces_span_metrics_calls_total)") == traces*(1+children)
	})
	for _, g := range f.gateways {
		g.stop()
	}
	f.backend.stop()
}

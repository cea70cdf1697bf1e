//go:build linux && (amd64 || arm64)

package processor

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/stallspan/stallspan/internal/identity/locate"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/processor/internal/metadata"
)

var dawn = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)

// machine is a monitor that has seen two minutes of a machine with so many disks and GPUs, all of them at work. Its
// GPUs wait for storage in every other second.
func machine(tb testing.TB, disks, gpus int) *monitor.Monitor {
	tb.Helper()
	m, err := monitor.New(monitor.Config{Recorded: true})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(m.Stop)
	feed := func(e recording.Entry) {
		if err := m.Feed(&e); err != nil {
			tb.Fatal(err)
		}
	}
	var waited time.Duration
	for i := range 1200 {
		spent := time.Duration(i) * 100 * time.Millisecond
		if i%20 >= 10 {
			waited += 80 * time.Millisecond
		}
		at, n := sample.Stamp{Mono: time.Hour + spent, Wall: dawn.Add(spent)}, uint64(i)
		all := []*sample.Sample{
			{At: at, Pressures: []sample.Pressure{{Resource: sample.IO, Some: waited, Full: waited / 2}}},
			{At: at, Cores: []sample.Core{{Name: "cpu0", User: spent / 3}}},
			{At: at},
			{At: at},
		}
		for d := range disks {
			all[2].Disks = append(all[2].Disks, sample.Disk{Name: "nvme" + strconv.Itoa(d) + "n1", Leaf: true, ReadIOs: n,
				ReadBytes: n << 20, ReadTicks: spent / 2, WriteIOs: n, WriteBytes: n, WriteTicks: spent, TimeInQueue: spent / 2})
		}
		for g := range gpus {
			all[3].GPUs = append(all[3].GPUs, sample.GPU{ID: "GPU-" + strconv.Itoa(g), Busy: spent - waited})
		}
		for _, s := range all {
			feed(recording.Entry{Source: "some", Sample: s})
		}
		feed(recording.Entry{Mark: &recording.Mark{Op: recording.Tick}})
	}
	return m
}

// BenchmarkProcess gives spans a second and what 99 of 100 batches of 512 spans take at most. For one core:
//
//	go test -run '^$' -bench Process -cpu 1 ./processor
func BenchmarkProcess(b *testing.B) {
	request := map[string]any{
		"http.request.method": "GET", "http.route": "/v1/models/{id}", "url.path": "/v1/models/7", "url.scheme": "https",
		"server.address": "models.example", "server.port": 443, "http.response.status_code": 200,
		"client.address":      "10.1.2.3",
		"user_agent.original": "curl/8", "network.protocol.version": "1.1",
	}
	for _, size := range []struct{ disks, gpus int }{{2, 0}, {10, 8}} {
		m := machine(b, size.disks, size.gpus)
		for _, c := range []struct {
			name   string
			names  []string
			length time.Duration
		}{
			{"none matches", []string{"GET /v1/models/{id}", "SELECT models", "llm_request", "publish"}, 20 * time.Millisecond},
			{"all match, 300 ms", []string{"Load model", "model.load", "train_epoch"}, 300 * time.Millisecond},
			{"all match, 10 s", []string{"Load model", "model.load", "train_epoch"}, 10 * time.Second},
			{"all match, 90 s", []string{"Load model", "model.load", "train_epoch"}, 90 * time.Second},
		} {
			traces, to := batch()
			traces.ResourceSpans().At(0).Resource().Attributes().PutInt("process.pid", int64(os.Getpid()))
			for i := range 512 {
				start := dawn.Add(time.Duration(i) * 53 * time.Millisecond)
				put(to, c.names[i%len(c.names)], start, start.Add(c.length), request)
			}
			b.Run(fmt.Sprintf("%d disks, %d GPUs/%s", size.disks, size.gpus, c.name),
				func(b *testing.B) { process(b, m, traces) })
		}
	}
}

// process sends copies of a batch through the processor.
func process(b *testing.B, m *monitor.Monitor, batch ptrace.Traces) {
	telemetry, err := metadata.NewTelemetryBuilder(processortest.NewNopSettings(metadata.Type).TelemetrySettings)
	if err != nil {
		b.Fatal(err)
	}
	s := stallspanProcessor{telemetry: telemetry, annotator: *fresh(b, m)}
	s.annotator.locator = locate.New("", "", false)
	var took []time.Duration
	var sum time.Duration
	for b.Loop() {
		one := ptrace.NewTraces()
		batch.CopyTo(one)
		began := time.Now()
		if _, err := s.process(context.Background(), one); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
		sum += took[len(took)-1]
	}
	slices.Sort(took)
	b.ReportMetric(0, "ns/op") // it holds the copying, too
	b.ReportMetric(float64(len(took)*batch.SpanCount())/sum.Seconds(), "spans/s")
	b.ReportMetric(float64(took[len(took)*99/100])/1e6, "p99-ms")
}

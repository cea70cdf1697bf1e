package parity_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/stallspan/stallspan/agent/internal/export"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/emit/otlp"
)

// logServer passes on what it is sent.
type logServer struct {
	plogotlp.UnimplementedGRPCServer
	got chan plog.Logs
}

func (s *logServer) Export(_ context.Context, r plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	logs := plog.NewLogs()
	r.Logs().CopyTo(logs)
	s.got <- logs
	return plogotlp.NewExportResponse(), nil
}

// TestLogParity sends every event through the agent's exporter. What arrives is what this package makes of it.
func TestLogParity(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, logs := grpc.NewServer(), &logServer{got: make(chan plog.Logs, 1)}
	plogotlp.RegisterGRPCServer(server, logs)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	defer func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	environment(t, map[string]string{"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://" + listener.Addr().String()})
	exporter, err := export.New(t.Context(), export.Options{Version: version, Logs: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	defer func() {
		if lost := exporter.Close(ctx).Lost(); lost != "" {
			t.Errorf("lost: got %q, want nothing", lost)
		}
	}()
	events := []emit.Event{{Name: "over", Severity: emit.Info, Time: time.Unix(1, 2), Attributes: everyAttribute()},
		{Name: "bare", Time: time.Unix(3, 4)}}
	for _, name := range emit.EventNames() {
		e, err := emit.NewTestEvent(name, time.Unix(1700000000, 5))
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	for i, e := range events {
		span := trace.SpanContext{}
		if i%2 == 0 {
			span = emit.RootContext()
		}
		exporter.Log(e, span)
		if err := exporter.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		want := <-logs.got
		got := plog.NewLogs()
		resource := got.ResourceLogs().AppendEmpty()
		want.ResourceLogs().At(0).Resource().CopyTo(resource.Resource())
		resource.SetSchemaUrl(want.ResourceLogs().At(0).SchemaUrl())
		scope := resource.ScopeLogs().AppendEmpty()
		scope.SetSchemaUrl(emit.Scope(version).SchemaURL)
		otlp.Scope(emit.Scope(version), scope.Scope())
		otlp.Record(e, span, scope.LogRecords())
		seen := want.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).ObservedTimestamp()
		scope.LogRecords().At(0).SetObservedTimestamp(seen) // each output has its own time
		marshaler := plog.ProtoMarshaler{}
		a, errA := marshaler.MarshalLogs(want)
		b, errB := marshaler.MarshalLogs(got)
		if err := errors.Join(errA, errB); err != nil || !bytes.Equal(a, b) {
			text := plog.JSONMarshaler{}
			left, _ := text.MarshalLogs(want)
			right, _ := text.MarshalLogs(got)
			t.Errorf("%s differs: %v\n%s\n%s", e.Name, err, left, right)
		}
	}
}

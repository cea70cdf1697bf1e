//go:build linux && (amd64 || arm64)

package receiver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/window"
)

func TestPort(t *testing.T) {
	c := laboratory(t)
	c.Endpoint = "localhost:0"
	w := newReceiver(settings(), c)
	p := &pipelines{}
	if err := w.addTraces(settings(), &p.TracesSink); err != nil {
		t.Fatal(err)
	}
	if err := w.Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Shutdown(context.Background()) }()
	address := w.server.listeners[1].Addr().String()
	answer, err := http.Get("http://" + address + "/v1/status")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var status api.Status
	if err := json.NewDecoder(answer.Body).Decode(&status); err != nil || status.Version != "1.2.3" {
		t.Errorf("status: got %+v, %v, want version 1.2.3", status, err)
	}

	taken := laboratory(t)
	taken.Sampling = c.Sampling
	taken.Endpoint = address
	other := in(t, NewFactory(), settings(), taken, "logs")
	if err := other.parts[0].Start(t.Context(), componenttest.NewNopHost()); err == nil ||
		!strings.Contains(err.Error(), "choose another port") {
		t.Error(err)
	}
	if _, err := os.Stat(taken.Socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	other.stop(t)
}

// A pipeline that hangs delays neither the end of a window nor, beyond its deadline, the shutdown.
func TestPipelineThatHangs(t *testing.T) {
	c := laboratory(t)
	next, err := consumer.NewTraces(func(ctx context.Context, _ ptrace.Traces) error {
		<-ctx.Done()
		return ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewFactory().CreateTraces(t.Context(), settings(), c, next)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		end(t, c, begin(t, c, api.Announcement{Kind: window.Epoch}).ID)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := r.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if w, ok := r.(*stallspanReceiver); !ok || w.spans.lost() != 300 {
		t.Error("lost windows are not counted")
	}
}

// A thousand windows are open when the Collector stops, and more come and go meanwhile.
func TestManyWindows(t *testing.T) {
	c := laboratory(t)
	p := in(t, NewFactory(), settings(), c, "traces")
	p.start(t)
	done := make(chan int)
	const clients, each = 8, 125
	for range clients {
		go func() {
			client, ended := api.NewClient(c.Socket), 0
			for range each {
				short, err := client.Begin(context.Background(), api.Announcement{Kind: window.Checkpoint})
				if err != nil {
					t.Error(err)
				}
				if _, err := client.Begin(context.Background(), api.Announcement{Kind: window.Epoch}); err != nil {
					t.Error(err)
				}
				if _, err := client.End(context.Background(), short.ID); err != nil {
					t.Error(err)
				}
				ended++
			}
			done <- ended
		}()
	}
	for range clients {
		<-done
	}
	began := time.Now()
	p.stop(t)
	t.Logf("stopped within %v", time.Since(began))
	if n := p.SpanCount(); n != 2*clients*each {
		t.Errorf("%d spans of %d windows", n, 2*clients*each)
	}
}

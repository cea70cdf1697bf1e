package notice

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
)

func TestLine(t *testing.T) {
	e, err := emit.Trial("stallspan.gpu.temperature.high", time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	n := Notice{e, "one", trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})}
	const want = `{"id":"one","name":"stallspan.gpu.temperature.high","severity":"WARN","time":"2026-03-01T12:00:00Z","resolved":false,"test":true,` +
		`"body":"a test, nothing has happened: a GPU is at 90 C","trace_id":"01000000000000000000000000000000","span_id":"0200000000000000",` +
		`"attributes":{"hw.driver_version":"test","hw.id":"test","hw.name":"test","hw.sensor_location":"gpu","stallspan.event.limit":85,` +
		`"stallspan.event.test":true,"stallspan.event.value":90}}` + "\n"
	if got := string(n.JSON()); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// Whatever an event holds, it is one line of JSON, and not a long one.
func FuzzJSON(f *testing.F) {
	f.Add("sda\n{}", "\xff\x00", 1.5)
	f.Add(strings.Repeat("x", 5000), "k", math.NaN())
	f.Fuzz(func(t *testing.T, name, text string, number float64) {
		n := Notice{Event: emit.Event{Name: name, Body: text, Attributes: []attribute.KeyValue{
			attribute.String(text, name), attribute.Float64("number", number), attribute.StringSlice("list", []string{name, text}),
		}}}
		line := n.JSON()
		if len(line) == 0 || strings.Count(string(line), "\n") != 1 || !json.Valid(line) || len(line) > 64<<10 {
			t.Errorf("%d bytes: %.200q", len(line), line)
		}
	})
}

func named(i int) *Notice { return &Notice{Event: emit.Event{Name: fmt.Sprint(i)}} }

func TestBoard(t *testing.T) {
	var b Board
	if from := b.Last(10); from != 0 {
		t.Error(from)
	}
	lines, next, missed, changed := b.Read(0)
	if lines != nil || next != 0 || missed != 0 || changed == nil {
		t.Fatal("an empty board")
	}
	b.Post(named(0))
	<-changed
	for i := 1; i < 1000; i++ {
		b.Post(named(i))
	}
	if from := b.Last(10); from != 990 {
		t.Error(from)
	}
	lines, next, missed, changed = b.Read(0)
	if len(lines) != 32 || missed != 1000-Kept || next != 1000-Kept+32 || changed != nil {
		t.Errorf("%d lines, next %d, missed %d", len(lines), next, missed)
	}
	if !strings.HasPrefix(string(lines[0]), `{"id":"","name":"744"`) {
		t.Errorf("%s", lines[0])
	}
}

// Every reader gets every number once or is told that it missed it, while others write.
func TestReaders(t *testing.T) {
	const all = 10000
	var b Board
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			var from, read, missed uint64
			for read+missed < all {
				lines, next, left, changed := b.Read(from)
				from, missed, read = next, missed+left, read+uint64(len(lines))
				if from != read+missed {
					t.Errorf("at %d after %d and %d", from, read, missed)
					return
				}
				if changed != nil {
					<-changed
				}
			}
		})
	}
	for i := range all {
		b.Post(named(i))
	}
	readers.Wait()
}

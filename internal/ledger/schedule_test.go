package ledger

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// TestScheduledFromTheFirstRow: the scheduler's evidence covers a window that begins right after its job was followed,
// between two rows.
func TestScheduledFromTheFirstRow(t *testing.T) {
	const ms = time.Millisecond
	h, err := history.New(history.Config{})
	if err != nil {
		t.Fatal(err)
	}
	e := New(h)
	e.SetTargets([]Target{{Job: "job", Leader: 1}})
	begin := history.Point{At: 130 * ms, Edge: &history.Edge{}}
	edges := []history.Point{begin}
	events, _ := loop(20*ms, 30*ms, 50*ms, false, 20*ms, 1000*ms)
	for at := 100 * ms; at <= 1000*ms; at += 100 * ms {
		reading := sample.Schedule{Until: at, Arch: events.Arch}
		for len(events.Events) > 0 && events.Events[0].At <= at {
			reading.Events, events.Events = append(reading.Events, events.Events[0]), events.Events[1:]
		}
		e.Learn(&reading)
		if err := h.Append(&sample.Sample{At: sample.Stamp{Mono: at}, Jobs: []sample.Job{{ID: "job"}}}); err != nil {
			t.Fatal(err)
		}
		reached, err := e.Advance(edges)
		if err != nil {
			t.Fatal(err)
		}
		edges = edges[reached:]
	}
	key := history.Key{Series: history.LedgerScheduled, ID: ID("job", "")}
	got, known := h.Between(key, begin, history.Point{At: 1000 * ms})
	if want := 0.87; !known || got.Value < want-0.001 || got.Value > want+0.001 {
		t.Errorf("got %v s divided by the scheduler's evidence, known %v; want %v", got.Value, known, want)
	}
}

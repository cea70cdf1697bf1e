package page

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/store"
	"github.com/stallspan/stallspan/semconv"
)

var began = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func gpuZero(id string) string { return "GPU 0 of " + id }

// Each event of this program has a subject and a time.
func TestEventsHaveSubjects(t *testing.T) {
	for name, want := range map[string]string{
		semconv.AgentDegradedEvent.Name: "test", semconv.DiskHealthEvent.Name: "test",
		semconv.DiskSaturatedEvent.Name: "test", semconv.GPUErrorEvent.Name: "GPU 0 of test",
		semconv.GPULostEvent.Name: "GPU 0 of test", semconv.GPUTemperatureHighEvent.Name: "GPU 0 of test",
		semconv.GPUThrottledEvent.Name: "GPU 0 of test", semconv.IOStormEvent.Name: "test",
		semconv.WindowSlowEvent.Name: "test",
	} {
		made, err := emit.NewTestEvent(name, began.Add(90*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		made = made.Identified(made.Span)
		e, ok := NewEvent(made.JSON(), began, gpuZero)
		if !ok || e.ID == "" || e.Name != name || e.Subject != want || e.Text != made.Body ||
			e.Severity != made.Severity.String() || e.At != made.Time.Sub(began).Seconds() {
			t.Errorf("got %+v, want %s about %s", e, name, want)
		}
	}
	for _, e := range semconv.Events {
		made, err := emit.NewTestEvent(e.Name, began)
		if err != nil {
			t.Fatal(err)
		}
		if placed, _ := NewEvent(made.JSON(), began, gpuZero); placed.Subject == "" {
			t.Errorf("%s: got no subject, want one", e.Name)
		}
	}
}

func TestEventOfAnEpoch(t *testing.T) {
	line := `{"id":"a","name":"stallspan.window.slow","time":"2026-11-23T12:01:00Z","resolved":true,` +
		`"attributes":{"stallspan.window.kind":"epoch","stallspan.training.epoch.index":3}}`
	if e, ok := NewEvent([]byte(line), began, gpuZero); !ok || e.Subject != "epoch 3" || e.At != 60 || !e.Resolved {
		t.Errorf("got %+v, want one that has ended, about epoch 3, after 60 s", e)
	}
	for _, none := range []string{"", "[]", "{}", `{"name":1}`, `{"missed":3}`} {
		if e, ok := NewEvent([]byte(none), began, gpuZero); ok {
			t.Errorf("%s: got %+v, want no event", none, e)
		}
	}
}

// The newest events of the past are kept, of the time that is shown, and no event that must not be seen.
func TestEventsOfThePast(t *testing.T) {
	p := NewPast(began, time.Second, 3600, 1, func(event, client string) bool {
		return event == "machine" || client == "uid 7"
	})
	add := func(name, client string, at time.Duration) {
		line := fmt.Sprintf(`{"id":"%s %v","name":%[1]q,"time":%[3]q}`, name, at, began.Add(at).Format(time.RFC3339))
		p.Add(&store.Item{Entries: []store.Entry{{
			Kind: store.Event, At: began.Add(at), Client: client, Text: json.RawMessage(line),
		}}})
	}
	add("machine", "", -time.Second)
	add("machine", "", time.Hour)
	for i := range MaxPastEvents + 2 {
		add("machine", "", time.Duration(1+i)*time.Second)
	}
	add("window", "uid 8", time.Minute)
	add("window", "", time.Minute)
	add("window", "uid 7", time.Minute)
	broken := store.Entry{Kind: store.Event, At: began.Add(time.Minute), Text: json.RawMessage("[]")}
	p.Add(&store.Item{Entries: []store.Entry{broken}})
	got, left := p.Events(began, gpuZero)
	if len(got) != MaxPastEvents || left != 3 {
		t.Fatalf("got %d events and %d left out, want %d and 3", len(got), left, MaxPastEvents)
	}
	if first, last := got[0], got[len(got)-1]; first.At != 4 || last.ID != "window 1m0s" {
		t.Errorf("got events from %v s on, the last %s, want them from 4 s on, and that of uid 7", first.At, last.ID)
	}
	for _, e := range got[:len(got)-1] {
		if e.Name != "machine" || e.At < 0 || e.At >= 3600 {
			t.Errorf("got %+v, want those of the machine in an hour", e)
		}
	}
}

func TestNewest(t *testing.T) {
	got, left := Newest([]Event{{At: 3}, {At: 1}, {At: 2}}, 2)
	if len(got) != 2 || got[0].At != 2 || got[1].At != 3 || left != 1 {
		t.Errorf("got %v and %d left out, want those of 2 and 3 s, and one", got, left)
	}
}

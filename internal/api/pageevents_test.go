package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/page"
	"github.com/stallspan/stallspan/internal/store"
	"github.com/stallspan/stallspan/semconv"
)

// happened puts an event on a board.
func happened(board *alert.Board, name, id, client string, at time.Time) {
	e := emit.Event{Name: name, ID: id, Time: at, Body: "it happened"}
	board.Post(alert.Posted{Line: e.JSON(), Client: client})
}

func ids(events []page.Event) (ids []string) {
	for _, e := range events {
		ids = append(ids, e.ID)
	}
	return ids
}

// recent is the page of a user, of the last minutes, also those before the first reading.
func recent(t *testing.T, s *service, who string) *viewer {
	t.Helper()
	v := viewerOf(t, s, who, "")
	v.origin -= time.Minute
	return v
}

// Each user sees the events of the machine. Those about windows are for their owner, and for who sees all windows.
func TestPageShowsEvents(t *testing.T) {
	s, board := withBoard(t)
	now := time.Now()
	happened(board, semconv.GPULostEvent.Name, "of last week", "", now.Add(-8*24*time.Hour))
	happened(board, semconv.GPULostEvent.Name, "gpu", "", now)
	happened(board, semconv.WindowSlowEvent.Name, "slow of 7", "uid 7", now)
	happened(board, semconv.WindowSlowEvent.Name, "slow of 8", "uid 8", now)
	happened(board, semconv.WindowSlowEvent.Name, "slow of the server", "", now)
	happened(board, semconv.IOStormEvent.Name, "storm", "", now)
	happened(board, "stallspan.of.a.later.version", "unknown", "", now)
	board.Post(alert.Posted{Line: []byte("[]\n")})
	pages := map[string]*viewer{}
	for who, want := range map[string][]string{
		"":      {"gpu", "slow of 7", "slow of 8", "slow of the server", "storm", "unknown"},
		"uid 7": {"gpu", "slow of 7"}, "uid 8": {"gpu", "slow of 8"}, overTCP: {"gpu"},
	} {
		pages[who] = recent(t, s, who)
		if got := ids(pages[who].first().Events); !slices.Equal(got, want) {
			t.Errorf("%q: got the events %q, want %q", who, got, want)
		}
	}
	happened(board, semconv.GPULostEvent.Name, "gpu, later", "", now)
	happened(board, semconv.WindowSlowEvent.Name, "slow of 7, later", "uid 7", now)
	for who, v := range pages {
		want := []string{"gpu, later"}
		if who == "" || who == "uid 7" {
			want = append(want, "slow of 7, later")
		}
		got, _, _ := v.events()
		if again, _, _ := v.events(); !slices.Equal(ids(got), want) || again == nil || len(again) > 0 {
			t.Errorf("%q: got %q later, and then %q, want %q once", who, ids(got), ids(again), want)
		}
	}
}

// The stream and the history show a user the same events as the page.
func TestEventsOfOthers(t *testing.T) {
	s, board := withBoard(t)
	for _, e := range []struct{ name, id, client string }{
		{semconv.GPULostEvent.Name, "gpu", ""}, {semconv.WindowSlowEvent.Name, "slow of 7", "uid 7"},
		{semconv.WindowSlowEvent.Name, "slow of 8", "uid 8"}, {semconv.IOStormEvent.Name, "storm", ""},
	} {
		happened(board, e.name, e.id, e.client, time.Now())
	}
	for who, want := range map[string][]string{
		"": {"gpu", "slow of 7", "slow of 8", "storm"}, "uid 7": {"gpu", "slow of 7"}, overTCP: {"gpu"},
	} {
		caller := &connected{caller: caller{uid: 7, name: who}}
		request, err := http.NewRequestWithContext(context.WithValue(t.Context(), peerKey{}, caller), http.MethodGet,
			"/v1/events?last=10&follow=0", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		w := &recorder{ResponseRecorder: httptest.NewRecorder()}
		if err := s.server.follow(w, request); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range bytes.Lines(w.Body.Bytes()) {
			var e emit.EventJSON
			if err := json.Unmarshal(line, &e); err != nil {
				t.Fatal(err)
			}
			got = append(got, e.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: got the events %q, want %q", who, got, want)
		}
	}
	seven := caller{uid: 7, name: "uid 7"}
	for _, e := range []struct {
		entry store.Entry
		want  bool
	}{
		{store.Entry{Kind: store.Event, Text: []byte(`{"name":"stallspan.gpu.lost"}`)}, true},
		{store.Entry{Kind: store.Event, Client: "uid 7", Text: []byte(`{"name":"stallspan.window.slow"}`)}, true},
		{store.Entry{Kind: store.Event, Client: "uid 8", Text: []byte(`{"name":"stallspan.window.slow"}`)}, false},
		{store.Entry{Kind: store.Event, Text: []byte(`{"name":7}`)}, false},
		{store.Entry{Kind: store.Window, Client: "uid 7"}, true},
		{store.Entry{Kind: store.Window}, false},
	} {
		if got := seven.shows(e.entry); got != e.want {
			t.Errorf("%+v: a user sees it: %v, want %v", e.entry, got, e.want)
		}
	}
}

// recorder is a response without a connection, whose deadlines are ignored.
type recorder struct{ *httptest.ResponseRecorder }

func (*recorder) SetReadDeadline(time.Time) error  { return nil }
func (*recorder) SetWriteDeadline(time.Time) error { return nil }

// Who sees an event is decided for each that there is.
func TestWhoSeesEvents(t *testing.T) {
	other := caller{uid: 7, name: "uid 7"}
	aboutWindows := []string{semconv.IOStormEvent.Name, semconv.WindowSlowEvent.Name}
	for _, e := range semconv.Events {
		if want := !slices.Contains(aboutWindows, e.Name); other.sees(e.Name, "uid 8") != want {
			t.Errorf("%s: another user sees it: %v, want %v", e.Name, !want, want)
		}
	}
}

// As many events as there is room for, the newest, are sent, and the page counts the others.
func TestPageHasABoundOfEvents(t *testing.T) {
	s, board := withBoard(t)
	now := time.Now()
	for i := range page.MaxEvents + 3 {
		happened(board, semconv.GPULostEvent.Name, fmt.Sprint(i), "", now)
	}
	live := recent(t, s, "").first()
	if got := ids(live.Events); len(got) != page.MaxEvents || got[0] != "3" ||
		!slices.Contains(live.Problems, "3 older events are not shown.") {
		t.Errorf("got %d events and the problems %q, want %d from the fourth on, and a problem", len(got), live.Problems,
			page.MaxEvents)
	}
	for range alert.BoardSize {
		happened(board, semconv.WindowSlowEvent.Name, "slow", "uid 7", now)
	}
	live = recent(t, s, "uid 8").first()
	if len(live.Events) != 0 || !slices.ContainsFunc(live.Problems, func(p string) bool {
		return strings.Contains(p, "no longer in memory")
	}) {
		t.Errorf("got %d events and the problems %q, want none, and that older ones are not in memory", len(live.Events),
			live.Problems)
	}
}

// An event comes once, with an update.
func TestPageFollowsEvents(t *testing.T) {
	s, board := withBoard(t)
	came, after := 0, 0
	streamed(t, s, func(kind, data string) bool {
		if kind == "page" {
			if live := parseAs[page.Live](t, data); live.Events == nil || len(live.Events) > 0 {
				t.Errorf("got the events %v, want an empty list", live.Events)
			}
			happened(board, semconv.DiskHealthEvent.Name, "new", "", time.Now())
			return true
		}
		events := parseAs[page.Update](t, data).Events
		if came += len(events); came > 0 {
			after++
		}
		for _, e := range events {
			if e.ID != "new" || e.At <= 0 || e.Text != "it happened" {
				t.Errorf("got %+v, want the new event at its time", e)
			}
		}
		return after < 3
	})
	if came != 1 {
		t.Errorf("got the event %d times, want once", came)
	}
}

// Without events, as in a server that has none, the page shows no list of them.
func TestPageWithoutEvents(t *testing.T) {
	s := serve(t, nil)
	if live := recent(t, s, "").first(); live.Events != nil {
		t.Errorf("got the events %v, want null", live.Events)
	}
}

package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/monitor"
)

func posted(i int) alert.Posted {
	return alert.Posted{Line: (&emit.Event{Name: fmt.Sprint(i)}).JSON()}
}

// withBoard returns a server with events.
func withBoard(t *testing.T) (*service, *alert.Board) {
	t.Helper()
	board := &alert.Board{}
	return serve(t, func(s *Server) {
		s.With(Events{Board: board, Try: func(_ context.Context, name string) (Tried, error) {
			if name != "known" {
				return Tried{}, errors.New("there is no such event")
			}
			return Tried{Event: json.RawMessage(`{"name":"known"}`),
				Actions: []TriedAction{{Action: "exec /bin/true", OK: true}}}, nil
		}})
	}), board
}

var errEnough = errors.New("enough")

// lines returns n lines of a stream.
func lines(t *testing.T, s *service, last, n int, follow bool, each func()) (got []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	err := s.Events(ctx, last, follow, func(line []byte) error {
		got = append(got, string(line))
		if each != nil {
			each()
		}
		if len(got) == n {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	return got
}

func TestEvents(t *testing.T) {
	s, board := withBoard(t)
	if got := lines(t, s, 10, 1, false, nil); got != nil {
		t.Errorf("got %q, want no event", got)
	}
	for i := range 20 {
		board.Post(posted(i))
	}
	if got := lines(t, s, 3, 10, false, nil); len(got) != 3 || !strings.HasPrefix(got[0], `{"id":"","name":"17"`) {
		t.Errorf("got %q, want the events 17 to 19", got)
	}
	live := lines(t, s, 1, 3, true, func() { board.Post(posted(99)) })
	if len(live) != 3 || !strings.HasPrefix(live[0], `{"id":"","name":"19"`) ||
		!strings.HasPrefix(live[2], `{"id":"","name":"99"`) {
		t.Errorf("got %q, want event 19 and two of 99", live)
	}
}

// A client that falls behind gets the number of events that it missed.
func TestEventsMissed(t *testing.T) {
	s, board := withBoard(t)
	board.Post(posted(0))
	first := true
	got := lines(t, s, 1, 3, true, func() {
		if first { // while the server waits for more
			first = false
			time.Sleep(50 * time.Millisecond)
			for i := range 100000 {
				board.Post(posted(i))
			}
		}
	})
	if len(got) != 3 {
		t.Fatalf("got %q, want 3 lines", got)
	}
	missed := false
	for _, line := range got {
		missed = missed || strings.HasPrefix(line, `{"missed":`)
	}
	if !missed && !strings.HasPrefix(got[1], `{"id":"","name":"0"`) { // unless it kept up
		t.Errorf("got %q, want a line with the missed events", got)
	}
}

func TestEventsRefused(t *testing.T) {
	s, _ := withBoard(t)
	for path, want := range map[string]string{
		"/v1/events?last=-1":  "last is the number of recent events",
		"/v1/events?follow=2": "follow must be 0 or 1",
		"/v1/events?since=1":  "unknown parameter",
	} {
		err := s.stream(t.Context(), path, func([]byte) error { return nil })
		var refused *Error
		if !errors.As(err, &refused) || refused.Status != http.StatusBadRequest || !strings.Contains(refused.Text, want) {
			t.Errorf("%s: got %v, want 400 %q", path, err, want)
		}
	}
	bare := serve(t, nil)
	if err := bare.Events(t.Context(), 1, false, nil); err == nil ||
		!strings.Contains(err.Error(), "this server has no events") {
		t.Error(err)
	}
	if _, err := bare.Try(t.Context(), "known"); err == nil ||
		!strings.Contains(err.Error(), "this server cannot emit test events") {
		t.Error(err)
	}
}

// The number of streams is limited, and a stream that ends makes room for another.
func TestMostStreams(t *testing.T) {
	s, board := withBoard(t)
	board.Post(posted(0))
	ctx, cancel := context.WithCancel(t.Context())
	var open atomic.Int32
	ended := make(chan error, maxStreams)
	for range maxStreams {
		go func() {
			ended <- s.Events(ctx, 1, true, func([]byte) error { open.Add(1); return nil })
		}()
	}
	for open.Load() < maxStreams {
		time.Sleep(time.Millisecond)
	}
	var refused *Error
	if err := s.Events(t.Context(), 1, false, nil); !errors.As(err, &refused) ||
		refused.Status != http.StatusServiceUnavailable {
		t.Errorf("over the limit: got %v, want an *Error with 503", err)
	}
	cancel()
	for range maxStreams {
		<-ended
	}
	for s.Events(t.Context(), 1, false, func([]byte) error { return nil }) != nil {
		time.Sleep(time.Millisecond)
	}
}

// Streams do not delay a server that stops.
func TestStopWithStream(t *testing.T) {
	s, board := withBoard(t)
	board.Post(posted(0))
	ended := make(chan error, 1)
	open := make(chan struct{})
	go func() {
		ended <- s.Events(t.Context(), 1, true, func([]byte) error { close(open); return nil })
	}()
	<-open
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTry(t *testing.T) {
	s, _ := withBoard(t)
	tried, err := s.Try(t.Context(), "known")
	if err != nil || len(tried.Actions) != 1 || !tried.Actions[0].OK {
		t.Errorf("got %+v, %v; want one successful action", tried, err)
	}
	if _, err := s.Try(t.Context(), "unknown"); err == nil || err.Error() != "there is no such event" {
		t.Error(err)
	}
	if _, err := s.call(t.Context(), http.MethodPost, "/v1/events/test", json.RawMessage(`{"nam":"known"}`)); err == nil ||
		!strings.Contains(err.Error(), `unknown key "nam": did you mean "name"?`) {
		t.Error(err)
	}
}

// Test events may start programs, so they are refused over TCP.
func TestTryOverTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := monitor.New(monitor.Config{})
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(m, nil, "").With(Events{Try: func(context.Context, string) (Tried, error) {
		t.Error("got no error over TCP")
		return Tried{}, nil
	}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, l) }()
	response, err := http.Post("http://"+l.Addr().String()+"/v1/events/test", "application/json",
		strings.NewReader(`{"name":"known"}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("got %s, want 403", response.Status)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

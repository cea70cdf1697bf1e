package api

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Root and the server's user get all metrics, and others those of the machine.
func TestScraping(t *testing.T) {
	t.Parallel()
	says := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
	}
	s := serve(t, func(s *Server) { s.Scraping(Scraped{All: says("all"), Machine: says("machine")}) })
	if status, _, got := s.do(t, "GET", "/metrics", ""); status != http.StatusOK || got != "all" {
		t.Errorf("root: got %d %s, want all", status, got)
	}
	for _, who := range []caller{
		{uid: 65534, name: "uid 65534"}, {uid: 0, name: "container a"}, {uid: -1, name: overTCP, tcp: true},
	} {
		ctx := context.WithValue(t.Context(), peerKey{}, &connected{caller: who})
		w := httptest.NewRecorder()
		if err := s.server.scrape(w, httptest.NewRequestWithContext(ctx, "GET", "/metrics", nil)); err != nil {
			t.Fatal(err)
		}
		if got := w.Body.String(); got != "machine" {
			t.Errorf("%+v: got %s, want machine", who, got)
		}
	}
	bare := serve(t, nil)
	if status, _, _ := bare.do(t, "GET", "/metrics", ""); status != http.StatusNotFound {
		t.Errorf("a server without metrics: got %d, want 404", status)
	}
}

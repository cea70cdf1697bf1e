package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/page"
	"github.com/stallspan/stallspan/internal/trust"
	"github.com/stallspan/stallspan/internal/window"
)

// endedReport is a report of a window that has just ended, of a program that claims to be root's.
func endedReport(id string) *explain.Report {
	now := time.Now()
	return &explain.Report{
		ID: id, Kind: window.Custom, Name: "a\x1b[31mb", Start: now.Add(-10 * time.Second), End: now, Duration: 50,
		Verdict: window.Unknown, Finding: "one\ntwo", Reporter: "uid 0",
	}
}

// A window that another program has measured is listed, shown and on the page, with its reporter and without control
// characters.
func TestReportedWindow(t *testing.T) {
	s := serve(t, nil)
	untilKnown(t, s)
	if err := s.ReportWindow(t.Context(), endedReport("a1")); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint("uid ", os.Geteuid())
	check := func(where string, r *explain.Report) {
		t.Helper()
		if r.ID != "a1" || r.Name != "a [31mb" || r.Finding != "one two" || r.Reporter != want || r.Duration > 11 {
			t.Errorf("%s: got %+v, want the window a1 of ten seconds, by %s, with spaces as control characters", where, r, want)
		}
	}
	all, err := s.Windows(t.Context())
	if err != nil || len(all.Ended) != 1 {
		t.Fatalf("got %v and %+v, want one window that has ended", err, all)
	}
	check("in the list", all.Ended[0])
	_, _, body := s.do(t, "GET", "/v1/windows/a1", "")
	one := parseAs[explain.Report](t, body)
	check("by its ID", &one)
	_, _, body = s.do(t, "GET", "/v1/page?seconds=60", "")
	live := parseAs[page.Live](t, body)
	if len(live.Windows) != 1 || live.Windows[0].Label != "a [31mb" || live.Windows[0].Running {
		t.Fatalf("on the page: got %+v, want one window", live.Windows)
	}
	check("on the page", live.Windows[0].Report)
}

// untilKnown waits for the first reading: before it, no time can be placed on the monotonic clock.
func untilKnown(t *testing.T, s *service) {
	t.Helper()
	for {
		err := s.ReportWindow(t.Context(), endedReport("first"))
		if err == nil {
			s.monitor.Windows.Reported.All(1 << 62) // drops it: it ended long before that
			return
		}
		if refused := new(Error); !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestBadReportedWindow(t *testing.T) {
	s := serve(t, nil)
	untilKnown(t, s)
	changed := func(change func(*explain.Report)) string {
		r := endedReport("a1")
		change(r)
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for body, want := range map[string]string{
		"":            "no report of a window",
		"[]":          "no report of a window",
		`{"id":"a1"}`: "kind is",
		`{"kind":7}`:  "no report of a window",
		changed(func(r *explain.Report) { r.ID = "A/b" }):                              "id is ",
		changed(func(r *explain.Report) { r.Verdict = "fast" }):                        "verdict is ",
		changed(func(r *explain.Report) { r.End = r.End.Add(time.Hour) }):              "when it has ended",
		changed(func(r *explain.Report) { r.Start = r.End.Add(time.Millisecond) }):     "when it has ended",
		changed(func(r *explain.Report) { r.Start, r.End = time.Time{}, time.Time{} }): "when it has ended",
	} {
		status, _, got := s.do(t, "POST", "/v1/reports", body)
		if status != http.StatusBadRequest || !strings.Contains(got, want) {
			t.Errorf("%s: got %d %s, want 400 with %q", body, status, got, want)
		}
	}
}

// reportingWindows makes TestReportingWindows the program of another user.
const reportingWindows = "STALLSPAN_TEST_REPORTING_WINDOWS"

// TestReportingWindows is the other user's program. It reports windows until it is refused, and prints what it can see.
func TestReportingWindows(t *testing.T) {
	path := os.Getenv(reportingWindows)
	if path == "" {
		t.Skip("the program of another user, for TestWindowsReportedByOthers")
	}
	client, n := patient(path), 0
	var err error
	for ; err == nil && n <= maxReportedWindows; n++ {
		err = client.ReportWindow(t.Context(), endedReport(fmt.Sprint("b", n)))
	}
	all, _ := client.Windows(t.Context())
	others := 0
	for _, r := range all.Ended {
		if r.Reporter != "uid 65534" {
			others++
		}
	}
	fmt.Printf("%d windows, %d of others, %v\n", len(all.Ended), others, err)
}

// Another user reports as himself, a quarter of what a minute allows, and sees no window of root.
func TestWindowsReportedByOthers(t *testing.T) {
	s := serve(t, func(s *Server) { // in an hour, however slow this machine is
		s.windowRate = trust.NewRate(maxReportedWindows, time.Hour)
	})
	untilKnown(t, s)
	if err := s.ReportWindow(t.Context(), endedReport("a1")); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{s.path: 0o666, filepath.Dir(s.path): 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	got := as(t, 65534, "TestReportingWindows", reportingWindows, s.path, 1)
	if want := fmt.Sprintf("%d windows, 0 of others, you have reported your part of %d windows in a minute: wait",
		maxReportedWindows/trust.Share, maxReportedWindows); got[0] != want {
		t.Errorf("another user: got %q, want %q", got[0], want)
	}
	all, err := s.Windows(t.Context())
	if err != nil || len(all.Ended) != maxReportedWindows/trust.Share+1 {
		t.Errorf("root: got %v and %d windows, want all", err, len(all.Ended))
	}
}

// Over TCP it is not known who reports.
func TestReportedWindowOverTCP(t *testing.T) {
	m, err := monitor.New(monitor.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Stop()
	text, err := json.Marshal(endedReport("a1"))
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(m, &opener{monitor: m}, "v1")
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/reports", bytes.NewReader(text))
	err = s.reportedWindow(httptest.NewRecorder(), request)
	if refused := new(Error); !errors.As(err, &refused) || refused.Status != http.StatusForbidden {
		t.Errorf("got %v, want 403", err)
	}
}

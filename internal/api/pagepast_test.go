package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/page"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/store"
	"github.com/stallspan/stallspan/semconv"
	"github.com/stallspan/stallspan/test/storetest"
)

// weekStore is a store with the last seven days.
type weekStore struct {
	*store.Writer
	end time.Time
}

// The page reads the store. The store is written once for all of this.
func TestPageReadsTheStore(t *testing.T) {
	folder := t.TempDir()
	end, err := storetest.WriteWeek(folder, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w := store.New(store.Options{Folder: folder, MaxSize: store.DefaultMaxSize, MaxAge: store.DefaultMaxAge})
	err = w.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(sample.Stamp{Wall: end}) })
	week := weekStore{w, end}
	for name, test := range map[string]func(*testing.T, weekStore){
		"curves": testPastCurves, "windows": testPastWindows, "present": testPastAndPresent, "others": testPastOfOthers,
		"events": testPastEvents, "deadline": testPastDeadline, "busy": testPastBusy,
	} {
		t.Run(name, func(t *testing.T) { test(t, week) })
	}
}

// service is a server that keeps the week.
func (w weekStore) service(t *testing.T) *service {
	t.Helper()
	return serve(t, func(s *Server) { s.Keeping(w); s.pastTime = time.Minute }) // a busy machine reads slowly
}

// Keep is not called: no program reports windows.
func (weekStore) Keep(time.Time, string, []byte) {}

// JobTimes has no times: these tests are of curves, windows and events.
func (weekStore) JobTimes(_, _ time.Time) ([]sample.GPUTime, []sample.JobName, error) {
	return nil, nil, nil
}

func pageOf(t *testing.T, s *service, from, to time.Time) page.Live {
	t.Helper()
	status, _, body := s.do(t, http.MethodGet, fmt.Sprintf("/v1/page?from=%d&to=%d", from.Unix(), to.Unix()), "")
	if status != http.StatusOK {
		t.Fatalf("got %d %s, want the data of a page", status, body)
	}
	return parseAs[page.Live](t, body)
}

// line finds a curve. Values that are not known are nil.
func line(t *testing.T, body, panel, name string) []*float64 {
	t.Helper()
	live := parseAs[struct {
		Curves struct {
			Panels []struct {
				Title string
				Lines []struct {
					Name   string
					Values []*float64
				}
			}
		}
	}](t, body)
	for _, p := range live.Curves.Panels {
		for _, l := range p.Lines {
			if p.Title == panel && l.Name == name {
				return l.Values
			}
		}
	}
	t.Fatalf("got no line %s in %s: %s", name, panel, body[:min(len(body), 2000)])
	return nil
}

// What the page shows of a time in the past is what the store has of it, in each detail. A time without an agent is a
// gap.
func testPastCurves(t *testing.T, week weekStore) {
	s, end := week.service(t), week.end
	first := end.Add(-7 * 24 * time.Hour)
	for _, c := range []struct {
		name     string
		from, to time.Time
		step     float64
	}{
		{"ten minutes", end.Add(-30 * time.Hour), end.Add(-30*time.Hour + 10*time.Minute), 1},
		{"six hours", end.Add(-40 * time.Hour), end.Add(-34 * time.Hour), 10},
		{"a day with a gap", end.Add(-60 * time.Hour), end.Add(-36 * time.Hour), 30},
		{"almost seven days", first.Add(2 * time.Hour), end, 170},
	} {
		status, _, body := s.do(t, http.MethodGet, fmt.Sprintf("/v1/page?from=%d&to=%d", c.from.Unix(), c.to.Unix()), "")
		if status != http.StatusOK {
			t.Fatalf("%s: got %d %s, want the data of a page", c.name, status, body)
		}
		live := parseAs[page.Live](t, body)
		if live.Curves.Step != c.step {
			t.Errorf("%s: got a step of %v s, want %v", c.name, live.Curves.Step, c.step)
		}
		start := live.Origin.Add(time.Duration(live.Curves.Start * float64(time.Second)))
		if d := start.Sub(c.from); d.Abs() > time.Second {
			t.Errorf("%s: got curves from %v on, want them from %v", c.name, start, c.from)
		}
		step := time.Duration(c.step) * time.Second
		for _, l := range []struct {
			panel, name string
			want        func(time.Time) float64
		}{
			{"Disk throughput", storetest.Disk + " read", storetest.ReadBytes},
			{"Time of a disk operation (await)", storetest.Disk + " read", func(time.Time) float64 { return 2e-3 }},
			{"GPU", storetest.Name + " busy", func(at time.Time) float64 { return 100 * storetest.Busy(at) }},
			{"GPU power", storetest.Name, func(at time.Time) float64 { return 1000 * storetest.Busy(at) }},
			{"Where the time went: process 4242", "storage", func(at time.Time) float64 {
				return 50 * (1 - storetest.Busy(at))
			}},
			{"Where the time went: process 4242", "GPU busy", func(at time.Time) float64 { return 100 * storetest.Busy(at) }},
		} {
			values := line(t, body, l.panel, l.name)
			if len(values) == 0 || len(values) > pagePoints {
				t.Fatalf("%s: got %d points of %s, want at most %d", c.name, len(values), l.panel, pagePoints)
			}
			for i, got := range values {
				from := start.Add(time.Duration(i) * step)
				to := from.Add(step)
				if from.Add(-10*time.Second).Truncate(time.Hour) != to.Add(10*time.Second).Truncate(time.Hour) {
					continue // it has two values
				}
				age := end.Sub(from)
				if down := age > storetest.DownUntil && age < storetest.DownFrom; down != (got == nil) {
					t.Fatalf("%s: %s at %v: got %v, want a gap: %v", c.name, l.panel, from, got, down)
				}
				if got != nil && math.Abs(*got-l.want(from)) > 1e-3*l.want(from) {
					t.Fatalf("%s: %s at %v: got %v, want %v", c.name, l.panel, from, *got, l.want(from))
				}
			}
		}
	}
}

// The windows of a time are there: also those that end later.
func testPastWindows(t *testing.T, week weekStore) {
	s, end := week.service(t), week.end
	last := end.Truncate(storetest.Every).Add(-2 * storetest.Every) // the end of a window
	if age := end.Sub(last); age > storetest.DownUntil && age <= storetest.DownFrom {
		t.Fatalf("got an age of %v, want one with an agent", age)
	}
	live := pageOf(t, s, last.Add(-storetest.Length/2), last.Add(-storetest.Length/2+time.Minute))
	if len(live.Windows) != 1 {
		t.Fatalf("got %d windows, want one", len(live.Windows))
	}
	w := live.Windows[0]
	start := live.Origin.Add(time.Duration(w.Start * float64(time.Second)))
	if d := start.Sub(last.Add(-storetest.Length)); d.Abs() > time.Second || w.Running ||
		w.Report.Verdict != "storage_bound" || !strings.HasPrefix(w.Label, "epoch ") {
		t.Errorf("got %s, %s, from %v, running %v, want an epoch, storage_bound, from %v", w.Label, w.Report.Verdict, start,
			w.Running, last.Add(-storetest.Length))
	}
	all := pageOf(t, s, end.Add(-7*24*time.Hour+time.Hour), end)
	if got := len(all.Windows); got < 26 || got > 28 {
		t.Errorf("got %d windows in seven days, want 27; the page says %q", got, all.Problems)
	}
	if all.Oldest > 0 || all.Latest < all.Now {
		t.Errorf("got %v to %v s as what is known, want more than up to %v", all.Oldest, all.Latest, all.Now)
	}
}

// A live page of a day has the past of the store, and goes on with what is in memory.
func testPastAndPresent(t *testing.T, week weekStore) {
	s := week.service(t)
	_, _, body := s.do(t, http.MethodGet, "/v1/page?seconds=86400", "")
	live := parseAs[page.Live](t, body)
	if live.Span != 86400 || live.Now < 86000 || live.Curves.Start != 0 {
		t.Errorf("got a span of %v s and curves from %v to %v s, want a day", live.Span, live.Curves.Start, live.Now)
	}
	if values := line(t, body, "Disk throughput", storetest.Disk+" read"); values[10] == nil {
		t.Error("got no value of 24 hours ago, want one of the store")
	}
}

// viewerOf is the page of a user. query is the time that is shown.
func viewerOf(t *testing.T, s *service, who, query string) *viewer {
	t.Helper()
	ctx := context.WithValue(t.Context(), peerKey{}, &connected{caller: caller{uid: 1, name: who, tcp: who == overTCP}})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/v1/page"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.server.viewer(request)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// pastOf is the page of a user, of a time.
func pastOf(t *testing.T, s *service, who string, from, to time.Time) *viewer {
	t.Helper()
	return viewerOf(t, s, who, fmt.Sprintf("?from=%d&to=%d", from.Unix(), to.Unix()))
}

// Other users get the machine's past, and neither jobs nor windows of others.
func testPastOfOthers(t *testing.T, week weekStore) {
	s, end := week.service(t), week.end
	from := end.Add(-20*time.Hour + 30*time.Minute) // two windows end in the next 12 hours, whatever the hour is
	for who, want := range map[string]int{storetest.Owner: 2, "uid 1": 0, overTCP: 0} {
		live := pastOf(t, s, who, from, from.Add(12*time.Hour)).first()
		if len(live.Windows) != want {
			t.Errorf("%s: got %d windows, want %d", who, len(live.Windows), want)
		}
		disk := false
		for _, p := range live.Curves.Panels {
			for _, l := range p.Lines {
				disk = disk || strings.HasPrefix(l.Name, storetest.Disk)
			}
			if strings.Contains(p.Title, "4242") {
				t.Errorf("%s: got %s, want no job", who, p.Title)
			}
		}
		if !disk {
			t.Errorf("%s: got no disk, want those of the machine", who)
		}
	}
}

// The events of a time come from the store, those in memory once. Other users see those of the machine.
func testPastEvents(t *testing.T, week weekStore) {
	board := &alert.Board{}
	s := serve(t, func(s *Server) { s.Keeping(week).With(Events{Board: board}); s.pastTime = time.Minute })
	last := week.end.Truncate(storetest.Every).Add(-storetest.Every) // the end of a window
	if age := week.end.Sub(last); age > storetest.DownUntil {
		t.Fatalf("got an age of %v, want one with an agent", age)
	}
	known := pageOf(t, s, last.Add(-storetest.Length), last).Events
	if len(known) != 2 {
		t.Fatalf("got %+v, want two events", known)
	}
	disk, slow := known[0], known[1]
	length := storetest.Length.Seconds()
	if disk.Name != semconv.DiskHealthEvent.Name || disk.Subject != storetest.Disk || disk.Severity != "ERROR" ||
		math.Abs(disk.At-length/2) > 1 {
		t.Errorf("got %+v, want a disk that fails after %v s", disk, length/2)
	}
	if slow.Name != semconv.WindowSlowEvent.Name || !strings.HasPrefix(slow.Subject, "epoch ") ||
		math.Abs(slow.At-3*length/4) > 1 {
		t.Errorf("got %+v, want a slow epoch after %v s", slow, 3*length/4)
	}
	happened(board, slow.Name, slow.ID, storetest.Owner, last.Add(-storetest.Length/4))
	happened(board, semconv.GPULostEvent.Name, "after the time that is shown", "", last.Add(time.Minute))
	for who, want := range map[string][]string{
		"": {disk.ID, slow.ID}, storetest.Owner: {disk.ID, slow.ID}, "uid 1": {disk.ID}, overTCP: {disk.ID},
	} {
		live := pastOf(t, s, who, last.Add(-storetest.Length), last).first()
		if got := ids(live.Events); !slices.Equal(got, want) {
			t.Errorf("%q: got the events %q, want %q", who, got, want)
		}
	}
	all := len(pageOf(t, s, week.end.Add(-7*24*time.Hour), week.end).Events)
	if all < 52 || all > 58 {
		t.Errorf("got %d events in seven days, want two of each of 27 windows", all)
	}
}

// endless is a past that never ends.
type endless struct{ weekStore }

func (e endless) Copy(to io.Writer, from, until time.Time, shows func(store.Entry) bool) error {
	for {
		if err := e.Writer.Copy(to, from, until, shows); err != nil {
			return err
		}
	}
}

// Reading ends when its time is over, and the page gets what was read. Copying ends with it, and gives its place back.
func testPastDeadline(t *testing.T, week weekStore) {
	s := serve(t, func(s *Server) { s.Keeping(endless{week}) })
	v := &viewer{server: s.server, who: &connected{}}
	if err := s.server.copies.Take(""); err != nil {
		t.Fatal(err)
	}
	from := v.copied(week.end.Add(-time.Hour), week.end)
	made := page.NewPast(week.end.Add(-time.Hour), time.Second, 3600, 10, v.who.sees)
	blocks := 0
	reader := store.NewReader(readerFunc(func(text []byte) (int, error) {
		if blocks++; blocks > 100 {
			_ = from.Close()
		}
		return from.Read(text)
	}))
	read := 0
	err := reader.Each(t.Context(), func(item *store.Item) {
		made.Add(item)
		read++
	})
	if !errors.Is(err, io.ErrClosedPipe) || read == 0 {
		t.Errorf("got %v after %d blocks, want a part, and that the time is over", err, read)
	}
	for s.server.copies.Taken() > 0 { // until copying has ended
		time.Sleep(time.Millisecond)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(text []byte) (int, error) { return f(text) }

// As many requests as there are places read the past. Others wait.
func testPastBusy(t *testing.T, week weekStore) {
	s, end := week.service(t), week.end
	for range maxListings {
		if err := s.server.copies.Take(""); err != nil {
			t.Fatal(err)
		}
	}
	path := fmt.Sprintf("/v1/page?from=%d&to=%d", end.Add(-5*time.Hour).Unix(), end.Add(-4*time.Hour).Unix())
	if status, _, body := s.do(t, http.MethodGet, path, ""); status != http.StatusServiceUnavailable {
		t.Errorf("got %d %s, want 503", status, body)
	}
	status, _, body := s.do(t, http.MethodGet, "/v1/page", "")
	if status != http.StatusOK || !strings.Contains(body, "too many others read the history") {
		t.Errorf("the present: got %d %s, want it with a problem", status, body)
	}
}

package export

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/stallspan/stallspan/internal/emit/queue"
)

func TestClassifyGRPC(t *testing.T) {
	with := func(code codes.Code, wait time.Duration) error {
		s, err := status.New(code, "why").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
		if err != nil {
			t.Fatal(err)
		}
		return s.Err()
	}
	for _, test := range []struct {
		err     error
		refused bool
		after   time.Duration
	}{
		{err: nil},
		{err: errors.New("anything")},
		{err: context.Canceled},
		{err: context.DeadlineExceeded},
		{err: status.Error(codes.Unavailable, "down")},
		{err: status.Error(codes.DeadlineExceeded, "slow")},
		{err: with(codes.Unavailable, 7*time.Second), after: 7 * time.Second},
		{err: with(codes.ResourceExhausted, time.Minute), after: time.Minute},
		{err: status.Error(codes.ResourceExhausted, "larger than max"), refused: true},
		{err: status.Error(codes.InvalidArgument, "no"), refused: true},
		{err: status.Error(codes.Unauthenticated, "no"), refused: true},
		{err: status.Error(codes.Unimplemented, "no"), refused: true},
		{err: status.Error(codes.Internal, "not UTF-8"), refused: true},
	} {
		err := test.err
		if err != nil {
			err = fmt.Errorf("traces export: %w", err)
		}
		checkClass(t, fmt.Sprint(test.err), classifyGRPC(err), test.refused, test.after)
	}
}

func checkClass(t *testing.T, name string, err error, wantRefused bool, wantAfter time.Duration) {
	t.Helper()
	var refusal *queue.Refusal
	if got := errors.As(err, &refusal); got != wantRefused {
		t.Errorf("%s: got refused %v, want %v", name, got, wantRefused)
	}
	var after time.Duration
	var throttle *queue.Throttle
	if errors.As(err, &throttle) {
		after = throttle.After
	}
	if after != wantAfter {
		t.Errorf("%s: got a throttle of %v, want %v", name, after, wantAfter)
	}
}

func TestClassifyHTTP(t *testing.T) {
	for _, test := range []struct {
		status  int
		after   string
		refused bool
		want    time.Duration
	}{
		{400, "", true, 0}, {401, "", true, 0}, {404, "5", true, 0}, {413, "", true, 0}, {500, "", true, 0},
		{429, "", false, 0}, {429, "30", false, 30 * time.Second}, {503, "-1", false, 0}, {502, "soon", false, 0},
		{504, "Mon, 02 Jan 2006 15:04:05 GMT", false, 0},
	} {
		response := &http.Response{StatusCode: test.status, Status: fmt.Sprint(test.status), Header: http.Header{}}
		response.Header.Set("Retry-After", test.after)
		checkClass(t, fmt.Sprint(test.status, test.after), classifyHTTP(response, ""), test.refused, test.want)
	}
	now := time.Date(2026, 11, 3, 10, 0, 0, 0, time.UTC)
	if after, ok := retryAfter("Tue, 03 Nov 2026 10:00:20 GMT", now); !ok || after != 20*time.Second {
		t.Errorf("retryAfter of a date: got %v, %v, want 20 s", after, ok)
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "0", "120", "99999999999", "-3", "Tue, 03 Nov 2026 10:00:20 GMT", "soon"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if after, ok := retryAfter(header, time.Unix(0, 0)); after < 0 || !ok && after != 0 {
			t.Errorf("retryAfter(%q): got %v, %v, want no negative duration, and 0 without a value", header, after, ok)
		}
	})
}

func FuzzReadable(f *testing.F) {
	f.Add([]byte("\n\x05hello\xff\r\n"), "OTLP partial success: x (3 spans rejected)")
	f.Add([]byte("<html>\n<b>no</b>"), "OTLP partial success: (1 spans rejected) (-9 spans rejected)")
	f.Add([]byte{0, 0x7f, 0xc3}, "OTLP partial success: a\nb (99999999999999999999 spans rejected)")
	f.Fuzz(func(t *testing.T, body []byte, text string) {
		if got := readable(body); !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\x00") || len(got) > 3*len(body) {
			t.Errorf("readable(%q): got %q, want one short line of UTF-8", body, got)
		}
		if n, found := rejected(errors.New(text)); n < 0 || !found && n != 0 {
			t.Errorf("rejected(%q): got %d, %v, want no negative number, and 0 without a match", text, n, found)
		}
		if line := oneLine(errors.New(text)); !utf8.ValidString(line) || strings.Contains(line, "\n") ||
			len(line) > maxErrorBytes+3 {
			t.Errorf("oneLine(%q): got %q, want one short line of UTF-8", text, line)
		}
	})
}

func TestLost(t *testing.T) {
	down, bad := errors.New("down\n now"), errors.New("bad")
	for _, test := range []struct {
		stats Stats
		want  string
	}{
		{Stats{}, ""},
		{Stats{Spans: queue.Counts{Sent: 5, LastError: down}}, ""},
		{Stats{Spans: queue.Counts{Sent: 5, Dropped: 1, Refused: 2, Waiting: 3, LastError: down}},
			"lost on the way to the OTLP backend: 6 of 11 spans (3 unsent at the end, 1 dropped from a full queue, 2 refused): down now"},
		{Stats{Spans: queue.Counts{Waiting: 3}},
			"lost on the way to the OTLP backend: 3 of 3 spans (unsent at the end); check that it answers at OTEL_EXPORTER_OTLP_ENDPOINT"},
		{Stats{Spans: queue.Counts{Sent: 3, LastError: down}, MetricError: bad},
			"lost on the way to the OTLP backend: the last metrics; check that it answers at OTEL_EXPORTER_OTLP_ENDPOINT: bad"},
		{Stats{Spans: queue.Counts{Waiting: 3, LastError: down}, MetricError: bad},
			"lost on the way to the OTLP backend: 3 of 3 spans (unsent at the end) and the last metrics; check that it answers at OTEL_EXPORTER_OTLP_ENDPOINT: down now"},
	} {
		if got := test.stats.Lost(); got != test.want {
			t.Errorf("Lost: got %q, want %q", got, test.want)
		}
	}
}

// No message about an endpoint that cannot be used shows its password.
func TestNoPasswords(t *testing.T) {
	for _, endpoint := range []string{"htp://user:SECRET@host", "user:SECRET@host:4317", "http://user:SECRET@127.0.0.1:1",
		"http://u ser:SECRET@host", "http://user:%zzSECRET@host", "htp://user:SE/CRET@host", "https://user:SECRET@[::1"} {
		for _, protocol := range []string{protocolGRPC, protocolHTTP} {
			environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol})
			var mu sync.Mutex
			var said []string
			say := func(line string) {
				mu.Lock()
				defer mu.Unlock()
				said = append(said, line)
			}
			e, err := New(t.Context(), Options{Logs: true, Report: say,
				Collect: func() metricdata.ScopeMetrics { return someMetrics("", time.Now()) }})
			if err != nil {
				say(err.Error())
			} else {
				_ = e.Flush(within(t, 300*time.Millisecond))
				if failing := e.Failing(); failing != nil {
					say(failing.Error())
				}
				say(e.Close(within(t, 100*time.Millisecond)).Lost())
			}
			mu.Lock()
			if text := strings.Join(said, "\n"); strings.Contains(text, "CRET") || text == "" {
				t.Errorf("%s over %s: got %q, want a message without the password", endpoint, protocol, text)
			}
			mu.Unlock()
		}
	}
}

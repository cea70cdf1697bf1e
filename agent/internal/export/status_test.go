package export

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

func TestGRPCAnswer(t *testing.T) {
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
		checkAnswer(t, fmt.Sprint(test.err), grpcAnswer(err), test.refused, test.after)
	}
}

func checkAnswer(t *testing.T, name string, err error, wantRefused bool, wantAfter time.Duration) {
	t.Helper()
	var no *refusal
	if errors.As(err, &no) != wantRefused {
		t.Errorf("%s: refused is %v", name, !wantRefused)
	}
	var wait throttle
	var asked *throttle
	if errors.As(err, &asked) {
		wait = *asked
	}
	if wait.after != wantAfter {
		t.Errorf("%s: after %v, want %v", name, wait.after, wantAfter)
	}
}

func TestHTTPAnswer(t *testing.T) {
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
		checkAnswer(t, fmt.Sprint(test.status, test.after), httpAnswer(response, ""), test.refused, test.want)
	}
	now := time.Date(2026, 11, 3, 10, 0, 0, 0, time.UTC)
	if after, ok := retryAfter("Tue, 03 Nov 2026 10:00:20 GMT", now); !ok || after != 20*time.Second {
		t.Errorf("after %v", after)
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "0", "120", "99999999999", "-3", "Tue, 03 Nov 2026 10:00:20 GMT", "soon"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if after, ok := retryAfter(header, time.Unix(0, 0)); after < 0 || !ok && after != 0 {
			t.Errorf("%q is %v", header, after)
		}
	})
}

func FuzzExplanation(f *testing.F) {
	f.Add([]byte("\n\x05hello\xff\r\n"), "OTLP partial success: x (3 spans rejected)")
	f.Add([]byte("<html>\n<b>no</b>"), "OTLP partial success: (1 spans rejected) (-9 spans rejected)")
	f.Add([]byte{0, 0x7f, 0xc3}, "OTLP partial success: a\nb (99999999999999999999 spans rejected)")
	f.Fuzz(func(t *testing.T, body []byte, text string) {
		if got := explanation(body); !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\x00") || len(got) > 3*len(body) {
			t.Errorf("%q", got)
		}
		if n, found := partial(errors.New(text)); n < 0 || !found && n != 0 {
			t.Errorf("%q: %d refused", text, n)
		}
		if line := oneLine(errors.New(text)); !utf8.ValidString(line) || strings.Contains(line, "\n") || len(line) > longestError+3 {
			t.Errorf("%q", line)
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
		{Stats{SpansExported: 5, SpanError: down}, ""},
		{Stats{SpansExported: 5, SpansDropped: 1, SpansRefused: 2, SpansUnsent: 3, SpanError: down},
			"lost on the way to the OTLP backend: 6 of 11 spans (3 unsent at the end, 1 pushed out of a full queue, 2 refused): down now"},
		{Stats{SpansUnsent: 3}, "lost on the way to the OTLP backend: 3 of 3 spans (unsent at the end); check that it answers at OTEL_EXPORTER_OTLP_ENDPOINT"},
		{Stats{SpansExported: 3, SpanError: down, MetricError: bad}, "lost on the way to the OTLP backend: the last metrics; check that it answers at OTEL_EXPORTER_OTLP_ENDPOINT: bad"},
		{Stats{SpansUnsent: 3, SpanError: down, MetricError: bad},
			"lost on the way to the OTLP backend: 3 of 3 spans (unsent at the end) and the last metrics; check that it answers at OTEL_EXPORTER_OTLP_ENDPOINT: down now"},
	} {
		if got := test.stats.Lost(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

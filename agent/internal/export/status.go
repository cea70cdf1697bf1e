package export

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stallspan/stallspan/internal/emit/queue"
)

// partialSuccess matches the error that the SDK's exporters make of a partial success. Its type is internal to them.
var partialSuccess = regexp.MustCompile(`OTLP partial success: (?s:.*)\((-?\d+) [a-z ]+ rejected\)`)

// rejected returns how many items of an accepted batch were rejected.
func rejected(err error) (n int, found bool) {
	match := partialSuccess.FindStringSubmatch(err.Error())
	if match == nil {
		return 0, false
	}
	n, _ = strconv.Atoi(match[1]) // a number out of range becomes the largest int
	return max(0, n), true
}

// classifyGRPC makes a *queue.Refusal of an error that a retry does not change, and a *queue.Throttle of one with a
// delay, by the table in the specification of OTLP/gRPC ("Failures").
func classifyGRPC(err error) error {
	if err == nil {
		return nil
	}
	if n, found := rejected(err); found {
		return &queue.Refusal{Items: n, Err: err}
	}
	s, found := status.FromError(err)
	if !found || errors.Is(err, context.Canceled) {
		return err
	}
	delay, hasDelay := retryDelay(s)
	switch s.Code() {
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
	case codes.ResourceExhausted:
		if !hasDelay { // also the code for a batch that is too large
			return &queue.Refusal{Items: -1, Err: err}
		}
	default:
		return &queue.Refusal{Items: -1, Err: err}
	}
	if hasDelay {
		return &queue.Throttle{After: delay, Err: err}
	}
	return err
}

func retryDelay(s *status.Status) (time.Duration, bool) {
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration(), true
		}
	}
	return 0, false
}

// classifyHTTP does the same for an OTLP/HTTP response that is not a success. body may be empty.
func classifyHTTP(response *http.Response, body string) error {
	err := fmt.Errorf("%s", response.Status)
	if body != "" {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		return &queue.Refusal{Items: -1, Err: err}
	}
	if after, ok := retryAfter(response.Header.Get("Retry-After"), time.Now()); ok {
		return &queue.Throttle{After: after, Err: err}
	}
	return err
}

// retryAfter parses a Retry-After header: seconds or a date.
func retryAfter(header string, now time.Time) (time.Duration, bool) {
	if seconds, err := strconv.ParseUint(header, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	if date, err := http.ParseTime(header); err == nil {
		return max(0, date.Sub(now)), true
	}
	return 0, false
}

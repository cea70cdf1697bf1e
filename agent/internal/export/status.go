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
)

// refusal is an answer that asking again does not change: the batch has arrived and some or all of it is unwanted.
// Any other error of an export may be gone the next time.
type refusal struct {
	spans int // refused; all of the batch when negative
	err   error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// throttle is an answer that says when to ask again.
type throttle struct {
	after time.Duration
	err   error
}

func (t *throttle) Error() string { return t.err.Error() }
func (t *throttle) Unwrap() error { return t.err }

// partialSuccess is how the exporters put the answer "taken, but for N": their type for it is internal to them.
var partialSuccess = regexp.MustCompile(`OTLP partial success: (?s:.*)\((-?\d+) [a-z ]+ rejected\)`)

// partial finds how many spans of a batch that was taken were refused.
func partial(err error) (refused int, found bool) {
	match := partialSuccess.FindStringSubmatch(err.Error())
	if match == nil {
		return 0, false
	}
	refused, _ = strconv.Atoi(match[1]) // a number out of range becomes the largest there is
	return max(0, refused), true
}

// grpcAnswer tells refusals from failures that may pass, by the table in OTLP's specification ("Failures" of
// OTLP/gRPC).
func grpcAnswer(err error) error {
	if err == nil {
		return nil
	}
	if refused, found := partial(err); found {
		return &refusal{refused, err}
	}
	answer, found := status.FromError(err)
	if !found || errors.Is(err, context.Canceled) {
		return err
	}
	wait, told := retryDelay(answer)
	switch answer.Code() {
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
	case codes.ResourceExhausted:
		if !told { // a batch that is too large says so with this code
			return &refusal{-1, err}
		}
	default:
		return &refusal{-1, err}
	}
	if told {
		return &throttle{wait, err}
	}
	return err
}

func retryDelay(answer *status.Status) (time.Duration, bool) {
	for _, detail := range answer.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration(), true
		}
	}
	return 0, false
}

// httpAnswer does the same for OTLP/HTTP. A body is a word of explanation, or empty.
func httpAnswer(response *http.Response, body string) error {
	err := fmt.Errorf("%s", response.Status)
	if body != "" {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		return &refusal{-1, err}
	}
	if after, ok := retryAfter(response.Header.Get("Retry-After"), time.Now()); ok {
		return &throttle{after, err}
	}
	return err
}

// retryAfter reads a header that holds seconds or a date.
func retryAfter(header string, now time.Time) (time.Duration, bool) {
	if seconds, err := strconv.ParseUint(header, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	if date, err := http.ParseTime(header); err == nil {
		return max(0, date.Sub(now)), true
	}
	return 0, false
}

package export

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
)

// maxReports bounds the lines that a reporter remembers and passes on.
const maxReports = 100

// reporter passes the errors of the OpenTelemetry SDK on as lines, each line once. The SDK reports a variable that it
// cannot parse, and continues with a default.
type reporter struct {
	report func(line string)

	mu   sync.Mutex
	done map[string]bool
}

// reportErrors makes report the receiver of all errors of the SDK in this process. Without it they are dropped. The
// result reports a line of our own, once.
func reportErrors(report func(line string)) (line func(string)) {
	if report == nil {
		report = func(string) {}
	}
	r := &reporter{report: report, done: map[string]bool{}}
	otel.SetErrorHandler(r)
	otel.SetLogger(logr.New(sink{r}))
	return r.once
}

// Handle implements otel.ErrorHandler.
func (r *reporter) Handle(err error) {
	r.once("OpenTelemetry: " + oneLine(withoutSecrets(err)))
}

func (r *reporter) once(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.done[line] && len(r.done) < maxReports {
		r.done[line] = true
		r.report(line)
	}
}

// withoutSecrets removes the value of a variable with headers, which usually hold a key.
func withoutSecrets(err error) error {
	err = errors.New(withoutUser(err.Error()))
	if text, _, found := strings.Cut(err.Error(), "_HEADERS value "); found {
		return fmt.Errorf("%s_HEADERS is not of the form name=value,name=value", strings.TrimPrefix(text, "invalid "))
	}
	return err
}

// userInfo is what stands before the host of a URL, or of an address that has no scheme.
var userInfo = regexp.MustCompile(`(://)[^\s"']*@|[^\s"'/@=,]+@`)

// withoutUser replaces users and passwords in URLs.
func withoutUser(text string) string { return userInfo.ReplaceAllString(text, "${1}xxxxx@") }

// sink is the logger of the SDK. It passes errors on and drops the rest, and the values that may hold secrets.
type sink struct{ *reporter }

func (s sink) Init(logr.RuntimeInfo)                 {}
func (s sink) Enabled(int) bool                      { return false }
func (s sink) Info(int, string, ...any)              {}
func (s sink) Error(err error, msg string, _ ...any) { s.Handle(fmt.Errorf("%s: %w", msg, err)) }
func (s sink) WithValues(...any) logr.LogSink        { return s }
func (s sink) WithName(string) logr.LogSink          { return s }

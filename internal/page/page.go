// Package page writes one HTML file that shows where the time of a run went: the answer, the ledger, a timeline of
// windows above curves of the devices, and a table. The file needs no network and no other file.
package page

import (
	"cmp"
	"crypto/sha256"
	_ "embed" // for the script and the style
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
)

//go:generate sh generate.sh

// Version is the version of the data in the page.
const Version = 1

// Data is what the page shows. Times are in seconds after Origin.
type Data struct {
	Version  int       `json:"version"`
	Title    string    `json:"title"`
	Facts    []Fact    `json:"facts,omitempty"`
	Origin   time.Time `json:"origin"`
	Duration float64   `json:"duration_s"`
	Run      *Window   `json:"run,omitempty"` // nil if the windows have nothing in common
	Windows  []Window  `json:"windows"`
	Problems []string  `json:"problems,omitempty"`
	Curves   Curves    `json:"curves"`
}

// Fact is a line of the page's head, such as the host.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Window is a report with its place on the time axis, which is that of the monotonic clock.
type Window struct {
	Running bool            `json:"running,omitempty"`
	Start   float64         `json:"start_s"`
	Label   string          `json:"label"`
	Report  *explain.Report `json:"report"`
}

// NewWindow returns the window of a report. origin is the start of the time axis on the monotonic clock.
func NewWindow(r *window.Report, origin time.Duration) Window {
	out := explain.NewReport(r)
	return Window{Start: (r.Start.Mono - origin).Seconds(), Label: out.Label(), Report: out}
}

//go:embed dist/page.js
var script string

//go:embed dist/live.js
var liveScript string

//go:embed dist/page.css
var style string

// head begins a file: policy, title, style.
const head = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%s - Stallspan</title>
<style>%s</style>
</head>
<body>
`

// document is the file around the data, with attributes of the data, data, script after the head. The policy allows
// this script and this style alone. html/template calls methods by name, so with it the linker would keep every
// exported method of every type.
const document = head + `<noscript>This page draws with a script, which your browser does not run. The data is in its source.</noscript>
<main id="page"></main>
<script type="application/json" id="data"%s>%s</script>
<script>%s</script>
</body>
</html>
`

// Write writes the page. It requests nothing.
func Write(to io.Writer, d *Data) error {
	d.Version = Version
	data, err := json.Marshal(d) // escapes <, > and &, so that no text of a program can end the element
	if err != nil {
		return fmt.Errorf("the page's data: %w", err)
	}
	_, err = fmt.Fprintf(to, document, policy(script, "'none'"), html.EscapeString(d.Title), style, "", data, script)
	return err
}

// WriteStatic writes a page without a script. body is HTML in which all texts are escaped; style attributes do nothing.
func WriteStatic(to io.Writer, title, body string) error {
	policy := "default-src 'none'; style-src 'sha256-" + hash(style) + "'; base-uri 'none'; form-action 'none'"
	_, err := fmt.Fprintf(to, staticDocument, policy, html.EscapeString(title), style, body)
	return err
}

const staticDocument = head + `<main id="page">
%s</main>
</body>
</html>
`

// LivePath is where a page of WriteLive asks for its data.
const LivePath = "/v1/page"

// WriteLive writes a page without data. It asks the server that it is from for them.
func WriteLive(to io.Writer, title string) error {
	_, err := fmt.Fprintf(to, document, LivePolicy(), html.EscapeString(title), style, ` data-live="`+LivePath+`"`, "", liveScript)
	return err
}

// LivePolicy is the content security policy of a page of WriteLive.
func LivePolicy() string { return policy(liveScript, "'self'") }

// policy is a content security policy. connections says where the script may send requests.
func policy(script, connections string) string {
	return fmt.Sprintf("default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; connect-src %s; "+
		"img-src data:; base-uri 'none'; form-action 'none'", hash(script), hash(style), connections)
}

// hash is how a policy names an inline script or style.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// JobsPath is where a page of WriteLive asks for the jobs of GPUs.
const JobsPath = "/v1/jobs"

// Live is a page's data with what a page of WriteLive needs to go on.
type Live struct {
	Data
	Now  float64 `json:"now_s"`  // end of the curves, after the origin
	Span float64 `json:"span_s"` // that was asked for; the curves may be shorter, and grow to it

	Oldest float64 `json:"oldest_s"` // the first time that may be known
	Latest float64 `json:"latest_s"` // the last one, when the server answered

	Events []Event `json:"events"` // by time; null if the server has none
	Last   *Last   `json:"last,omitempty"`
}

// Last is the newest window that ended before the time that a page shows, where none ended in it.
type Last struct {
	Label string  `json:"label"`
	End   float64 `json:"end_s"` // after the origin, so negative
}

// Update is what is new since a Live or the Update before.
type Update struct {
	Now     float64  `json:"now_s"`
	Curves  Curves   `json:"curves"`
	Windows []Window `json:"windows"` // that run, or have ended since; each replaces the one with its id
	Events  []Event  `json:"events"`  // since the data before
}

// Bounds of the events of a page: the newest.
const (
	MaxEvents     = 200 // of those in memory
	MaxPastEvents = 500 // with those of the store
)

// Event is an event with its place on the time axis.
type Event struct {
	ID       string  `json:"id"`
	At       float64 `json:"at_s"` // when the condition began or ended, after the origin
	Name     string  `json:"name"`
	Severity string  `json:"severity"`           // "INFO", "WARN", "ERROR"
	Resolved bool    `json:"resolved,omitempty"` // the condition has ended
	Subject  string  `json:"subject,omitempty"`  // "GPU 0", "sda", "epoch 3"
	Text     string  `json:"text"`               // one sentence
}

// NewEvent returns the event of a line of GET /v1/events, and false if the line has no event that this version knows.
// origin is the start of the time axis. gpu names a GPU by its ID.
func NewEvent(line []byte, origin time.Time, gpu func(id string) string) (Event, bool) {
	var j emit.EventJSON
	if json.Unmarshal(line, &j) != nil || j.Name == "" {
		return Event{}, false // of a later version
	}
	return Event{
		ID: j.ID, At: j.Time.Sub(origin).Seconds(), Name: j.Name, Severity: j.Severity, Resolved: j.Resolved,
		Subject: subjectOf(j.Attributes, gpu), Text: j.Body,
	}, true
}

// subjectOf is what an event is about, in the words of the page's curves and windows; "" if it does not say.
func subjectOf(attributes map[string]any, gpu func(id string) string) string {
	text := func(key string) string {
		value, _ := attributes[key].(string)
		return value
	}
	if disk := text(string(semconv.SystemDeviceNameKey)); disk != "" {
		return disk
	}
	if id := text(string(semconv.HwIDKey)); id != "" {
		return gpu(id)
	}
	if part := text(string(semconv.AgentPartKey)); part != "" {
		return part
	}
	kind := window.Kind(text(string(semconv.WindowKindKey)))
	if !kind.Valid() {
		return ""
	}
	var epoch *int
	if number, ok := attributes[string(semconv.TrainingEpochIndexKey)].(float64); ok { // as any number in JSON
		whole := int(number)
		epoch = &whole
	}
	return explain.NameOf(kind, text(string(semconv.WindowNameKey)), text(string(semconv.ModelNameKey)), epoch)
}

// Newest sorts events by time, and returns so many of the newest at most, and how many older ones there are.
func Newest(events []Event, most int) (kept []Event, left int) {
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	left = max(0, len(events)-most)
	return events[left:], left
}

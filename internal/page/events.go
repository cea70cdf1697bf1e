package page

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
)

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

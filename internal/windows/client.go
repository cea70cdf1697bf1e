package windows

import (
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/monitor/sampling"
	"github.com/stallspan/stallspan/internal/window"
)

// StartSpan starts a span, as a child of parent if that is valid, else as the root of a new trace. It is called
// concurrently.
type StartSpan func(name string, start time.Time, parent trace.SpanContext) Span

// Span is the span of an open window. Its methods are called concurrently, and either End or Drop once.
type Span interface {
	// End completes the span and its children, and exports them. It must not block: the goroutine may be the one that
	// takes samples.
	End(emit.Span)
	// Drop discards the span.
	Drop()
	// SpanContext returns the context of the span, for its children.
	SpanContext() trace.SpanContext
	// Exemplar returns the context of a span that will be exported, and else an invalid one: a metric must not refer to
	// a span that no backend has.
	Exemplar() trace.SpanContext
}

// Options configure a Client.
type Options struct {
	Spans     StartSpan
	Show      config.Spans
	Durations *emit.Durations
	Run       string               // the run of all windows; "" keeps each window's own
	Job       string               // the job of all windows; "" for the job of each window's process
	Parent    trace.SpanContext    // of windows without another parent
	Reports   func(*window.Report) // receives the report of each window that ends; nil for none
}

// Client begins and ends windows for one output: it gives each a span. It is safe for concurrent use.
type Client struct {
	registry *Registry
	options  Options

	gate   sync.RWMutex // guards closed, and is held while a window of the API begins
	closed bool
}

// NewClient returns a client of the registry.
func (g *Registry) NewClient(o Options) *Client { return &Client{registry: g, options: o} }

var errClosed = errors.New("the monitor is stopping: no window can begin")

// Begin opens a window now, for the API: see api.Windows.
func (c *Client) Begin(w window.Window, parent trace.SpanContext) (id, traceparent string, err error) {
	c.gate.RLock()
	defer c.gate.RUnlock()
	if c.closed {
		return "", "", errClosed
	}
	if err := c.registry.config.Readings.CheckGPUs(w.GPUs); err != nil {
		return "", "", err
	}
	id, span, err := c.Announce(w, c.registry.config.Readings.Now(), parent)
	if err != nil {
		return "", "", err
	}
	return id, emit.Traceparent(span.SpanContext()), nil
}

// Announce opens a window that a program announces or prints, at a moment.
func (c *Client) Announce(w window.Window, at sampling.Moment, parent trace.SpanContext) (string, Span, error) {
	w.Source, w.Job = window.Announced, c.follow(w.PID, w.Client)
	w.ByClient = w.ByClient && w.Job != ""
	return c.BeginAt(w, at, parent)
}

// End closes a window now, for the API: see api.Windows. It returns at once, as EndAt does.
func (c *Client) End(id string, how window.Outcome, attributes map[string]string) (*window.Report, error) {
	now := c.registry.config.Readings.Now()
	c.registry.annotate(id, attributes)
	return c.EndAt(id, now, how)
}

// Close refuses windows that begin through the API from now on. Windows that are open may end.
func (c *Client) Close() {
	c.leaveDetected()
	c.gate.Lock()
	defer c.gate.Unlock()
	c.closed = true
}

// follow follows the process of a window, and returns its job. It returns "" if the process has ended, or if too many
// are followed, in all or for this client: the ledger of the window is then about the whole machine.
func (c *Client) follow(pid int, client string) (job string) {
	if c.options.Job != "" || pid == 0 {
		return ""
	}
	jobs := c.registry.config.Jobs
	job = jobs.JobOf(pid)
	if job == "" || jobs.FollowFor(client, job, pid) != nil {
		return ""
	}
	return job
}

// BeginAt opens a window at a moment. If parent is invalid, Options.Parent is used.
func (c *Client) BeginAt(w window.Window, at sampling.Moment, parent trace.SpanContext) (string, Span, error) {
	if !parent.IsValid() {
		parent = c.options.Parent
	}
	o := &openWindow{Window: w, client: c, job: w.Job}
	if c.options.Run != "" {
		o.Run = c.options.Run
	}
	if c.options.Job != "" {
		o.Job = c.options.Job
	}
	o.ID = NewID()
	o.span = c.options.Spans(emit.SpanName(&o.Window, c.options.Show), at.At.Wall, parent)
	if err := c.registry.begin(o, at); err != nil {
		o.drop()
		return "", nil, err
	}
	return o.ID, o.span, nil
}

// EndAt closes a window at a moment, with how it ended. It returns at once, with an estimate if samples of a GPU are
// missing: see Registry.EndSoon.
func (c *Client) EndAt(id string, at sampling.Moment, how window.Outcome) (*window.Report, error) {
	return c.registry.EndSoon(id, at, how)
}

// EndAll closes the open windows of this client as unfinished, with what ended them. It returns when all its windows
// have their final reports.
func (c *Client) EndAll(at sampling.Moment, by window.Outcome) {
	by.Unfinished = true
	for _, id := range c.registry.openOf(c) {
		_, _ = c.registry.EndSoon(id, at, by) // ErrUnknown: it ended meanwhile
	}
	c.registry.awaitReports(true)
}

// Open returns the number of open windows of this client.
func (c *Client) Open() int { return len(c.registry.openOf(c)) }

// end passes a report on: to the metrics, the span and the receiver of reports.
func (o *openWindow) end(r *window.Report) {
	c := o.client
	if c == nil {
		return
	}
	c.options.Durations.Add(r, o.span.Exemplar())
	if c.options.Reports != nil {
		c.options.Reports(r)
	}
	span := emit.WindowSpan(r, c.options.Show)
	if o.link.IsValid() {
		span.Links = []trace.SpanContext{o.link}
	}
	o.span.End(span)
	o.unfollow()
}

func (o *openWindow) drop() {
	if o.client != nil {
		o.span.Drop()
		o.unfollow()
	}
}

func (o *openWindow) unfollow() {
	if o.job != "" {
		o.client.registry.config.Jobs.Unfollow(o.job)
	}
}

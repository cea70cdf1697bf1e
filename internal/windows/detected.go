package windows

import (
	"cmp"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/source/modelfile"
	"github.com/stallspan/stallspan/internal/trust"
	"github.com/stallspan/stallspan/internal/window"
)

// maxDetected bounds the detected windows of an hour: see trust.Rate.
const maxDetected = 480

// maxUnread is the share of a detected window in which its job may not have been followed yet. That time is divided as
// the rest is. If it is more, the report is about the whole machine.
const maxUnread = 0.25

// detected is what a Registry has for windows that detectors find.
type detected struct {
	rate *trust.Rate
	left *atomic.Uint64

	mu     sync.Mutex
	takers []*Client  // the spans are those of the first one
	ranks  []rankLoad // the newest last
}

// maxRanks bounds the windows that are remembered for those of other ranks.
const maxRanks = 256

// rankLoad is a detected load or checkpoint of one of several jobs with the same parent.
type rankLoad struct {
	kind        window.Kind
	client, job string
	parent      int
	folder      string
	model       string
	start, end  time.Duration
}

// rankLoadOf returns what is remembered of a window of a client; ok is false for one that no other rank does a part of.
func rankLoadOf(f *detect.Found, client string) (one rankLoad, ok bool) {
	if f.Kind != window.ModelLoad && f.Kind != window.Checkpoint || f.Parent <= 1 || f.Path == "" {
		return one, false
	}
	return rankLoad{f.Kind, client, f.Job, f.Parent, folderOf(f.Path), f.Model, f.Start, f.End}, true
}

// ofRank reports whether a load or checkpoint is the part of it that another rank of the same program does, and which
// was reported: ranks that hold a GPU each are jobs of their own.
func (d *detected) ofRank(f *detect.Found, client string) bool {
	own, ok := rankLoadOf(f, client)
	if !ok {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.ranks, func(r rankLoad) bool {
		same := r.kind == own.kind && r.client == client && r.job != own.job && r.parent == own.parent &&
			r.folder == own.folder && r.model == own.model
		overlap := min(r.end, own.end) - max(r.start, own.start)
		return same && overlap > (max(r.end, own.end)-min(r.start, own.start))/2
	})
}

// remember keeps a window that is reported, for those of other ranks.
func (d *detected) remember(f *detect.Found, client string) {
	own, ok := rankLoadOf(f, client)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.ranks) == maxRanks {
		d.ranks = slices.Delete(d.ranks, 0, 1)
	}
	d.ranks = append(d.ranks, own)
}

// folderOf returns the folder of a model by the path of it or of one of its files.
func folderOf(name string) string {
	if modelfile.Is(name) || modelfile.IsBlob(name) {
		return path.Dir(name)
	}
	return name
}

func newDetected() *detected {
	return &detected{rate: trust.NewRate(maxDetected, time.Hour), left: &atomic.Uint64{}}
}

// client returns whose the spans are; nil for no client.
func (d *detected) client() *Client {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.takers) == 0 {
		return nil
	}
	return d.takers[0]
}

// TakeDetected makes the spans of detected windows those of this client, until it is closed. If another client has
// them, this one follows it.
func (c *Client) TakeDetected() {
	d := c.registry.detected
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Contains(d.takers, c) {
		d.takers = append(d.takers, c)
	}
}

// leaveDetected ends what TakeDetected began.
func (c *Client) leaveDetected() {
	d := c.registry.detected
	d.mu.Lock()
	defer d.mu.Unlock()
	d.takers = slices.DeleteFunc(d.takers, func(x *Client) bool { return x == c })
}

// HasDetectedAlone reports whether no client takes detected windows once this one is closed.
func (c *Client) HasDetectedAlone() bool {
	d := c.registry.detected
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.takers) == 1 && d.takers[0] == c
}

// TakesDetected reports whether a client takes detected windows.
func (g *Registry) TakesDetected() bool { return g.detected.client() != nil }

// DetectedLeft returns how many detected windows were left out, because there were too many in an hour.
func (g *Registry) DetectedLeft() uint64 { return g.detected.left.Load() }

// Detected reports on windows that detectors found. It leaves out those that were announced, too.
func (g *Registry) Detected(all []detect.Found) {
	for i := range all {
		g.detect(&all[i])
	}
}

func (g *Registry) detect(f *detect.Found) {
	if !f.Kind.Valid() || f.End <= f.Start {
		return
	}
	since, name, followed := g.config.Readings.Followed(f.Job)
	client := f.Owner
	if name.ID != "" {
		client = name.Client
	}
	if followed && g.announced(f, client, g.config.Readings.Processes(f.Job)) {
		return
	}
	if followed && g.detected.ofRank(f, client) {
		return
	}
	// What is known of a job has gone with it: a report would be about the whole machine.
	// Jobs of this program's own user have a share each.
	if !followed || g.detected.rate.Take(cmp.Or(client, f.Job), f.End) != nil {
		g.detected.left.Add(1)
		return
	}
	o := &openWindow{Window: g.describe(f, client, since), client: g.detected.client()}
	start := g.config.Readings.Past(o.Start.Mono)
	if value, known := g.config.Jobs.Environment(f.PID, "TRACEPARENT"); known {
		o.link, _ = emit.ParseTraceparent(value)
	}
	if o.client != nil {
		options := &o.client.options
		o.span = options.Spans(emit.SpanName(&o.Window, options.Show), start.At.Wall, options.Parent)
	}
	g.mu.Lock()
	if err := g.all.add(o); err != nil {
		g.mu.Unlock()
		o.drop()
		g.detected.left.Add(1)
		return
	}
	g.config.Readings.BeginWindow(&o.Window, start)
	g.mu.Unlock()
	g.detected.remember(f, client)
	how := window.Outcome{Unfinished: f.Unfinished}
	_, _ = g.EndSoon(o.ID, g.config.Readings.Past(f.End), how) // ErrUnknown: it was ended meanwhile
}

// describe returns the window of a client that was found, with its start. Its job is followed since a moment.
func (g *Registry) describe(f *detect.Found, client string, since time.Duration) window.Window {
	w := window.Window{
		ID: NewID(), Client: client, Kind: f.Kind, Name: f.Name, Model: f.Model, Path: f.Path,
		Source: window.Detected, Job: f.Job, PID: f.PID, Confidence: f.Confidence,
		Open: f.StartOpen + f.EndOpen, StartOpen: f.StartOpen,
	}
	w.Start.Mono = f.Start
	unread := since - f.Start
	switch {
	case unread.Seconds() > maxUnread*(f.End-f.Start).Seconds():
		w.Job = ""
	case unread > 0:
		w.Unread = unread
	}
	for _, p := range f.Phases {
		from, to := max(p.Start, w.Start.Mono), min(p.End, f.End)
		if to > from {
			w.Phases = append(w.Phases, window.Phase{Name: p.Name, Start: from, End: to, Bytes: p.Bytes})
		}
	}
	if f.Path != "" {
		w.Seen = g.config.Probe.Path(&w)
		w.Seen.Cached, w.Seen.HasCached = 0, false // it has been read meanwhile
	}
	w.Seen.Size = 0
	if f.Kind == window.ModelLoad {
		w.Seen.Size = f.Bytes
	}
	return w
}

// announced reports whether a window of the same kind is known that overlaps with a detected one, and may be of its
// job: announced, from the output of its program, or reported by another program of this machine.
func (g *Registry) announced(f *detect.Found, client string, processes []int) bool {
	same := func(w *window.Window, end time.Duration) bool {
		if w.Kind != f.Kind || w.Source == window.Detected {
			return false
		}
		overlap := min(end, f.End) - max(w.Start.Mono, f.Start)
		if overlap <= 0 || overlap < min(end-w.Start.Mono, f.End-f.Start)/4 {
			return false
		}
		return w.Job == f.Job || w.Job == "" && w.PID == 0 || slices.Contains(processes, w.PID)
	}
	now := g.config.Readings.Present().Mono
	for _, r := range g.Reported.All(now) {
		if r.Client == client && min(r.End, f.End) > max(r.Start, f.Start) && r.Report.Kind == f.Kind {
			return true
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for w, end := range g.all.windows(f.Start, now) {
		if same(w, end) {
			return true
		}
	}
	return false
}

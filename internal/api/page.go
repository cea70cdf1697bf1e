package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/identity/locate"
	"github.com/stallspan/stallspan/internal/page"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/trust"
	"github.com/stallspan/stallspan/internal/window"
)

// Bounds of the machine's page.
const (
	pageWindows = 500              // reports; the newest
	pagePoints  = 3600             // of a curve
	pageSpan    = 10 * time.Minute // that is shown without a query
	maxPageSpan = 7 * 24 * time.Hour
	pageStep    = time.Second     // between two points at least, and between two updates
	pageDelay   = 2 * time.Second // drivers report a GPU's work about a second later
	maxRunning  = 50              // open windows: the reports of more cost too much once a second
)

// shell sends the page, which asks for its data.
func (s *Server) shell(w http.ResponseWriter, _ *http.Request) error {
	return shell(w, hostname(s.monitor.Root()))
}

// hostname is the name of the machine whose "/" is at root. It is not that of a container.
func hostname(root string) string { return cmp.Or(locate.HostName(root), "this machine") }

// mayView refuses requests of other sites' pages for the page's data. A browser names the site that asks.
func mayView(r *http.Request) bool {
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	if origin != "" {
		at, err := url.Parse(origin)
		if err != nil || at.Host != r.Host {
			return false
		}
	}
	return site == "" || site == "none" || site == "same-origin"
}

// viewer makes the data of one client's page.
type viewer struct {
	server *Server
	who    *connected

	origin    time.Duration // on the monotonic clock; before 0 for a time before the machine's start
	zero      time.Time     // the wall time of the origin, once the first data is made
	end       time.Duration // that was asked for
	span      time.Duration // that was asked for
	step      time.Duration
	oldest    time.Duration // the first time that may be known
	latest    time.Duration // the end of the newest curves
	past      *page.Past    // nil if the history in memory has all
	following bool          // the newest part is shown
	cut       string        // why a part of it is missing
	until     time.Duration // end of the curves that were sent
	ended     map[string]bool
	others    map[string]bool // windows of other programs that were sent
	event     uint64          // number of the next event on the board
}

// timeOf reads what time a page shows: the last seconds, or from a time to another.
func timeOf(r *http.Request) (span time.Duration, from, to time.Time, err error) {
	span = pageSpan
	for key, values := range r.URL.Query() {
		value := values[len(values)-1]
		number, err := strconv.ParseFloat(value, 64)
		if err != nil || !(number > 0 && number < 1e11) {
			return 0, from, to, refuse(http.StatusBadRequest, "%s is a number of seconds, not %s", excerpt(key),
				excerpt(value))
		}
		switch key {
		case "seconds":
			span = max(time.Duration(min(number, maxPageSpan.Seconds())*float64(time.Second)), pageStep)
		case "from":
			from = seconds(number)
		case "to":
			to = seconds(number)
		default:
			return 0, from, to, refuse(http.StatusBadRequest, "unknown parameter %s: use seconds, or from and to",
				excerpt(key))
		}
	}
	if from.IsZero() != to.IsZero() || to.Before(from) || to.Sub(from) > maxPageSpan {
		return 0, from, to, refuse(http.StatusBadRequest, "from and to are seconds since 1970: to is the later one, by "+
			"seven days at most")
	}
	return span, from, to, nil
}

// seconds is a time that is so many seconds after the start of 1970.
func seconds(number float64) time.Time { return time.UnixMicro(int64(number * 1e6)) }

// mono converts a wall time. Before the first reading, it assumes that the clocks kept their offset.
func (s *Server) mono(at time.Time, now sample.Stamp) time.Duration {
	if m, ok := s.monitor.History().Mono(at, now.Mono); ok {
		return m
	}
	return now.Mono - now.Wall.Sub(at)
}

// stepOf is the distance of points in a span: a second for an hour, and whole intervals of the store for more.
func stepOf(span time.Duration) time.Duration {
	if span <= pagePoints*pageStep {
		return pageStep
	}
	return (span/pagePoints + storedStep - 1).Truncate(storedStep)
}

func (s *Server) viewer(r *http.Request) (*viewer, error) {
	span, from, to, err := timeOf(r)
	if err != nil {
		return nil, err
	}
	now := sample.Now()
	v := &viewer{
		server: s, who: peerOfRequest(r.Context()), span: span, ended: map[string]bool{}, others: map[string]bool{},
	}
	v.latest = (now.Mono - pageDelay).Truncate(pageStep)
	v.oldest = v.firstKnown(now)
	v.origin, v.end, v.following = v.latest-span, v.latest, from.IsZero()
	if !v.following {
		v.origin = s.mono(from, now).Truncate(pageStep)
		v.end = min(s.mono(to, now).Truncate(pageStep)+pageStep, v.latest)
		if v.span = v.end - v.origin; v.end <= v.oldest || v.span <= 0 {
			return nil, refuse(http.StatusBadRequest, "the time from %s to %s is not known here", from.Format(time.RFC3339),
				to.Format(time.RFC3339))
		}
	}
	v.origin = max(v.origin, v.oldest)
	v.end = max(v.end, v.origin)
	v.step = stepOf(v.span)
	v.until = v.origin + (v.end - v.origin).Truncate(v.step)
	return v, v.readPast(r.Context(), now)
}

// first is the data of the page as it opens.
func (v *viewer) first() *page.Live {
	now := sample.Now()
	v.zero = now.Wall.Add(v.origin - now.Mono)
	live := &page.Live{Data: page.Data{
		Version: page.Version, Title: hostname(v.server.monitor.Root()),
		Origin: v.zero, Duration: (v.end - v.origin).Seconds(),
	}}
	reports, left := v.windows(v.end)
	live.Windows = append(v.placed(reports), v.reported(v.end)...)
	if v.past != nil {
		older, more := v.past.Windows(v.zero)
		live.Windows, left = v.joined(older, live.Windows), left+more
	}
	if len(live.Windows) == 0 && v.following {
		live.Last = v.last()
	}
	if left > 0 {
		live.Problems = append(live.Problems, fmt.Sprintf("%d older windows are not shown.", left))
	}
	events, problem := v.firstEvents()
	if live.Events = events; problem != "" {
		live.Problems = append(live.Problems, problem)
	}
	if !v.who.privileged() {
		live.Problems = append(live.Problems, "Windows and jobs of other users are not shown.")
	}
	if v.past != nil && v.past.Crowded() {
		live.Problems = append(live.Problems, "The curves of some devices or jobs are not shown: there are too many.")
	}
	if v.cut != "" {
		live.Problems = append(live.Problems, v.cut)
	}
	source := v.source(reports)
	source.Past = v.past
	live.Curves = source.Every(v.step, v.origin, v.origin, v.until)
	live.Span = v.span.Seconds()
	live.Now = (v.until - v.origin).Seconds()
	live.Oldest, live.Latest = (v.oldest - v.origin).Seconds(), (v.latest - v.origin).Seconds()
	v.past = nil // updates are of the present
	var problems []string
	for _, problem := range v.server.monitor.Problems() {
		problems = append(problems, problem.Error())
	}
	live.Problems = append(live.Problems, v.who.problems(problems)...)
	return live
}

// joined are windows of the store, and those in memory: the latter know more. The oldest of too many are left out.
func (v *viewer) joined(stored, held []page.Window) []page.Window {
	known := map[string]bool{}
	for _, w := range held {
		known[w.Report.ID] = true
	}
	stored = slices.DeleteFunc(stored, func(w page.Window) bool {
		return known[w.Report.ID] || w.Start > (v.end-v.origin).Seconds()
	})
	return append(stored, held...) // not nil: it is an array for the page
}

// next is what is new since the last call, or nil if there is no new point.
func (v *viewer) next() *page.Update {
	end := v.until + (sample.Now().Mono - pageDelay - v.until).Truncate(v.step)
	if end <= v.until {
		return nil
	}
	reports, _ := v.windows(end + pageDelay)
	u := &page.Update{Now: (end - v.origin).Seconds(), Windows: append(v.placed(reports), v.reported(end+pageDelay)...)}
	u.Events, _, _ = v.events()
	source := v.source(reports)
	source.Whole = true // the page has drawn the curves so far
	u.Curves = source.Every(v.step, v.origin, v.until, end)
	v.until = end
	return u
}

// windows are those of a client that run, and those that have ended by a time since the last call: the newest
// pageWindows, and how many more there are.
func (v *viewer) windows(end time.Duration) (reports []*window.Report, left int) {
	kept := map[string]bool{}
	for _, r := range v.server.monitor.Windows.Ended() {
		if r.End.Mono < v.origin || r.Start.Mono > end || !v.who.lists(r.Client) {
			continue
		}
		kept[r.ID] = true
		if !v.ended[r.ID] {
			reports = append(reports, r)
		}
	}
	v.ended = kept
	if left = len(reports) - pageWindows; left > 0 {
		reports = reports[left:]
	}
	if v.server.monitor.Windows.Open() <= maxRunning {
		reports = append(reports, slices.DeleteFunc(v.server.monitor.Windows.Running(), func(r *window.Report) bool {
			return !v.who.lists(r.Client) || r.Start.Mono > end
		})...)
	}
	return reports, max(left, 0)
}

// reported are the windows that other programs have measured, as windows returns those of this one.
func (v *viewer) reported(end time.Duration) []page.Window {
	kept := map[string]bool{}
	var placed []page.Window
	for _, m := range v.server.others(v.who) {
		if m.End < v.origin || m.Start > end {
			continue
		}
		kept[m.Report.ID] = true
		if !v.others[m.Report.ID] {
			start := (m.Start - v.origin).Seconds()
			placed = append(placed, page.Window{Start: start, Label: m.Report.Label(), Report: m.Report})
		}
	}
	v.others = kept
	return placed[max(0, len(placed)-pageWindows):]
}

// last is the newest window in memory that ended before the time that is shown; nil for none.
func (v *viewer) last() (newest *page.Last) {
	add := func(label string, end time.Duration) {
		if at := (end - v.origin).Seconds(); at < 0 && (newest == nil || at > newest.End) {
			newest = &page.Last{Label: label, End: at}
		}
	}
	for _, r := range v.server.monitor.Windows.Ended() {
		if v.who.lists(r.Client) {
			add(explain.Label(r.Label(), r.Unfinished), r.End.Mono)
		}
	}
	for _, m := range v.server.others(v.who) {
		add(m.Report.Label(), m.End)
	}
	return newest
}

// placed puts reports on the time axis. Those that have not ended run.
func (v *viewer) placed(reports []*window.Report) []page.Window {
	placed := make([]page.Window, 0, len(reports))
	for _, r := range reports {
		w := page.NewWindow(r, v.origin)
		w.Running = !v.ended[r.ID]
		placed = append(placed, w)
	}
	return placed
}

// source is where the curves come from. A client without privilege sees the machine, and no job but those of its
// windows.
func (v *viewer) source(reports []*window.Report) page.Source {
	from := page.Source{History: v.server.monitor.History(), Ceilings: page.CeilingsOf(reports)}
	if !v.who.privileged() {
		own := map[string]bool{}
		for _, r := range reports {
			own[r.Job] = true
		}
		from.Jobs = func(id string) bool { return own[id] }
	}
	return from
}

// view sends the data of a page once.
func (s *Server) view(w http.ResponseWriter, r *http.Request) error {
	if err := s.patient(w); err != nil {
		return err
	}
	v, err := s.viewer(r)
	if err != nil {
		return err
	}
	release, err := s.acquire(v.who.name)
	if err != nil {
		return err
	}
	defer release()
	reply(w, http.StatusOK, v.first())
	return nil
}

// patient lets a request take longer than to be read: the store may be slow.
func (s *Server) patient(w http.ResponseWriter) error {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Time{}); err != nil { // the request would end after readTimeout
		return err
	}
	return control.SetWriteDeadline(time.Now().Add(s.pastTime + writeTimeout))
}

// watch sends the data of a page, and then what is new, as server-sent events.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) error {
	who := peerOfRequest(r.Context()).name
	if err := s.streams.Take(who); err != nil {
		if errors.Is(err, trust.ErrShare) {
			return refuse(http.StatusServiceUnavailable, "%d of your pages or programs are connected: close one of them",
				s.streams.Each())
		}
		return refuse(http.StatusServiceUnavailable, "%d pages or programs are connected: close one of them", maxStreams)
	}
	defer s.streams.Release(who)
	if err := s.patient(w); err != nil {
		return err
	}
	v, err := s.viewer(r)
	if err != nil {
		return err
	}
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	ticker := time.NewTicker(pageStep)
	defer ticker.Stop()
	event, data := "page", any(v.first())
	for {
		text, err := json.Marshal(data)
		if err != nil {
			return nil // a number that JSON cannot represent; the page connects again
		}
		if s.send(w, control, [][]byte{fmt.Appendf(nil, "event: %s\ndata: %s\n\n", event, text)}) != nil {
			return nil // the client is gone
		}
		for next := (*page.Update)(nil); next == nil; {
			select {
			case <-ticker.C:
				next = v.next()
				event, data = "update", next
			case <-r.Context().Done():
				return nil
			case <-s.ending:
				return nil
			}
		}
	}
}

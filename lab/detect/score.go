//go:build linux

package main

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/stallspan/stallspan/lab/joblog"
	"github.com/stallspan/stallspan/lab/scenario"
)

// Rules of the comparison. They were chosen before any result.
const (
	overlap   = 0.5                    // least share of the union of both that label and window have in common
	shortest  = 500 * time.Millisecond // a label below it is neither required nor wrong
	tolerance = 0.5                    // seconds by which a begin or end may be off, in 90 of 100
)

// kinds are the kinds of windows that have labels.
var kinds = [...]string{"model_load", "checkpoint"}

// result is a case's labels and what was detected.
type result struct {
	Case     string             `json:"case"`
	Seed     uint64             `json:"seed"`
	Disk     string             `json:"disk"`
	Failed   string             `json:"failed,omitempty"` // why it could not run
	Labels   map[string]int     `json:"labels"`           // that count, by kind
	Pairs    []pair             `json:"pairs"`
	Missed   []missed           `json:"missed"`
	False    []falseWindow      `json:"false"`
	Aborted  int                `json:"aborted"`          // loads that were aborted
	Reported int                `json:"aborted_reported"` // of these, reported as unfinished
	Negative map[string]float64 `json:"negative_s"`       // seconds of programs without such windows, by kind
	NegFalse map[string]int     `json:"negative_false"`   // false windows in them
}

// pair is a label with the window that was detected for it.
type pair struct {
	Kind    string   `json:"kind"`
	Name    string   `json:"name"`
	Seconds float64  `json:"seconds"`                // of the label
	Begin   float64  `json:"begin_error_s"`          // detected minus logged
	End     float64  `json:"end_error_s"`            //
	Ledger  *float64 `json:"ledger_error,omitempty"` // of the largest part, as a share of the window
	Label   string   `json:"label,omitempty"`        // the verdict by the log; "" without a clear one
	Verdict string   `json:"verdict,omitempty"`
	Named   float64  `json:"phases_named_s"` // time with a label of a phase, and a detected phase
	Right   float64  `json:"phases_right_s"` // of this, with the same phase
	Phases  float64  `json:"phases_s"`       // time with a label of a phase
}

type missed struct {
	Kind    string  `json:"kind"`
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

type falseWindow struct {
	Kind    string  `json:"kind"`
	Name    string  `json:"name,omitempty"`
	Seconds float64 `json:"seconds"`
	Open    bool    `json:"open,omitempty"`  // it never ended
	Again   bool    `json:"again,omitempty"` // of a label that another window has
}

// interval is a detected window with its times on CLOCK_MONOTONIC in ns, as the logs count.
type interval struct {
	*found
	from, to int64
}

// match is a label and a window with more than overlap in common.
type match struct {
	label      *joblog.Label
	window     *interval
	share      float64
	begin, end int64 // of the label: those that are nearest
}

// compare pairs the labels with the windows, each kind on its own. A window that has not ended lasts until now.
func (r *result) compare(l *joblog.Log, all []found, now int64, at func(time.Time) int64) {
	r.Labels, r.Negative, r.NegFalse = map[string]int{}, map[string]float64{}, map[string]int{}
	for _, kind := range kinds {
		var labels []*joblog.Label
		for i := range l.Labels {
			if l.Labels[i].Kind == kind {
				labels = append(labels, &l.Labels[i])
			}
		}
		var windows []*interval
		for i := range all {
			f := &all[i]
			if f.Kind != kind {
				continue
			}
			one := &interval{f, at(f.Start), at(f.End)}
			if f.open {
				one.to = max(one.to, now)
			}
			windows = append(windows, one)
		}
		r.compareKind(l, kind, labels, windows, at)
	}
}

// matches returns the pairs with enough in common, those with most first, so that each label and window is in one at
// most; and the windows that are left. Those in again are of labels that another window has.
func matches(labels []*joblog.Label, windows []*interval) (pairs []match, left []*interval, again map[*interval]bool) {
	var possible []match
	for _, l := range labels {
		for _, w := range windows {
			m := match{label: l, window: w}
			if m.share, m.begin, m.end = common(l, w.from, w.to); m.share > overlap {
				possible = append(possible, m)
			}
		}
	}
	slices.SortStableFunc(possible, func(a, b match) int { return cmp.Compare(b.share, a.share) })
	again = map[*interval]bool{}
	byLabel, byWindow := map[*joblog.Label]bool{}, map[*interval]bool{}
	for _, m := range possible {
		if byLabel[m.label] || byWindow[m.window] {
			again[m.window] = true
			continue
		}
		byLabel[m.label], byWindow[m.window] = true, true
		pairs = append(pairs, m)
	}
	for _, w := range windows {
		if !byWindow[w] {
			left = append(left, w)
		}
	}
	return pairs, left, again
}

func (r *result) compareKind(
	l *joblog.Log, kind string, labels []*joblog.Label, windows []*interval, at func(time.Time) int64,
) {
	pairs, left, again := matches(labels, windows)
	missing := slices.Clone(labels)
	for _, m := range pairs {
		missing = slices.DeleteFunc(missing, func(l *joblog.Label) bool { return l == m.label })
		if m.label.Aborted && m.window.Unfinished {
			r.Reported++
		}
		if !counts(m.label) {
			continue
		}
		p := pair{
			Kind: kind, Name: m.label.Name, Seconds: seconds(m.end - m.begin),
			Begin: seconds(m.window.from - m.begin), End: seconds(m.window.to - m.end),
		}
		p.ledger(l, m.window)
		if kind == "model_load" {
			p.phases(l, &m, at)
		}
		r.Pairs = append(r.Pairs, p)
	}
	for _, one := range labels {
		if one.Aborted {
			r.Aborted++
		}
		if counts(one) {
			r.Labels[kind]++
		}
	}
	for _, one := range missing {
		if counts(one) {
			r.Missed = append(r.Missed, missed{kind, one.Name, seconds(one.End - one.Start)})
		}
	}
	quiet := negative(l, kind)
	for _, s := range quiet {
		r.Negative[kind] += seconds(s.End - s.Start)
	}
	for _, w := range left {
		r.False = append(r.False, falseWindow{kind, w.Model + w.Name, seconds(w.to - w.from), w.open, again[w]})
		if slices.ContainsFunc(quiet, func(s joblog.Label) bool { return w.from >= s.Start && w.from < s.End }) {
			r.NegFalse[kind]++
		}
	}
}

// counts reports whether a label has to be found. Others are neither right nor wrong.
func counts(l *joblog.Label) bool { return !l.Aborted && l.End-l.Start >= int64(shortest) }

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// common returns the largest share that a window and a label have in common, of the union of both, and the begin and
// end of the label with which it is reached.
func common(l *joblog.Label, from, to int64) (share float64, begin, end int64) {
	share = -1
	for _, b := range append([]int64{l.Start}, l.Begins...) {
		for _, e := range append([]int64{l.End}, l.Ends...) {
			both := float64(min(e, to) - max(b, from))
			union := float64(max(e, to) - min(b, from))
			if s := both / max(union, 1); s > share {
				share, begin, end = s, b, e
			}
		}
	}
	return share, begin, end
}

// negative returns the lives of programs without windows of a kind, unless another program runs at the same time.
func negative(l *joblog.Log, kind string) (quiet []joblog.Label) {
	if slices.ContainsFunc(l.Labels, func(l joblog.Label) bool { return l.Kind == kind }) {
		return nil
	}
	for _, one := range l.Labels {
		if one.Kind == "life" {
			quiet = append(quiet, one)
		}
	}
	return quiet
}

// ledger compares the window's ledger with the log, over the time of the window.
func (p *pair) ledger(l *joblog.Log, f *interval) {
	if f.Stall == nil || f.open {
		return
	}
	got := scenario.Parts{Storage: f.Stall.Storage, CPU: f.Stall.CPU + f.Stall.Ready, Other: f.Stall.Other}
	if f.GPU != nil {
		got.Busy = f.GPU.Busy
	} else if f.Process != nil {
		got.CPU = f.Process.OnCPU + f.Stall.Ready
	}
	drivers := joblog.Drivers(l)
	if f.GPU != nil && len(f.GPU.IDs) != len(drivers) {
		return // of other GPUs than those of the log
	}
	d := joblog.Truth(l, drivers, f.GPU != nil, f.from, f.to, map[joblog.Kind]float64{})
	_, off := d.Apart(got)
	p.Ledger, p.Label, p.Verdict = &off, string(d.Label()), scenario.Labelled(f.Verdict)
}

// sameTime is how exactly phases are compared, in ns.
const sameTime = 10e6

// phases compares the phases. Where several labels overlap, as of threads, each of them is right.
func (p *pair) phases(l *joblog.Log, m *match, mono func(time.Time) int64) {
	for at := m.begin; at < m.end; at += sameTime {
		var said string
		for _, one := range m.window.Phases {
			if began := mono(one.Start); at >= began && at < began+int64(one.Length*1e9) {
				said = one.Phase
			}
		}
		labelled, right := false, false
		for _, one := range l.Labels {
			if one.Kind == "phase" && at >= one.Start && at < one.End {
				labelled, right = true, right || one.Name == said
			}
		}
		if !labelled {
			continue
		}
		p.Phases += seconds(sameTime)
		if said != "" {
			p.Named += seconds(sameTime)
		}
		if right {
			p.Right += seconds(sameTime)
		}
	}
}

// score sums the results up.
type score struct {
	Kinds    map[string]*kindScore `json:"kinds"`
	Phases   phaseScore            `json:"phases"`
	Ledgers  quantiles             `json:"ledger_error_of_loads"`
	Verdicts verdictScore          `json:"verdicts_of_loads"`
	Aborted  int                   `json:"aborted"`
	Reported int                   `json:"aborted_reported"`
	Failed   int                   `json:"failed"`
}

type kindScore struct {
	Labels    int       `json:"labels"`
	Found     int       `json:"found"`
	False     int       `json:"false"`
	Precision float64   `json:"precision"` // 0 without a window
	Recall    float64   `json:"recall"`    // 0 without a label
	Begin     quantiles `json:"begin_error_s"`
	End       quantiles `json:"end_error_s"`
	Both      float64   `json:"both_within_tolerance"` // share of the found ones
	Negative  float64   `json:"negative_s"`
	NegFalse  int       `json:"negative_false"`
}

// verdictScore counts the loads whose log gives a clear verdict.
type verdictScore struct {
	Labels  int `json:"labels"`
	Right   int `json:"right"`
	Unknown int `json:"unknown"`
}

type phaseScore struct {
	Labelled float64 `json:"labelled_s"`
	Named    float64 `json:"named_s"`
	Right    float64 `json:"right_s"`
}

// quantiles are of absolute values.
type quantiles struct {
	Count  int     `json:"count"`
	Median float64 `json:"median"`
	P90    float64 `json:"p90"`
	Within float64 `json:"within_tolerance"` // share, of times
}

func newQuantiles(values []float64) (q quantiles) {
	for i := range values {
		values[i] = math.Abs(values[i])
		if values[i] <= tolerance {
			q.Within++
		}
	}
	if q.Count = len(values); q.Count == 0 {
		return q
	}
	slices.Sort(values)
	rank := func(share float64) float64 { return values[max(int(math.Ceil(share*float64(len(values))))-1, 0)] }
	q.Median, q.P90, q.Within = rank(0.5), rank(0.9), q.Within/float64(q.Count)
	return q
}

func sum(results []*result) *score {
	s := &score{Kinds: map[string]*kindScore{}}
	var ledgers []float64
	for _, kind := range kinds {
		k := &kindScore{}
		s.Kinds[kind] = k
		var begins, ends []float64
		for _, r := range results {
			k.Labels += r.Labels[kind]
			k.Negative += r.Negative[kind]
			k.NegFalse += r.NegFalse[kind]
			for _, f := range r.False {
				if f.Kind == kind {
					k.False++
				}
			}
			for _, p := range r.Pairs {
				if p.Kind != kind {
					continue
				}
				k.Found++
				begins, ends = append(begins, p.Begin), append(ends, p.End)
				if math.Abs(p.Begin) <= tolerance && math.Abs(p.End) <= tolerance {
					k.Both++
				}
				if kind == "model_load" && p.Ledger != nil {
					ledgers = append(ledgers, *p.Ledger)
				}
			}
		}
		k.Begin, k.End = newQuantiles(begins), newQuantiles(ends)
		k.Precision = ratio(float64(k.Found), float64(k.Found+k.False))
		k.Recall = ratio(float64(k.Found), float64(k.Labels))
		k.Both = ratio(k.Both, float64(k.Found))
	}
	for _, r := range results {
		s.Aborted += r.Aborted
		s.Reported += r.Reported
		if r.Failed != "" {
			s.Failed++
		}
		for _, p := range r.Pairs {
			s.Phases.Labelled += p.Phases
			s.Phases.Named += p.Named
			s.Phases.Right += p.Right
			s.Verdicts.add(&p)
		}
	}
	s.Ledgers = newQuantiles(ledgers)
	return s
}

func (v *verdictScore) add(p *pair) {
	if p.Kind != "model_load" || p.Label == "" {
		return
	}
	v.Labels++
	switch p.Verdict {
	case p.Label:
		v.Right++
	case "unknown":
		v.Unknown++
	}
}

// ratio is 0 of nothing.
func ratio(part, all float64) float64 {
	if all <= 0 {
		return 0
	}
	return part / all
}

package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/window"
)

// Replay judges all recordings of a folder whose case matches again, with the present estimator. The truth stays.
func Replay(folder string, wanted *regexp.Regexp) (results []*Result, err error) {
	names, err := filepath.Glob(filepath.Join(folder, "*"+recordingEnd))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s holds no recordings: run the scenarios first", folder)
	}
	for _, name := range names {
		if !wanted.MatchString(caseName(name)) {
			continue
		}
		of, err := replayOne(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		results = append(results, of...)
	}
	Supersede(results)
	return results, nil
}

// caseName returns the case of a recording: keptAt puts the seed after the last "-".
func caseName(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), recordingEnd)
	return name[:max(strings.LastIndexByte(name, '-'), 0)]
}

// Supersede voids all windows of a variant if the truth of one of them is void and another variant ran in its place. A
// report never voids a window: dropping wrong verdicts that the second attempt got right would flatter the score.
func Supersede(results []*Result) {
	type variant struct {
		name string
		seed uint64
	}
	of := func(r *Result) variant {
		name, _, _ := strings.Cut(r.Name, "/")
		return variant{name, r.Seed}
	}
	ran, void := map[variant]bool{}, map[variant]bool{}
	for _, r := range results {
		ran[of(r)] = true
		void[of(r)] = void[of(r)] || r.Void != ""
	}
	for _, r := range results {
		v := of(r)
		if r.Void == "" && void[v] && ran[variant{v.name, Retry(v.seed)}] {
			r.Void = "another window of this run is void"
		}
	}
}

// replayOne replays one recording. A recording without results belongs to a failed run and is skipped.
func replayOne(name string) (results []*Result, err error) {
	text, err := os.ReadFile(strings.TrimSuffix(name, recordingEnd) + resultsEnd)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &results); err != nil {
		return nil, err
	}
	p, err := play(name)
	if err != nil {
		return nil, err
	}
	var last *Result
	var phase *window.Report
	for _, r := range results {
		report := p.reports[r.Window]
		if report == nil {
			return nil, fmt.Errorf("it does not have the window %s", r.Window)
		}
		got := found(report)
		if r.Got.Device != nil {
			got.Device = r.Got.Device
			got.Device.compare(report)
		}
		if !strings.HasSuffix(r.Name, wholeEnd) {
			got.VerdictAfter = settled(p.polls[r.Window], report, r.Label)
			last, phase = r, report
		} else if last != nil { // the stages come first
			got.ChangeAfter = changed(p.polls[r.Window], report, phase, last.Label)
		}
		r.Got = got
		if !strings.HasSuffix(r.Name, wholeEnd) && r.Truth.Steps > 0 {
			r.Truth.derive(r.Seconds)
		}
		r.judge()
	}
	return results, nil
}

// played holds the reports of a recording's windows, while they ran and at their end.
type played struct {
	reports map[string]*window.Report
	polls   map[string][]poll
}

// play feeds a recording to a monitor, and polls its open windows after each round of readings.
func play(name string) (*played, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	reader, err := recording.NewReader(file)
	if err != nil {
		return nil, err
	}
	p := &played{reports: map[string]*window.Report{}, polls: map[string][]poll{}}
	m, err := monitor.New(monitor.Config{
		Recorded: true, Boot: reader.Header().Boot, Interval: reader.Header().Interval,
		Reports: func(r *window.Report) { p.reports[r.ID] = r },
	})
	if err != nil {
		return nil, err
	}
	defer m.Stop()
	var e recording.Entry
	for {
		if err := reader.Next(&e); errors.Is(err, io.EOF) {
			return p, nil
		} else if err != nil {
			return nil, err
		}
		if err := m.Feed(&e); err != nil {
			return nil, err
		}
		if e.Mark != nil && e.Mark.Op == recording.Tick && m.Windows.Open() > 0 {
			for _, r := range m.Windows.Running() {
				p.polls[r.ID] = append(p.polls[r.ID], look(r))
			}
		}
	}
}

// Order sorts results by case and seed.
func Order(results []*Result) {
	var names []string
	for _, c := range Cases() {
		names = append(names, c.Name)
	}
	at := func(r *Result) int {
		name, _, _ := strings.Cut(r.Name, "/")
		return slices.Index(names, name)
	}
	slices.SortStableFunc(results, func(a, b *Result) int {
		if d := at(a) - at(b); d != 0 {
			return d
		}
		return int(a.Seed) - int(b.Seed)
	})
}

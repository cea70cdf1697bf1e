//go:build linux

// Package joblog reads what the programs of ../jobs and ../detect log, and divides their time by it.
package joblog

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Kind is what a thread did during a span (programs/truth.py).
type Kind string

const (
	reading Kind = "read"
	writing Kind = "write"
	waiting Kind = "wait"
	fetched Kind = "fetch"
	onGPU   Kind = "gpu"
	other   Kind = "other"
)

// span is a stretch of a thread's time, in nanoseconds of CLOCK_MONOTONIC.
type span struct {
	kind       Kind
	start, end int64
	bytes      int64  // of a read, write or fetch
	ready      int64  // of these: how long the thread was ready without a core, in ns
	cpu        int64  // of a fetch: how long it ran, in ns; -1 if the program did not log it
	target     string // the thread that is waited for
}

// Machine is the state of the machine at a moment.
type Machine struct {
	At, Sectors, Steal, Work, Own int64 // sectors read from the job's disk; ticks of all CPUs, for all and for the job
}

// Log is what a program Log.
type Log struct {
	threads map[string][]span
	busy    map[int][]span // of each accelerator
	Windows []Window
	States  []Machine
	Labels  []Label
}

// Label is what a program of ../detect says of a stretch of its time (programs/label.py).
type Label struct {
	Kind     string  `json:"kind"` // model_load, checkpoint, epoch, phase or life
	Name     string  `json:"name"`
	Begins   []int64 `json:"begins"`   // further begins that are right, in ns of CLOCK_MONOTONIC
	Ends     []int64 `json:"ends"`     // and ends
	Aborted  bool    `json:"aborted"`  // it ended before its work was done
	Negative bool    `json:"negative"` // of a life: nothing in it is a load or a checkpoint
	Start    int64   `json:"-"`        // of the thread that logged it, in the same unit
	End      int64   `json:"-"`
}

// Window is a window as the program saw it.
type Window struct {
	Name, ID   string // ID is "" for a window that the output marked
	Start, End int64  // End is 0 if the window lasts until the program ends
}

// Read reads the logs of all processes in the folders. Only the first folder's threads and windows count, because
// the others are of programs that share the accelerators.
func Read(folders ...string) (*Log, error) {
	l := &Log{threads: map[string][]span{}, busy: map[int][]span{}}
	for i, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.log"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if err := l.readLog(file, i == 0); err != nil {
				return nil, err
			}
		}
	}
	l.complete()
	return l, nil
}

// complete sorts what was read.
func (l *Log) complete() {
	byStart := func(a, b span) int { return int(a.start - b.start) }
	for _, spans := range l.threads {
		slices.SortFunc(spans, byStart)
	}
	for gpu, spans := range l.busy {
		slices.SortFunc(spans, byStart)
		l.busy[gpu] = union(spans)
	}
	slices.SortFunc(l.Windows, func(a, b Window) int { return int(a.Start - b.Start) })
	slices.SortFunc(l.States, func(a, b Machine) int { return int(a.At - b.At) })
	slices.SortFunc(l.Labels, func(a, b Label) int { return cmp.Compare(a.Start, b.Start) })
	l.closeMarked()
}

// ReadFile reads one log.
func ReadFile(path string) (*Log, error) {
	l := &Log{threads: map[string][]span{}, busy: map[int][]span{}}
	if err := l.readLog(path, true); err != nil {
		return nil, err
	}
	l.complete()
	return l, nil
}

func (l *Log) readLog(path string, own bool) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if err := l.line(lines.Text(), own); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return lines.Err()
}

func (l *Log) line(text string, own bool) error {
	fields := strings.Fields(text)
	if len(fields) != 5 {
		return fmt.Errorf("the line %q has %d fields, want 5", text, len(fields))
	}
	thread, what, argument := fields[0], Kind(fields[1]), fields[4]
	start, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return err
	}
	end, err := strconv.ParseInt(fields[3], 10, 64)
	if err != nil {
		return err
	}
	if what == "busy" {
		gpu, err := strconv.Atoi(argument)
		l.busy[gpu] = append(l.busy[gpu], span{start: start, end: end})
		return err
	}
	if what == "label" {
		one := Label{Start: start, End: end}
		err := json.Unmarshal([]byte(argument), &one)
		l.Labels = append(l.Labels, one)
		return err
	}
	if !own {
		return nil
	}
	switch what {
	case reading, writing, fetched:
		s := span{kind: what, start: start, end: end, cpu: -1}
		parts := strings.Count(argument, ":")
		_, err := fmt.Sscanf(argument+":-1", "%d:%d:%d", &s.bytes, &s.ready, &s.cpu)
		if parts < 1 || parts > 2 {
			err = fmt.Errorf("the line %q has %d numbers, want 2 or 3", text, parts+1)
		}
		l.threads[thread] = append(l.threads[thread], s)
		return err
	case waiting, onGPU, other:
		l.threads[thread] = append(l.threads[thread], span{kind: what, start: start, end: end, target: argument})
	case "window":
		name, id, _ := strings.Cut(argument, ":")
		l.Windows = append(l.Windows, Window{Name: name, ID: id, Start: start, End: end})
	case "begin":
		l.Windows = append(l.Windows, Window{Name: argument, Start: start})
	case "machine":
		m := Machine{At: start}
		_, err := fmt.Sscanf(argument, "%d:%d:%d:%d", &m.Sectors, &m.Steal, &m.Work, &m.Own)
		l.States = append(l.States, m)
		return err
	default:
		return fmt.Errorf("the line %q has an unknown kind", text)
	}
	return nil
}

// closeMarked ends each window that the output marked where the next one begins. The last one, named "-", is only the
// end of the one before, which lasts until the program ends.
func (l *Log) closeMarked() {
	for i := range l.Windows {
		w := &l.Windows[i]
		if w.ID == "" && i+1 < len(l.Windows) && l.Windows[i+1].Name != "-" {
			w.End = l.Windows[i+1].Start
		}
	}
	l.Windows = slices.DeleteFunc(l.Windows, func(w Window) bool { return w.Name == "-" })
}

// union merges spans that overlap.
func union(sorted []span) (merged []span) {
	for _, s := range sorted {
		if n := len(merged); n > 0 && s.start <= merged[n-1].end {
			merged[n-1].end = max(merged[n-1].end, s.end)
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

//go:build linux

package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// kind is what a thread did during a span (programs/truth.py).
type kind string

const (
	reading kind = "read"
	writing kind = "write"
	waiting kind = "wait"
	fetched kind = "fetch"
	onGPU   kind = "gpu"
	other   kind = "other"
)

// span is a stretch of a thread's time, in nanoseconds of CLOCK_MONOTONIC.
type span struct {
	kind       kind
	start, end int64
	bytes      int64  // of a read, write or fetch
	ready      int64  // of these: how long the thread was ready without a core, in ns
	target     string // the thread that is waited for
}

// machine is the state of the machine at a moment.
type machine struct {
	at, sectors, steal, work, own int64 // sectors read from the job's disk; ticks of all CPUs, for all and for the job
}

// logged is what a program logged.
type logged struct {
	threads map[string][]span
	busy    map[int][]span // of each accelerator
	windows []logWindow
	states  []machine
}

// logWindow is a window as the program saw it.
type logWindow struct {
	name, id   string // id is "" for a window that the output marked
	start, end int64  // end is 0 if the window lasts until the program ends
}

// readLogs reads the logs of all processes in the folders. Only the first folder's threads and windows count, because
// the others are of programs that share the accelerators.
func readLogs(folders ...string) (*logged, error) {
	l := &logged{threads: map[string][]span{}, busy: map[int][]span{}}
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
	byStart := func(a, b span) int { return int(a.start - b.start) }
	for _, spans := range l.threads {
		slices.SortFunc(spans, byStart)
	}
	for gpu, spans := range l.busy {
		slices.SortFunc(spans, byStart)
		l.busy[gpu] = union(spans)
	}
	slices.SortFunc(l.windows, func(a, b logWindow) int { return int(a.start - b.start) })
	slices.SortFunc(l.states, func(a, b machine) int { return int(a.at - b.at) })
	l.closeMarked()
	return l, nil
}

func (l *logged) readLog(path string, own bool) error {
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

func (l *logged) line(text string, own bool) error {
	fields := strings.Fields(text)
	if len(fields) != 5 {
		return fmt.Errorf("the line %q has %d fields, want 5", text, len(fields))
	}
	thread, what, argument := fields[0], kind(fields[1]), fields[4]
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
	if !own {
		return nil
	}
	switch what {
	case reading, writing, fetched:
		s := span{kind: what, start: start, end: end}
		_, err := fmt.Sscanf(argument, "%d:%d", &s.bytes, &s.ready)
		l.threads[thread] = append(l.threads[thread], s)
		return err
	case waiting, onGPU, other:
		l.threads[thread] = append(l.threads[thread], span{kind: what, start: start, end: end, target: argument})
	case "window":
		name, id, _ := strings.Cut(argument, ":")
		l.windows = append(l.windows, logWindow{name: name, id: id, start: start, end: end})
	case "begin":
		l.windows = append(l.windows, logWindow{name: argument, start: start})
	case "machine":
		m := machine{at: start}
		_, err := fmt.Sscanf(argument, "%d:%d:%d:%d", &m.sectors, &m.steal, &m.work, &m.own)
		l.states = append(l.states, m)
		return err
	default:
		return fmt.Errorf("the line %q has an unknown kind", text)
	}
	return nil
}

// closeMarked ends each window that the output marked where the next one begins. The last one, named "-", is only the
// end of the one before, which lasts until the program ends.
func (l *logged) closeMarked() {
	for i := range l.windows {
		w := &l.windows[i]
		if w.id == "" && i+1 < len(l.windows) && l.windows[i+1].name != "-" {
			w.end = l.windows[i+1].start
		}
	}
	l.windows = slices.DeleteFunc(l.windows, func(w logWindow) bool { return w.name == "-" })
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

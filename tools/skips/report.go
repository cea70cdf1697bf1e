package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// event is a line of `go test -json` (go doc test2json).
type event struct{ Action, Package, Test, Output string }

// report is what became of all tests.
type report struct {
	out   io.Writer
	ran   int
	skips []string         // PACKAGE TEST: MESSAGE
	logs  map[event]string // what packages and unfinished tests have printed, by Package and Test
}

// read reads what the command prints, and prints what is for people.
func (r *report) read(lines io.Reader) error {
	r.logs = map[event]string{}
	for in := bufio.NewReader(lines); ; {
		text, err := in.ReadString('\n')
		if text == "" && errors.Is(err, io.EOF) {
			return nil
		} else if text == "" {
			return err
		}
		var e event
		if json.Unmarshal([]byte(text), &e) == nil && e.Action != "" {
			r.take(e)
			continue
		}
		fmt.Fprint(r.out, text)
		if why, found := strings.CutPrefix(text, "skipped: "); found {
			r.skips = append(r.skips, "bench: "+strings.TrimSpace(why))
		}
	}
}

func (r *report) take(e event) {
	key, whole := event{Package: e.Package, Test: e.Test}, event{Package: e.Package}
	ended := e.Action == "pass" || e.Action == "fail" || e.Action == "skip"
	switch {
	case e.Action == "build-output":
		fmt.Fprint(r.out, e.Output)
	case e.Action == "output":
		r.logs[key] += e.Output
	case ended && e.Test == "":
		r.end(e)
	case ended:
		if e.Action == "skip" {
			name := strings.TrimPrefix(e.Package, module) + " " + e.Test
			r.skips = append(r.skips, name+": "+message(r.logs[key]))
		} else {
			r.ran++
		}
		if e.Action == "fail" {
			r.logs[whole] += r.logs[key]
		}
		delete(r.logs, key)
	}
}

// end prints what a package printed: all of it if it failed, also what its unfinished tests printed.
func (r *report) end(e event) {
	for key, log := range r.logs {
		if key.Package != e.Package {
			continue
		}
		for line := range strings.Lines(log) {
			summary := key.Test == "" && (strings.HasPrefix(line, "ok ") || strings.HasPrefix(line, "? "))
			if summary || e.Action == "fail" && !strings.HasPrefix(line, "=== ") {
				fmt.Fprint(r.out, line)
			}
		}
		delete(r.logs, key)
	}
}

const module = "github.com/stallspan/stallspan/"

// place is where a test was skipped.
var place = regexp.MustCompile(`(?m)^\s+\w+\.go:\d+: |^\s*(===|---) .*$`)

// message returns what a skipped test logged, in one line.
func message(log string) string {
	return strings.Join(strings.Fields(place.ReplaceAllString(log, "")), " ")
}

// judge prints the skips that nothing explains and, as its last line, the counts.
func (r *report) judge(a *abilities) (unexplained int) {
	counts := map[string]int{}
	for _, s := range r.skips {
		lacks, why := a.explain(s)
		if counts[lacks]++; lacks == "" {
			fmt.Fprintf(r.out, "skipped without need: %s: %s\n", s, why)
		}
	}
	if r.ran+len(r.skips) == 0 {
		return 0
	}
	unexplained = counts[""]
	line := fmt.Sprintf("%d tests ran, %d were skipped: %d without need", r.ran, len(r.skips), unexplained)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if name != "" {
			line += fmt.Sprintf(", %s %d", name, counts[name])
		}
	}
	fmt.Fprintln(r.out, line)
	return unexplained
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/api"
)

const (
	fewLooks = 8                // too few to distinguish growth from noise
	filling  = 10 * time.Minute // queues and lists of recent windows grow to their limits meanwhile
)

// lookEvery returns the time between two looks.
func lookEvery(length time.Duration) time.Duration { return min(length/20, 10*time.Second) }

// settlingOf returns the time after which nothing should grow any more.
func settlingOf(length time.Duration) time.Duration { return min(length/4, filling) }

// subject is what is watched: a process that serves our API, and the pages of pprof.
type subject struct {
	process process
	client  *api.Client
	pprof   string // address
	collect bool   // collect garbage before each look, for the size of the heap
}

// quantity is one column of what is watched.
type quantity struct {
	name   string
	digits int
	// The median of the last quarter may be above that of the first by this share and this number.
	share, number float64
	fills         bool // it may grow in a soak that is shorter than filling
}

// The columns. Problems are the lines of /v1/status.
var quantities = []quantity{
	{"resident MB", 1, 0.05, 1, true},
	{"heap MB", 1, 0.1, 1, true},
	{"goroutines", 0, 0, 5, false},
	{"files", 0, 0.25, 30, false}, // five of each followed process, and jobs come and go,
	{"problems", 0, 0, 1, false},
	{"% of core", 1, 0.5, 1, true},
}

// watch prints what the subject holds until ctx ends. Then it prints how each quantity grew, and fails if one did.
func (s subject) watch(ctx context.Context, length time.Duration) error {
	began := time.Now()
	header := fmt.Sprintf("%8s", "after")
	for _, q := range quantities {
		header += fmt.Sprintf(" %12s", q.name)
	}
	fmt.Println(header)
	var hours []float64
	columns := make([][]float64, len(quantities))
	for {
		before, err := s.process.onCPU()
		if err != nil {
			return err
		}
		since := time.Now()
		select {
		case <-ctx.Done():
			return judge(hours, columns, length)
		case <-time.After(lookEvery(length)):
		}
		after, err := s.process.onCPU()
		if err != nil {
			return err
		}
		row, err := s.look(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return judge(hours, columns, length)
			}
			return err
		}
		row = append(row, 100*(after-before).Seconds()/time.Since(since).Seconds())
		took := time.Since(began)
		line := fmt.Sprintf("%8v", took.Round(time.Second))
		for i, v := range row {
			line += fmt.Sprintf(" %12.*f", quantities[i].digits, v)
		}
		fmt.Println(line)
		if took < settlingOf(length) {
			continue
		}
		hours = append(hours, took.Hours())
		for i, v := range row {
			columns[i] = append(columns[i], v)
		}
	}
}

// look returns what the subject holds, in the order of quantities and without the last one.
func (s subject) look(ctx context.Context) ([]float64, error) {
	resident, err := s.process.resident()
	if err != nil {
		return nil, err
	}
	goroutines, err := s.pprofNumber("goroutine?debug=1", "goroutine profile: total %d")
	if err != nil {
		return nil, err
	}
	page := "heap?debug=1"
	if s.collect {
		page += "&gc=1"
	}
	heap, err := s.pprofNumber(page, "# HeapAlloc = %d")
	if err != nil {
		return nil, err
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.process))
	if err != nil {
		return nil, err
	}
	status, err := s.client.Status(ctx)
	if err != nil {
		return nil, err
	}
	return []float64{float64(resident) / 1e6, float64(heap) / 1e6, float64(goroutines), float64(len(files)),
		float64(len(status.Problems))}, nil
}

// judge prints the medians of the first and of the last quarter of the time, and the slope of all of it.
func judge(hours []float64, columns [][]float64, length time.Duration) error {
	n := len(hours)
	if n < fewLooks {
		fmt.Printf("%d looks are too few to distinguish growth from noise\n", n)
		return nil
	}
	var grew []string
	fmt.Printf("\n%12s %15s %15s %15s\n", "", "first quarter", "last quarter", "slope an hour")
	for i, q := range quantities {
		first, last := median(columns[i][:n/4]), median(columns[i][n-n/4:])
		fmt.Printf("%12s %15.*f %15.*f %+15.2f\n", q.name, q.digits, first, q.digits, last, slope(hours, columns[i]))
		if last > first+q.share*first+q.number && (length >= 2*filling || !q.fills) {
			grew = append(grew, q.name)
		}
	}
	if len(grew) > 0 {
		return errors.New("more at the end than at the start: " + strings.Join(grew, ", "))
	}
	return nil
}

// slope is that of the least squares' line.
func slope(x, y []float64) float64 {
	var meanX, meanY, above, below float64
	for i := range x {
		meanX += x[i] / float64(len(x))
		meanY += y[i] / float64(len(x))
	}
	for i := range x {
		above += (x[i] - meanX) * (y[i] - meanY)
		below += (x[i] - meanX) * (x[i] - meanX)
	}
	return above / below
}

// pprofNumber returns a number on one of the pages of net/http/pprof.
func (s subject) pprofNumber(page, line string) (n int, err error) {
	answer, err := http.Get("http://" + s.pprof + "/debug/pprof/" + page)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20) // of a stack of many goroutines
	for lines.Scan() {
		if got, _ := fmt.Sscanf(lines.Text(), line, &n); got == 1 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%s has no line %q", page, line)
}

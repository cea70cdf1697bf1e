//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/detect/rhythm"
	"github.com/stallspan/stallspan/test/looks"
)

// epoch is one of a program's log, on CLOCK_MONOTONIC.
type epoch struct{ start, end time.Duration }

// truth reads the epochs of a log.
func truth(path string) (all []epoch, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		var thread, kind, argument string
		var start, end time.Duration
		if n, _ := fmt.Sscan(line, &thread, &kind, &start, &end, &argument); n != 5 {
			continue
		}
		switch kind {
		case "window":
			all = append(all, epoch{start, end})
		case "begin": // the one before ends there
			if n := len(all); n > 0 && all[n-1].end == 0 {
				all[n-1].end = start
			}
			if argument != "-" {
				all = append(all, epoch{start: start})
			}
		}
	}
	slices.SortFunc(all, func(a, b epoch) int { return int(a.start - b.start) })
	return all, nil
}

// tally sums up programs.
type tally struct {
	epochs, matched, found, runs, silent int
	starts, ends                         []float64 // errors of matched epochs, s
	last                                 []float64 // errors of the ends of last epochs
}

// near is by how much a found epoch may differ at each end to be the same one.
func near(e epoch) time.Duration { return max(time.Second, (e.end-e.start)/10) }

func abs(d time.Duration) time.Duration { return max(d, -d) }

func (t *tally) add(epochs []epoch, found []detect.Found, list bool) (matched int) {
	t.epochs += len(epochs)
	t.found += len(found)
	for _, f := range found {
		k := slices.IndexFunc(epochs, func(e epoch) bool {
			return abs(f.Start-e.start) <= near(e) && abs(f.End-e.end) <= near(e)
		})
		if list {
			fmt.Printf("    found %d: %.2f to %.2f, %.3f", f.Epoch, f.Start.Seconds(), f.End.Seconds(), f.Confidence)
			if k >= 0 {
				fmt.Printf("; off by %+.2f and %+.2f s", (f.Start - epochs[k].start).Seconds(), (f.End - epochs[k].end).Seconds())
			}
			fmt.Println()
		}
		if k < 0 {
			continue
		}
		matched++
		t.starts = append(t.starts, (f.Start - epochs[k].start).Seconds())
		off := (f.End - epochs[k].end).Seconds()
		if k+1 == len(epochs) {
			t.last = append(t.last, off)
		} else {
			t.ends = append(t.ends, off)
		}
	}
	t.matched += matched
	t.runs++
	if len(found) == 0 {
		t.silent++
	}
	return matched
}

func (o *options) judge(list []entry) error {
	var all []example
	for _, exact := range []bool{false, true} {
		var sum tally
		var examples []example
		var quiet tally // of programs without epochs
		if !o.features {
			fmt.Printf("\nopens reported by the kernel: %v\n%-20s %5s  %-22s\n",
				exact, "program", "seed", "right / found / logged")
		}
		for _, e := range list {
			for seed := o.seed; seed < o.seed+uint64(o.seeds); seed++ {
				name := filepath.Join(o.keep, fmt.Sprintf("%s-%d", e.name, seed))
				seen, err := read(name + ".looks.gz")
				if errors.Is(err, fs.ErrNotExist) {
					continue
				} else if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				epochs, err := truth(name + ".log")
				if err != nil {
					return err
				}
				if !e.train {
					epochs = nil
				}
				d := rhythm.New("job")
				found := looks.Replay(d, seen, exact)
				if o.features {
					rhythm.Candidates(d, func(starts []time.Duration, x []float64) {
						examples = append(examples, example{label(epochs, starts), slices.Clone(x)})
						if o.print {
							fmt.Printf("%v %-20s %d %v %.2f\n", label(epochs, starts), e.name, seed, exact, x)
						}
					})
					continue
				}
				to := &sum
				if !e.train {
					to = &quiet
				}
				if len(epochs) > 0 && epochs[len(epochs)-1].end == 0 {
					epochs[len(epochs)-1].end = seen[len(seen)-1].At
				}
				before := len(found)
				matched := to.add(epochs, found, o.print)
				fmt.Printf("%-20s %5d  %d / %d / %d\n", e.name, seed, matched, before, len(epochs))
				if o.print {
					for _, e := range epochs {
						fmt.Printf("    logged %.2f to %.2f\n", e.start.Seconds(), e.end.Seconds())
					}
				}
			}
		}
		all = append(all, examples...)
		if !o.features {
			sum.print(&quiet)
		}
	}
	fit(all)
	return nil
}

func read(path string) ([]*looks.Look, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return looks.Read(file)
}

// label is 1 if these are the begins of epochs that follow each other.
func label(epochs []epoch, starts []time.Duration) float64 {
	before := -1
	for _, s := range starts {
		k := slices.IndexFunc(epochs, func(e epoch) bool { return abs(s-e.start) <= near(e) })
		if k < 0 || before >= 0 && k != before+1 {
			return 0
		}
		before = k
	}
	return 1
}

// example is what repeated in a job, and whether it was an epoch.
type example struct {
	label    float64
	features []float64
}

// fit prints the weights of the confidence: a logistic regression, in which no feature counts against its meaning.
func fit(all []example) {
	if len(all) == 0 {
		return
	}
	const rounds, rate, decay = 200000, 0.02, 0.01
	n := len(all[0].features)
	w := make([]float64, n)
	for range rounds {
		slope := make([]float64, n)
		for _, e := range all {
			z := 0.0
			for i, x := range e.features {
				z += w[i] * x
			}
			off := e.label - 1/(1+math.Exp(-z))
			for i, x := range e.features {
				slope[i] += off * x
			}
		}
		for i := range w {
			w[i] += rate * (slope[i]/float64(len(all)) - decay*w[i])
			switch i {
			case 0:
			case 2:
				w[i] = min(w[i], 0)
			default:
				w[i] = max(w[i], 0)
			}
		}
	}
	positive := 0.0
	for _, e := range all {
		positive += e.label
	}
	fmt.Printf("%.0f of %d examples are epochs; weights %.2f\n", positive, len(all), w)
}

func (t *tally) print(quiet *tally) {
	found := t.found + quiet.found
	fmt.Printf("precision %d of %d, recall %d of %d epochs in %d runs; %d of %d runs without epochs gave nothing\n",
		t.matched, found, t.matched, t.epochs, t.runs, quiet.silent, quiet.runs)
	fmt.Printf("errors in s, median and 90 of 100: begins %s, ends %s, ends of last epochs %s\n",
		errors2(t.starts), errors2(t.ends), errors2(t.last))
}

func errors2(all []float64) string {
	if len(all) == 0 {
		return "-"
	}
	sorted := make([]float64, len(all))
	within := 0
	for i, e := range all {
		sorted[i] = math.Abs(e)
		if sorted[i] <= 0.5 {
			within++
		}
	}
	slices.Sort(sorted)
	return fmt.Sprintf("%.2f %.2f (%d of %d within 0.5)",
		sorted[len(sorted)/2], sorted[min(len(sorted)-1, len(sorted)*9/10)], within, len(sorted))
}

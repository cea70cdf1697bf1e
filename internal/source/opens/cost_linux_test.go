//go:build amd64 || arm64

package opens

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/schedule"
)

// BenchmarkOpenAndClose measures what reports add to an open and a close of a file: without them, with them in a
// process that is not followed, followed, with a file that is too small to be reported, and followed above the budget.
// The states alternate, forwards and backwards.
func BenchmarkOpenAndClose(b *testing.B) {
	needs(b)
	dir := makeFiles(b)
	const rounds = 2000
	unbounded := 250 * time.Millisecond // between two rounds: within the budget
	measure := func(name string) float64 {
		path := filepath.Join(dir, modelFile)
		if name == "small" {
			path = filepath.Join(dir, smallFile)
		}
		if name != "alone" {
			threads, err := schedule.New("")
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = threads.Close() }()
			s, err := New(Local(""), threads, Options{Others: true})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			if name != "attached" {
				if err := threads.Follow("job", []int{os.Getpid()}); err != nil {
					b.Fatal(err)
				}
			}
		}
		all := make([]float64, 0, rounds)
		for n := range rounds {
			if name == "followed" && n%100 == 0 { // each is reported
				time.Sleep(unbounded)
			}
			before := sample.Now().Mono
			fd, err := unix.Open(path, unix.O_RDONLY, 0)
			must(err)
			must(unix.Close(fd))
			all = append(all, float64((sample.Now().Mono - before).Nanoseconds()))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	names := []string{"alone", "attached", "small", "followed", "storm"}
	costs, ratios := map[string][]float64{}, map[string][]float64{}
	for b.Loop() {
		round := map[string]float64{}
		for _, name := range names {
			round[name] = measure(name)
			costs[name] = append(costs[name], round[name])
		}
		for _, name := range names {
			ratios[name] = append(ratios[name], round[name]/round["alone"])
		}
		slices.Reverse(names)
	}
	for name, all := range costs {
		slices.Sort(all)
		slices.Sort(ratios[name])
		b.ReportMetric(all[len(all)/2], name+"-ns/open")
		b.ReportMetric(ratios[name][len(all)/2], name+"-ratio")
	}
}

// BenchmarkAdd is the cost of an event in user space.
func BenchmarkAdd(b *testing.B) {
	s := &Source{jobs: fixedJobs{}, counters: make([]byte, 8*(schedule.MaxJobs+2))}
	path := "/data/train/n01440764/n01440764_10026.JPEG\x00"
	record := make([]byte, headBytes+len(path))
	record[36], record[40], record[48] = 1, 1, opened
	copy(record[headBytes:], path)
	b.ReportAllocs()
	for b.Loop() {
		s.add(record)
		s.slots[1].events, s.waiting = s.slots[1].events[:0], 0
	}
}

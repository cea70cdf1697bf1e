// Command page writes HTML reports for the tests in a browser: one of 5,000 windows, and one of texts that try to
// become markup.
//
//	build/page-run FOLDER
//
// With -week, it writes a history of seven days into a folder instead, and prints its end in Unix seconds.
package main

import (
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/page"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/storetest"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "-week" {
		end, err := storetest.WriteWeek(os.Args[2], time.Now())
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(end.Unix())
		return
	}
	if len(os.Args) != 2 {
		log.Fatal("usage: build/page-run [-week] FOLDER")
	}
	for name, data := range map[string]*page.Data{"many.html": many(5000, 50, 2000), "hostile.html": hostile()} {
		if err := write(filepath.Join(os.Args[1], name), data); err != nil {
			log.Fatal(err)
		}
	}
}

func write(path string, data *page.Data) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := page.Write(file, data); err != nil {
		return err
	}
	return file.Close()
}

var origin = time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC)

// many is a run of so many epochs and lines. Its numbers are random, and the same at each call.
func many(windows, lines, points int) *page.Data {
	random := rand.New(rand.NewPCG(1, 2))
	d := &page.Data{Title: "many windows", Origin: origin, Windows: []page.Window{}}
	at := 0.0
	for i := range windows {
		r := epoch(i, at, 1+random.Float64()*9, random)
		d.Windows = append(d.Windows, page.Window{Start: at, Label: fmt.Sprintf("epoch %d", i), Report: r})
		at += r.Duration + random.Float64()
	}
	d.Duration = at
	d.Curves = page.Curves{Step: at / float64(points)}
	for i := range lines {
		values := make(page.Values, points)
		for k := range values {
			values[k] = 50 + 40*math.Sin(float64(k)/50+float64(i)) + random.Float64()*10
		}
		panel := i / 5
		if i%5 == 0 {
			d.Curves.Panels = append(d.Curves.Panels, page.Panel{Title: fmt.Sprintf("Panel %d", panel), Unit: "%", Max: 100})
		}
		p := &d.Curves.Panels[panel]
		p.Lines = append(p.Lines, page.Line{Name: fmt.Sprintf("GPU %d", i), Device: i, Values: values})
	}
	return d
}

// epoch is a report with one of three verdicts. One of forty is slow.
func epoch(number int, at, duration float64, random *rand.Rand) *explain.Report {
	start := time.Duration(at * float64(time.Second))
	length := time.Duration(duration * float64(time.Second))
	r := &window.Report{}
	r.Kind, r.Epoch, r.HasEpoch, r.ID = window.Epoch, number, true, fmt.Sprintf("w%d", number)
	r.Start.Mono, r.End.Mono, r.Start.Wall = start, start+length, origin.Add(start)
	r.Split, r.GPUIDs = true, []string{"GPU-0"}
	r.Busy = time.Duration(float64(length) * (0.3 + 0.6*random.Float64()))
	r.Storage = length - r.Busy
	r.Verdict = []window.Verdict{window.GPUBound, window.StorageBound, window.Mixed}[number%3]
	if random.IntN(40) == 0 {
		r.Slow, r.SlowReason = true, "baseline"
		r.Baseline = &window.Baseline{Median: time.Second, P95: 2 * time.Second, Count: 9}
	}
	return explain.NewReport(r)
}

// hostile has markup in every text that a program chooses.
func hostile() *page.Data {
	const markup = `</script></title><script>alert(1)</script><img src=x onerror=alert(2)>`
	r := epoch(1, 0, 5, rand.New(rand.NewPCG(1, 2)))
	r.Finding, r.Remedy, r.Name = markup, markup, markup
	w := page.Window{Label: markup, Report: r}
	return &page.Data{
		Title: markup, Origin: origin, Duration: 5, Run: &w, Windows: []page.Window{w}, Problems: []string{markup},
		Facts: []page.Fact{{Name: markup, Value: markup}},
		Curves: page.Curves{Step: 1, Panels: []page.Panel{{
			Title: markup, Unit: markup, Note: markup, Lines: []page.Line{{Name: markup, Values: page.Values{1, 2, 3, 4, 5}}},
		}}},
	}
}

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/lab/scenario"
)

// An agent that follows the holders of GPUs runs next to each job, and knows nothing of stallspan run. Its counters are
// read ten times a second. Their growth is then compared with the ledger of run, from its recording.

const (
	readEvery  = 100 * time.Millisecond
	agentStart = 20 * time.Second // for its first response
	agentLag   = 8 * time.Second  // until the counters have reached the end of a job
	settled    = 2 * time.Second  // after the job's first counter: before, its GPU was not listed yet
)

// counted are the counters of all jobs at a time.
type counted struct {
	at    time.Time
	parts scenario.Parts
}

// watcher reads the counters of an agent.
type watcher struct {
	command *exec.Cmd
	client  http.Client
	stop    context.CancelFunc
	done    sync.WaitGroup

	mu   sync.Mutex
	rows []counted
}

// watch starts an agent that sees the same GPUs as the job.
func (r *running) watch(ctx context.Context) (*watcher, error) {
	socket := filepath.Join(r.folder, "agent.sock")
	w := &watcher{command: exec.CommandContext(ctx, r.stallspan, "agent")}
	w.command.Env = append(os.Environ(), "STALLSPAN_SOCKET="+socket, "LD_LIBRARY_PATH="+r.library,
		"FAKENVML_FILE="+filepath.Join(r.folder, "gpus.txt"), "XDG_STATE_HOME="+filepath.Join(r.folder, "agent"))
	w.client.Timeout = agentStart
	w.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	if err := w.command.Start(); err != nil {
		return nil, err
	}
	for began := time.Now(); ; time.Sleep(readEvery) {
		err := w.read(ctx)
		if err == nil {
			break
		}
		if time.Since(began) > agentStart {
			return nil, errors.Join(fmt.Errorf("the agent does not answer: %w", err), w.end())
		}
	}
	ctx, w.stop = context.WithCancel(ctx)
	w.done.Go(func() {
		for ctx.Err() == nil {
			_ = w.read(ctx) // one that fails leaves a gap
			time.Sleep(readEvery)
		}
	})
	return w, nil
}

// read reads the counters once.
func (w *watcher) read(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent/v1/jobs", nil)
	if err != nil {
		return err
	}
	response, err := w.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	var all struct {
		Jobs []struct {
			Until                     time.Time
			Busy, Storage, CPU, Other float64
			GPUs                      []struct{}
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&all); err != nil {
		return err
	}
	row := counted{}
	for _, j := range all.Jobs {
		if len(j.GPUs) == 0 {
			continue
		}
		if j.Until.After(row.at) {
			row.at = j.Until
		}
		row.parts.Busy += j.Busy
		row.parts.Storage += j.Storage
		row.parts.CPU += j.CPU
		row.parts.Other += j.Other
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.rows); !row.at.IsZero() && (n == 0 || row.at.After(w.rows[n-1].at)) {
		w.rows = append(w.rows, row)
	}
	return nil
}

// end stops the agent and the reading.
func (w *watcher) end() error {
	if w.stop != nil {
		w.stop()
	}
	w.done.Wait()
	_ = w.command.Process.Signal(os.Interrupt)
	var exit *exec.ExitError
	if err := w.command.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}

// The shortest interval that is compared, and that of a short job as a whole.
const (
	piece     = 5 * time.Second
	minLength = time.Second
)

// compare replays the recording of run, and compares the growth of the counters between two of their own times with the
// ledger of run in between. It prints each, and returns the largest difference of each, in points.
func (w *watcher) compare(name, recorded string) (points []float64, err error) {
	m, err := play(recorded)
	if err != nil {
		return nil, err
	}
	defer m.Stop()
	job := m.followed
	rows := slices.DeleteFunc(slices.Clone(w.rows), func(c counted) bool {
		return c.at.Before(w.rows[0].at.Add(settled)) || !c.at.Before(m.ended)
	})
	for i, from := 0, 0; i < len(rows); i++ {
		length := rows[i].at.Sub(rows[from].at)
		whole := i == len(rows)-1 && from == 0
		if length < piece && (!whole || length < minLength) {
			continue
		}
		x := window.Window{Kind: window.Custom, Name: "piece", Job: job, Source: window.FromSpan}
		x.Start.Wall, x.End.Wall = rows[from].at, rows[i].at
		if err := m.Spans.Place(&x); err != nil {
			return points, fmt.Errorf("%s: %w", name, err)
		}
		r := m.Spans.Report(x)
		if !r.Split || r.Job != job {
			return points, fmt.Errorf("%s: run has no ledger of %v to %v", name, x.Start.Wall, x.End.Wall)
		}
		a, b := rows[from].parts, rows[i].parts
		run := [...]float64{r.Busy.Seconds(), r.Storage.Seconds(), r.CPU.Seconds(), r.Other.Seconds()}
		counters := [...]float64{b.Busy - a.Busy, b.Storage - a.Storage, b.CPU - a.CPU, b.Other - a.Other}
		label := fmt.Sprintf("%s, %.0f s", name, x.End.Wall.Sub(x.Start.Wall).Seconds())
		points = append(points, differ(label, run, counters))
		from = i
	}
	return points, nil
}

// differ prints the shares of a ledger and of counters, and returns the largest difference in points.
func differ(label string, run, counters [4]float64) (largest float64) {
	var all, sum float64
	for i := range run {
		all, sum = all+run[i], sum+counters[i]
	}
	for i := range run {
		largest = max(largest, 100*math.Abs(run[i]/all-counters[i]/sum))
	}
	const line = "%-28s run: busy %3.0f %%, storage %3.0f %%; counters: busy %3.0f %%, storage %3.0f %%; %.1f points\n"
	fmt.Printf(line, label, 100*run[0]/all, 100*run[1]/all, 100*counters[0]/sum, 100*counters[1]/sum, largest)
	return largest
}

// played is a monitor of a recording, up to the end of the program.
type played struct {
	*monitor.Monitor
	followed string    // the job
	ended    time.Time // when it was followed no longer
}

// play feeds a recording to a monitor until the program is followed no longer.
func play(path string) (*played, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	reader, err := recording.NewReader(file)
	if err != nil {
		return nil, err
	}
	m, err := monitor.New(monitor.Config{Recorded: true, Boot: reader.Header().Boot, Interval: reader.Header().Interval})
	if err != nil {
		return nil, err
	}
	p := &played{Monitor: m}
	for {
		var e recording.Entry
		if err := reader.Next(&e); err != nil {
			return p, nil //nolint:nilerr // the end
		}
		if e.Sample != nil && e.Source == "process" {
			p.ended = e.Sample.At.Wall
		}
		if e.Mark != nil {
			switch e.Mark.Op {
			case recording.Follow:
				p.followed = e.Mark.ID
			case recording.Leave:
				return p, nil
			}
		}
		if err := m.Feed(&e); err != nil {
			return p, err
		}
	}
}

// watched runs a job next to an agent, and compares both.
func (t tools) watched(ctx context.Context, j job, seed uint64, evidence string) (points []float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	r, err := t.prepare(ctx, j, seed)
	if r != nil {
		defer func() { err = errors.Join(err, r.remove()) }()
	}
	if err != nil {
		return nil, err
	}
	w, err := r.watch(ctx)
	if err != nil {
		return nil, err
	}
	stop, err := r.neighbours(ctx)
	if err == nil {
		err = r.disk.slow()
	}
	if err != nil {
		return nil, errors.Join(err, stop(), w.end())
	}
	recorded := filepath.Join(r.folder, "out", "recording.jsonl.gz")
	out, err := r.command(ctx, j, filepath.Join(r.folder, logFolder), evidence, "--record", recorded).CombinedOutput()
	err = errors.Join(err, stop())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w\n%s", j.Name, err, out), w.end())
	}
	time.Sleep(agentLag)
	list := exec.CommandContext(ctx, r.stallspan, "jobs")
	list.Env = w.command.Env
	table, err := list.Output()
	if err := errors.Join(err, w.end()); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s-%d", j.Name, seed)
	if err := os.WriteFile(filepath.Join(t.keep, name+"-jobs.txt"), table, 0o644); err != nil {
		return nil, err
	}
	return w.compare(name, recorded)
}

// followed runs the jobs with a GPU of their own next to an agent, and sums up how its counters agree with the ledgers.
func (o *options) followed(ctx context.Context, chosen []entry) error {
	var all []float64
	failed := 0
	for seed := o.seed; seed < o.seed+uint64(o.seeds); seed++ {
		for _, e := range chosen {
			j := e.made(seed)
			if j.GPUs == 0 || j.Second != nil || ctx.Err() != nil {
				continue
			}
			points, err := o.watched(ctx, j, seed, schedule)
			if err != nil {
				failed++
				fmt.Printf("FAILED %s, seed %d: %v\n", e.name, seed, err)
			}
			all = append(all, points...)
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("no interval was compared, and %d jobs failed", failed)
	}
	slices.Sort(all)
	quantile := func(q float64) float64 { return all[int(math.Ceil(q*float64(len(all))))-1] }
	fmt.Printf("%d intervals: the counters are within %.1f points of the ledger of run at the median, %.1f in 95 of 100, "+
		"%.1f at most\n", len(all), quantile(0.5), quantile(0.95), all[len(all)-1])
	if failed > 0 {
		return fmt.Errorf("%d jobs failed", failed)
	}
	return nil
}

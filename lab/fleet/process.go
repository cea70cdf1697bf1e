package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a program that the fleet needs: a gateway or the store. It may run several times, one after the other.
type process struct {
	name    string
	path    string
	args    []string
	env     []string
	metrics string // URL of its own metrics

	mu    sync.Mutex
	run   *exec.Cmd
	ended chan struct{}
	cpu   time.Duration // of runs that ended
	peak  int64         // of memory, bytes
}

// start starts the program, and waits until it serves its metrics.
func (p *process) start(ctx context.Context, folder string) error {
	log, err := os.OpenFile(filepath.Join(folder, p.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	run := exec.CommandContext(ctx, p.path, p.args...)
	run.Env = append(os.Environ(), p.env...)
	run.Stdout, run.Stderr = log, log
	ended := make(chan struct{})
	if err := run.Start(); err != nil {
		return err
	}
	_ = log.Close() // the program has its own
	p.mu.Lock()
	p.run, p.ended = run, ended
	p.mu.Unlock()
	go func() {
		_ = run.Wait()
		close(ended)
	}()
	for end := time.Now().Add(30 * time.Second); ; {
		if _, err := get(ctx, p.metrics); err == nil {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("%s did not start: see %s", p.name, log.Name())
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s serves no metrics after 30 s: see %s", p.name, log.Name())
		}
	}
}

// stop ends the program with a signal and waits.
func (p *process) stop(s syscall.Signal) {
	p.measure()
	p.mu.Lock()
	run, ended := p.run, p.ended
	p.run = nil
	p.mu.Unlock()
	if run == nil {
		return
	}
	_ = run.Process.Signal(s)
	<-ended
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cpu += run.ProcessState.UserTime() + run.ProcessState.SystemTime()
}

// measure returns the CPU time so far and the memory now, in bytes, and learns the peak.
func (p *process) measure() (cpu time.Duration, memory int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cpu = p.cpu
	if p.run == nil {
		return cpu, 0
	}
	proc := fmt.Sprintf("/proc/%d/", p.run.Process.Pid)
	if text, err := os.ReadFile(proc + "stat"); err == nil {
		_, after, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(after); len(fields) > 12 {
			user, _ := strconv.ParseInt(fields[11], 10, 64)
			system, _ := strconv.ParseInt(fields[12], 10, 64)
			cpu += time.Duration(user+system) * 10 * time.Millisecond // ticks of USER_HZ
		}
	}
	if text, err := os.ReadFile(proc + "status"); err == nil {
		for line := range strings.Lines(string(text)) {
			if value, ok := strings.CutPrefix(line, "RssAnon:"); ok {
				kib, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
				memory = kib << 10
			}
		}
	}
	p.peak = max(p.peak, memory)
	return cpu, memory
}

// sum adds up a metric of the program's own, over its labels. Labels with without in them do not count.
func (p *process) sum(ctx context.Context, name, without string) (total float64) {
	text, err := get(ctx, p.metrics)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(text) {
		rest, found := strings.CutPrefix(line, name)
		if !found || rest[0] != '{' && rest[0] != ' ' || without != "" && strings.Contains(rest, without) {
			continue
		}
		value, _ := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndex(rest, " "):]), 64)
		total += value
	}
	return total
}

// get returns the body of an answer with the status 200.
func get(ctx context.Context, address string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 64<<20))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.200s", address, answer.Status, text)
	}
	return string(text), err
}

// stored returns how many samples the store has of all metrics of agents, in the time before at. Samples with the same
// time count once.
func stored(ctx context.Context, store string, at time.Time, length time.Duration) (samples, series int, err error) {
	if _, err := get(ctx, store+"/internal/force_flush"); err != nil {
		return 0, 0, err
	}
	span := url.Values{"start": {strconv.FormatInt(at.Add(-length).Unix(), 10)}, "end": {strconv.FormatInt(at.Unix(), 10)}}
	text, err := get(ctx, store+"/api/v1/label/__name__/values?"+span.Encode())
	if err != nil {
		return 0, 0, err
	}
	var names struct{ Data []string }
	if err := json.Unmarshal([]byte(text), &names); err != nil {
		return 0, 0, err
	}
	for _, name := range names.Data {
		if strings.HasPrefix(name, "traces_span_metrics") {
			continue
		}
		counted := fmt.Sprintf("count_over_time({__name__=%q}[%ds])", name, int(length.Seconds()))
		for query, to := range map[string]*int{"sum(" + counted + ")": &samples, "count(" + counted + ")": &series} {
			query := url.Values{"query": {query}, "time": {strconv.FormatInt(at.Unix(), 10)}}
			text, err := get(ctx, store+"/api/v1/query?"+query.Encode())
			if err != nil {
				return 0, 0, err
			}
			var answer struct {
				Data struct{ Result []struct{ Value [2]any } }
			}
			if err := json.Unmarshal([]byte(text), &answer); err != nil {
				return 0, 0, err
			}
			for _, r := range answer.Data.Result {
				n, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
				if err != nil {
					return 0, 0, err
				}
				*to += int(n)
			}
		}
	}
	return samples, series, nil
}

// freePort returns an address on the loopback where nothing listens.
func freePort() (string, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

// size returns the bytes of all files below a folder, as they are on disk.
func size(folder string) (bytes int64) {
	_ = filepath.Walk(folder, func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			if s, ok := info.Sys().(*syscall.Stat_t); ok {
				bytes += s.Blocks * 512
			}
		}
		return nil // a file that went away has no size
	})
	return bytes
}

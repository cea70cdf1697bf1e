//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// truth writes the log that truth.py describes, with goroutines for threads. How long one of them was ready without a
// core is not known.
type truth struct {
	file   *os.File
	client http.Client
}

func newTruth() *truth {
	path := filepath.Join(os.Getenv("JOBS_LOG"), fmt.Sprint(os.Getpid(), ".log"))
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		log.Fatal(err)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", os.Getenv("STALLSPAN_SOCKET"))
	}
	return &truth{file, http.Client{Transport: &http.Transport{DialContext: dial}}}
}

func (t *truth) close() {
	if err := t.file.Close(); err != nil {
		log.Fatal(err)
	}
}

// now is CLOCK_MONOTONIC in nanoseconds.
func now() int64 {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &at) // cannot fail for this clock
	return at.Nano()
}

func (t *truth) record(thread, kind string, begin, end int64, argument string) {
	if _, err := fmt.Fprintf(t.file, "%s %s %d %d %s\n", thread, kind, begin, end, argument); err != nil {
		log.Fatal(err)
	}
}

// window announces a window; end logs it.
func (t *truth) window(label int) (end func()) {
	t.machine()
	var opened struct {
		ID string `json:"id"`
	}
	t.request("/v1/windows", map[string]any{"kind": "epoch", "epoch": label}, &opened)
	begin := now()
	return func() {
		t.record("main", "window", begin, now(), fmt.Sprint(label, ":", opened.ID))
		t.request("/v1/windows/"+opened.ID+"/end", map[string]any{}, nil)
		t.machine()
	}
}

func (t *truth) request(path string, fields map[string]any, into any) {
	body, err := json.Marshal(fields)
	if err != nil {
		log.Fatal(err)
	}
	response, err := t.client.Post("http://localhost"+path, "application/json", bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		log.Fatal(path, ": ", response.Status)
	}
	if into != nil {
		err = json.NewDecoder(response.Body).Decode(into)
	}
	if err := errors.Join(err, response.Body.Close()); err != nil {
		log.Fatal(err)
	}
}

// machine logs the state of the machine.
func (t *truth) machine() {
	var sectors int64
	if device := os.Getenv("JOBS_DEVICE"); device != "" {
		text, err := os.ReadFile(filepath.Join("/sys/block", device, "stat"))
		if err != nil {
			log.Fatal(err)
		}
		var skip int64
		if _, err := fmt.Sscan(string(text), &skip, &skip, &sectors); err != nil {
			log.Fatal(err)
		}
	}
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		log.Fatal(err)
	}
	var ticks [8]int64 // user nice system idle iowait irq softirq steal
	if _, err := fmt.Sscan(string(text[len("cpu"):]), &ticks[0], &ticks[1], &ticks[2], &ticks[3], &ticks[4], &ticks[5],
		&ticks[6], &ticks[7]); err != nil {
		log.Fatal(err)
	}
	var own unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &own); err != nil {
		log.Fatal(err)
	}
	const tick = 1e7 // ns
	work := ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]
	t.record("main", "machine", now(), 0,
		fmt.Sprintf("%d:%d:%d:%d", sectors, ticks[7], work, (own.Utime.Nano()+own.Stime.Nano())/tick))
}

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	_ "github.com/stallspan/stallspan/internal/monitor" // a part of what is built: a change of it has this test run again
)

var (
	program = flag.String("stallspan", "", "the built `program`; without it, it is built")
	all     = flag.Bool("all", false, "refuse each call with each error: takes six minutes")
)

// some are refused in each run of the tests: of the core, of each part, of the latencies, and what all share.
var some = map[string]string{
	"PROG_LOAD on_switch": "EPERM", "LINK_CREATE on_waking": "EACCES", "ITER_CREATE adopt": "EINVAL", "BTF_LOAD": "EPERM",
	"MAP_CREATE events": "ENOMEM", "MAP_CREATE connections": "EACCES", "LINK_CREATE on_bio": "ENOMEM",
	"PROG_LOAD on_fault": "EINVAL", "PROG_LOAD on_start": "EINVAL", "LINK_CREATE on_complete": "EPERM",
}

// core are the programs and maps that following the scheduler needs, and "" for calls that are about none. Without any
// other one, it is followed.
var core = []string{"on_switch", "on_waking", "on_fork", "adopt", "threads", "jobs", "joining", "events", "counters",
	".rodata", ""}

// foreign are texts of libraries and of the kernel, which say nothing of what to do.
var foreign = regexp.MustCompile(`(?m)^.*((program|map|field) [\w.]+:|MEMLOCK|requires >=|not supported|` +
	`invalid argument|permission denied|not permitted|cannot allocate|goroutine|panic).*$`)

const (
	working = "STALLSPAN_REFUSE_WORK" // the folder of a program that reads and computes for a second
	status  = 3                       // its exit status
)

func TestMain(m *testing.M) {
	folder := os.Getenv(working)
	if folder == "" {
		os.Exit(m.Run())
	}
	file, err := os.Create(filepath.Join(folder, "data"))
	data := make([]byte, 4<<20)
	if _, failed := file.Write(data); err != nil || failed != nil || file.Sync() != nil {
		os.Exit(1)
	}
	for until := time.Now().Add(time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		_ = unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED)
		_, _ = file.ReadAt(data, 0)
		for busy := time.Now().Add(20 * time.Millisecond); time.Now().Before(busy); {
		}
	}
	os.Exit(status)
}

// built returns the program.
func built(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: a filter with a listener, and programs at the kernel's tracepoints")
	}
	if *program != "" {
		return *program
	}
	path := filepath.Join(t.TempDir(), "stallspan")
	build := exec.Command("go", "build", "-tags", "grpcnotrace", "-o", path, ".")
	build.Dir = "../.."
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v: %s", err, text)
	}
	return path
}

// outcome is what is left of the product: a report of run, and findings of check.
type outcome struct {
	Run struct {
		Duration float64 `json:"duration_s"`
		Process  struct {
			OnCPU float64 `json:"on_cpu_s"`
		}
		Stall struct {
			Storage float64 `json:"storage_s"`
			Ready   float64 `json:"ready_s"`
			Other   float64 `json:"other_s"`
		}
		Evidence string
		Why      string `json:"no_schedule"`
	}
	Findings []struct {
		Area, What, State string
		Details           struct {
			Evidence string
			Lacks    []string
		}
	}
	fields    map[string]any // of run's report
	ran, text string         // what run printed, and all
}

// try runs the program in both ways, and again if a busy machine left too little evidence.
func try(t *testing.T, path string, answer func(string) unix.Errno) (o outcome) {
	t.Helper()
	for range 5 {
		o = outcome{}
		folder := t.TempDir()
		file := filepath.Join(folder, "report.json")
		environ := append(os.Environ(), "XDG_STATE_HOME="+folder, "OTEL_EXPORTER_OTLP_ENDPOINT=", working+"="+folder)
		var ran, checked bytes.Buffer
		var both sync.WaitGroup
		both.Go(func() {
			argv := []string{path, "check", "--json"}
			if got, err := run(t.Context(), argv, environ, &checked, &checked, answer); err != nil || got != 0 {
				t.Errorf("check: got status %d and %v, want 0: %s", got, err, &checked)
			}
		})
		argv := []string{path, "run", "--report", file, "--", os.Args[0]}
		if got, err := run(t.Context(), argv, environ, &ran, &ran, answer); err != nil || got != status {
			t.Errorf("run: got status %d and %v, want %d of its program: %s", got, err, status, &ran)
		}
		both.Wait()
		text, _ := os.ReadFile(file)
		plain := struct{ Run *map[string]any }{&o.fields}
		err := errors.Join(json.Unmarshal(text, &o), json.Unmarshal(text, &plain), json.Unmarshal(checked.Bytes(), &o))
		if err != nil {
			t.Fatalf("got %v, want a report and findings: %s%s", err, &ran, &checked)
		}
		o.ran, o.text = strings.Join(strings.Fields(ran.String()), " "), ran.String()+checked.String()
		if o.Run.Evidence != "pressure" {
			break
		}
	}
	return o
}

// compare checks what a refusal leaves, and returns a row of the table.
func compare(t *testing.T, call string, whole, left outcome) string {
	t.Helper()
	r := &left.Run
	_, about, _ := strings.Cut(call, " ")
	if r.Evidence != "schedule" && (r.Evidence != "sampled" || !slices.Contains(core, about)) {
		t.Errorf("got evidence %q of %q, want schedule, or sampled without what following needs", r.Evidence, r.Why)
	}
	if parts := r.Process.OnCPU + r.Stall.Storage + r.Stall.Ready + r.Stall.Other; math.Abs(parts-r.Duration) > 0.001 {
		t.Errorf("got a ledger of %.3f s, want %.3f", parts, r.Duration)
	}
	if n := strings.Count(left.ran, cmp.Or(r.Why, "refuse")); n > 1 {
		t.Errorf("run says %d times what is missing, want once: %s", n, left.ran)
	}
	clean(t, left.text)
	lost := slices.DeleteFunc(slices.Sorted(maps.Keys(whole.fields)), func(f string) bool {
		return left.fields[f] != nil || f == "slow_device" // of other programs
	})
	row := fmt.Sprintf("%s, without fields %q", r.Evidence, lost)
	for _, f := range left.Findings {
		if f.Area == "scheduler" && f.Details.Evidence != r.Evidence {
			t.Errorf("check promises evidence %q, and run has %q", f.Details.Evidence, r.Evidence)
		}
		if f.Area == "scheduler" || f.What == "latency" {
			row += fmt.Sprintf(" | %s: %s, lacks %q", f.What, f.State, f.Details.Lacks)
		}
	}
	return row + " | " + r.Why
}

func clean(t *testing.T, text string) {
	t.Helper()
	as := fmt.Sprintf("stallspan: the program failed: exit code %d\n", status) // as it should
	text = strings.ReplaceAll(text, as, "")
	if found := foreign.FindString(text); found != "" {
		t.Errorf("got %q, want words of the cause and of what to do", found)
	}
}

// only refuses one call.
func only(call string, number unix.Errno) func(string) unix.Errno {
	return func(c string) unix.Errno {
		if c == call {
			return number
		}
		return 0
	}
}

// TestRefused: each call of the kernel can be refused alone. What is left goes on, and one line has what is missing.
func TestRefused(t *testing.T) {
	path := built(t)
	var mu sync.Mutex
	seen := map[string]int{}
	whole := try(t, path, func(call string) unix.Errno {
		mu.Lock()
		defer mu.Unlock()
		seen[call]++
		return 0
	})
	if whole.Run.Evidence != "schedule" {
		t.Skipf("needs BPF: nothing else can be refused: %s", cmp.Or(whole.Run.Why, whole.text))
	}
	rows := map[string]string{"": compare(t, "", whole, whole)}
	t.Run("each", func(t *testing.T) {
		for call := range seen {
			for name, number := range refusals {
				if some[call] != name && !*all {
					continue
				}
				t.Run(strings.ReplaceAll(call, " ", "-")+"/"+name, func(t *testing.T) {
					t.Parallel()
					row := compare(t, call, whole, try(t, path, only(call, number)))
					mu.Lock()
					defer mu.Unlock()
					rows[call+" "+name] = row
				})
			}
		}
	})
	for _, refused := range slices.Sorted(maps.Keys(rows)) {
		t.Logf("%s | %s", cmp.Or(refused, "nothing"), rows[refused])
	}
	t.Logf("%d calls by name, %d refusals", len(seen), len(rows)-1)
}

// TestAgent: the log has a refusal once, the status has it, and the agent goes on.
func TestAgent(t *testing.T) {
	path := built(t)
	for call, name := range map[string]string{
		"PROG_LOAD on_switch": "EPERM", "LINK_CREATE on_fork": "EACCES", "MAP_CREATE threads": "ENOMEM",
		"BTF_LOAD": "EINVAL", "LINK_CREATE on_rename": "EACCES", "MAP_CREATE cells": "EPERM", "PROG_LOAD on_start": "EPERM",
	} {
		t.Run(strings.ReplaceAll(call, " ", "-"), func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			socket := filepath.Join(folder, "socket")
			ctx, stop := context.WithCancel(t.Context())
			got := struct {
				Rights struct {
					Scheduler bool
					Refused   string `json:"scheduler_refused"`
					Lacks     []string
				}
			}{}
			go func() {
				defer stop()
				if err := ask(socket, &got); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second) // for what it might say again
			}()
			environ := append(os.Environ(), "STALLSPAN_SOCKET="+socket, "XDG_STATE_HOME="+folder, "OTEL_EXPORTER_OTLP_ENDPOINT=")
			var log bytes.Buffer
			status, err := run(ctx, []string{path, "agent"}, environ, &log, &log, only(call, refusals[name]))
			if err != nil || status != 0 {
				t.Fatalf("got status %d and %v, want 0: %s", status, err, &log)
			}
			_, about, _ := strings.Cut(call, " ")
			refused, rights := slices.Contains(core, about), got.Rights
			if rights.Scheduler == refused || (rights.Refused != "") != refused {
				t.Errorf("got %+v, want that it is refused: %v", rights, refused)
			}
			cause := strings.TrimPrefix(rights.Refused, "following the scheduler ")
			if n := strings.Count(log.String(), cmp.Or(cause, strings.Join(rights.Lacks, ", "), "?")); n != 1 {
				t.Errorf("got %d times %+v in the log, want once: %s", n, rights, &log)
			}
			clean(t, log.String())
		})
	}
}

// ask takes the status of an agent, when it answers.
func ask(socket string, into any) error {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial}}
	for range 300 {
		if response, err := client.Get("http://agent/v1/status"); err == nil {
			defer response.Body.Close()
			return json.NewDecoder(response.Body).Decode(into)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return errors.New("the agent does not answer")
}

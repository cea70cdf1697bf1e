package agent

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
)

// statDocument is a line of stat --json in docs/stat.md. Other keys are an error.
type statDocument struct {
	Time     time.Time      `json:"time"`
	Interval float64        `json:"interval_s"`
	Disks    []statDiskLine `json:"disks"`
	GPUs     []struct {
		ID             string   `json:"id"`
		Name           string   `json:"name"`
		Status         string   `json:"status"`
		Utilization    *float64 `json:"utilization"`
		MemoryUsed     *uint64  `json:"memory_used_bytes"`
		MemoryTotal    *uint64  `json:"memory_total_bytes"`
		Temperature    *float64 `json:"temperature_celsius"`
		Power          *float64 `json:"power_watts"`
		LinkWidth      *int     `json:"pcie_link_width"`
		LinkGeneration *int     `json:"pcie_link_generation"`
	} `json:"gpus"`
	Pressure *struct {
		Some float64 `json:"io_some"`
		Full float64 `json:"io_full"`
	} `json:"pressure"`
	Core *struct {
		Name        string  `json:"name"`
		Utilization float64 `json:"utilization"`
	} `json:"busiest_core"`
}

type statDiskLine struct {
	Name         string   `json:"name"`
	Leaf         bool     `json:"leaf"`
	Reads        float64  `json:"reads_per_s"`
	Writes       float64  `json:"writes_per_s"`
	ReadBytes    float64  `json:"read_bytes_per_s"`
	WriteBytes   float64  `json:"write_bytes_per_s"`
	ReadsMerged  float64  `json:"reads_merged_per_s"`
	WritesMerged float64  `json:"writes_merged_per_s"`
	ReadAwait    float64  `json:"read_await_ms"`
	WriteAwait   float64  `json:"write_await_ms"`
	Await        float64  `json:"await_ms"`
	ReadSize     float64  `json:"read_size_bytes"`
	WriteSize    float64  `json:"write_size_bytes"`
	QueueDepth   float64  `json:"queue_depth"`
	Utilization  float64  `json:"utilization"`
	Discards     *float64 `json:"discards_per_s"`
	DiscardBytes *float64 `json:"discard_bytes_per_s"`
	DiscardAwait float64  `json:"discard_await_ms"`
	Flushes      *float64 `json:"flushes_per_s"`
	FlushesAwait float64  `json:"flush_await_ms"`
}

// statLines parses the output of stat --json.
func statLines(t *testing.T, text string) (list []statDocument) {
	t.Helper()
	for line := range strings.Lines(text) {
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		var d statDocument
		if err := decoder.Decode(&d); err != nil {
			t.Fatalf("got the error %v, want none: %s", err, line)
		}
		if d.Disks == nil || d.GPUs == nil {
			t.Errorf("an array is missing: %s", line)
		}
		list = append(list, d)
	}
	return list
}

func TestStatCounts(t *testing.T) {
	t.Parallel()
	v := stallspan(t, "stat", "--json", "0.2", "5")
	if code := v.run(); code != 0 {
		t.Fatalf("exit code %d: %s", code, v.err.String())
	}
	list := statLines(t, v.out.String())
	if len(list) != 5 {
		t.Fatalf("%d lines", len(list))
	}
	for i, d := range list {
		if d.Interval <= 0 || d.Core == nil || d.Core.Utilization < 0 || d.Core.Utilization > 1 {
			t.Errorf("got %+v, want an interval and the busiest core", d)
		}
		if i == 0 {
			continue
		}
		// The time between two lines is the interval of the later one: there is no gap.
		gap := d.Time.Sub(list[i-1].Time).Seconds()
		if gap < d.Interval-0.002 || gap > d.Interval+0.002 {
			t.Errorf("%.4f s between lines, an interval of %.4f s", gap, d.Interval)
		}
	}
}

func TestStatUsage(t *testing.T) {
	t.Parallel()
	for says, args := range map[string][]string{
		`there is no disk "soon"`:            {"soon"},
		"choose 100ms":                       {"0"},
		"1 or more":                          {"1", "0"},
		`unexpected argument "3"`:            {"1", "2", "3"},
		"choose one of them":                 {"--summary", "--json"},
		"unknown flag: --xml":                {"--xml"},
		`INTERVAL "-1": choose 100ms to 24h`: {"-1"},
		"unknown flag: -q: see":              {"-xq"},
	} {
		v := stallspan(t, append([]string{"stat"}, args...)...)
		if code := v.run(); code != cli.ExitUsage || !strings.Contains(v.errorLine(), says) || v.out.Len() > 0 {
			t.Errorf("%q: exit code %d, %s%s", args, code, v.err.String(), v.out.String())
		}
	}
}

// As with "| head -1": the reader has what it wants, and nothing is wrong.
func TestStatReaderLeaves(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--json", "--wide"} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		v := stallspan(t, "stat", flag, "0.1")
		v.Stdout = w
		v.start()
		_ = w.Close()
		if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
			t.Errorf("%s: got %v, want a line", flag, err)
		}
		_ = r.Close()
		if code := v.wait(); code != 0 || strings.Contains(v.err.String(), "pipe") {
			t.Errorf("%s: exit code %d: %s", flag, code, v.err.String())
		}
	}
}

func TestStatCannotWrite(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("needs /dev/full: %v", err)
	}
	defer func() { _ = full.Close() }()
	v := stallspan(t, "stat", "--json", "0.1")
	v.Stdout = full
	if code := v.run(); code != cli.ExitFailed || !strings.Contains(v.err.String(), "the output cannot be written: ") {
		t.Errorf("exit code %d: %s", code, v.err.String())
	}
}

func TestStatIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		v := stallspan(t, "stat", "0.1")
		out := &liveOutput{}
		v.Stdout = out
		v.start()
		out.until(t, 2, "busiest core")
		if err := v.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if code := v.wait(); code != 0 || !strings.HasSuffix(out.String(), "\n") {
			t.Errorf("%v: exit code %d: %q", signal, code, out.String())
		}
	}
}

// The table follows the width of the terminal.
func TestStatOnATerminal(t *testing.T) {
	t.Parallel()
	for _, wide := range []bool{false, true} {
		args := []string{"stat", "0.2"}
		if wide {
			args = append(args, "--wide")
		}
		v := stallspan(t, args...)
		s := onScreen(t, v)
		s.until(t, 2, "busiest core") // the first block is complete
		if !strings.Contains(s.String(), "Device") {
			t.Skip("no disk here has done any I/O")
		}
		if err := pty.Setsize(s.keys, &pty.Winsize{Rows: 25, Cols: 80}); err != nil {
			t.Fatal(err)
		}
		seen := strings.Count(s.String(), "busiest core")
		s.until(t, seen+3, "busiest core") // one may have been in flight
		s.press(t, "\x03")
		if code := s.end(v); code != 0 {
			t.Errorf("exit code %d: %q", code, s.String())
		}
		all := s.String()
		block := all[:strings.LastIndex(all, "busiest core")]
		block = block[strings.LastIndex(block, "Device"):]
		header, _, _ := strings.Cut(block, "\r\n")
		if narrow := output.Columns(header) <= 80; narrow == wide || strings.Contains(header, "f_await") != wide {
			t.Errorf("wide %v, on 80 columns: %q", wide, header)
		}
	}
}

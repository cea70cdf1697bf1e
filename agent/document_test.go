package agent

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/agent/internal/reports"
	"github.com/stallspan/stallspan/internal/window"
)

// reportDocument is the report of docs/report.md. Other keys are an error.
type reportDocument struct {
	Program  *reports.ProgramDocument `json:"program"`
	Run      *reportWindow            `json:"run"`
	Windows  []reportWindow           `json:"windows"`
	Problems []string                 `json:"problems"`
}

type reportWindow struct {
	ID         string    `json:"id"`
	Source     string    `json:"source"`
	Scope      string    `json:"scope"`
	Kind       string    `json:"kind"`
	Name       string    `json:"name"`
	Model      string    `json:"model"`
	Epoch      *int      `json:"epoch"`
	Within     string    `json:"within"`
	Unfinished bool      `json:"unfinished"`
	Ended      string    `json:"ended"`
	Failed     bool      `json:"failed"`
	Start      time.Time `json:"start"`
	End        time.Time `json:"end"`
	Duration   float64   `json:"duration_s"`
	GPU        *struct {
		IDs       []string `json:"ids"`
		Busy      float64  `json:"busy_s"`
		BusyRatio float64  `json:"busy_ratio"`
		Ledgers   []struct {
			ID      string  `json:"id"`
			Index   *int    `json:"index"`
			Busy    float64 `json:"busy_s"`
			Storage float64 `json:"storage_s"`
			CPU     float64 `json:"cpu_s"`
			Other   float64 `json:"other_s"`
		} `json:"ledgers"`
		Devices []struct {
			ID          string             `json:"id"`
			Busy        float64            `json:"busy_ratio"`
			SM          *float64           `json:"sm_active"`
			Occupancy   *float64           `json:"sm_occupancy"`
			Tensor      *float64           `json:"tensor_active"`
			DRAM        *float64           `json:"dram_active"`
			Clock       *float64           `json:"sm_clock_hz"`
			Temperature *float64           `json:"temperature_celsius"`
			Power       *float64           `json:"power_watts"`
			Memory      *float64           `json:"memory_used_bytes"`
			Throttled   map[string]float64 `json:"throttled"`
		} `json:"devices"`
	} `json:"gpu"`
	Process *struct {
		OnCPU float64 `json:"on_cpu_s"`
	} `json:"process"`
	Stall *struct {
		Storage float64  `json:"storage_s"`
		CPU     *float64 `json:"cpu_s"`
		Other   float64  `json:"other_s"`
		Ready   float64  `json:"ready_s"`
		Network float64  `json:"network_s"`
		Reasons []struct {
			Kind string  `json:"kind"`
			Name string  `json:"name"`
			Time float64 `json:"time_s"`
		} `json:"other_reasons"`
	} `json:"stall"`
	Evidence   string `json:"evidence"`
	Moments    int    `json:"moments"`
	NoSchedule string `json:"no_schedule"`
	Verdict    string `json:"verdict"`
	Finding    string `json:"finding"`
	Remedy     string `json:"remedy"`
	Findings   []struct {
		Kind   string `json:"kind"`
		Text   string `json:"text"`
		Remedy string `json:"remedy"`
	} `json:"findings"`
	Slow           bool   `json:"slow"`
	SlownessReason string `json:"slowness_reason"`
	Baseline       *struct {
		Median float64 `json:"median_s"`
		P95    float64 `json:"p95_s"`
		Count  int     `json:"count"`
	} `json:"baseline"`
	SpeedupBound *float64 `json:"speedup_bound"`
	SpeedupLow   float64  `json:"speedup_low"`
	SpeedupHigh  float64  `json:"speedup_high"`
	WhatIf       *struct {
		NoStorage    float64 `json:"no_storage"`
		Low          float64 `json:"no_storage_low"`
		High         float64 `json:"no_storage_high"`
		TwiceWorkers float64 `json:"twice_the_workers"`
		TwoWorkers   float64 `json:"two_workers_at_most"`
		TwiceGPU     float64 `json:"gpu_twice_as_fast"`
		NoNetwork    float64 `json:"no_network"`
		NetworkLow   float64 `json:"no_network_low"`
		NetworkHigh  float64 `json:"no_network_high"`
		RequestsLow  float64 `json:"eight_times_the_requests_low"`
		RequestsHigh float64 `json:"eight_times_the_requests_high"`
	} `json:"what_if"`
	Load *struct {
		Path      string         `json:"path"`
		Size      uint64         `json:"size"`
		Hit       *float64       `json:"page_cache_hit_ratio"`
		Estimated bool           `json:"estimated"`
		Layer     bool           `json:"image_layer"`
		Evicted   uint64         `json:"evicted_bytes"`
		IdleAhead float64        `json:"idle_before_s"`
		Readers   []reportReader `json:"readers"`
		Movers    []reportReader `json:"movers_before"`
	} `json:"load"`
	Own *struct {
		Read    uint64 `json:"read_bytes"`
		Written uint64 `json:"write_bytes"`
	} `json:"own_io"`
	OtherReaders int          `json:"windows_on_its_disks"`
	Disks        []reportDisk `json:"disks"`
	SlowDevice   *struct {
		reportDisk
		On    []string `json:"on"`
		Limit *struct {
			Cgroup     string `json:"cgroup"`
			Control    string `json:"control"`
			ReadBytes  uint64 `json:"read_bytes"`
			WriteBytes uint64 `json:"write_bytes"`
			Reads      uint64 `json:"reads"`
			Writes     uint64 `json:"writes"`
		} `json:"limit"`
	} `json:"slow_device"`
	Mounts []struct {
		Point           string           `json:"point"`
		Type            string           `json:"type"`
		Source          string           `json:"source"`
		Read            *reportMountDone `json:"read"`
		Write           *reportMountDone `json:"write"`
		Other           *reportMountDone `json:"other"`
		Requests        bool             `json:"requests"`
		Retransmissions *uint64          `json:"retransmissions"`
		Timeouts        uint64           `json:"timeouts"`
		Called          *uint64          `json:"read_by_calls_bytes"`
		Waiting         *float64         `json:"requests_waiting_s"`
		MeanWaiting     *float64         `json:"requests_waiting_mean"`
		Connections     int              `json:"connections"`
		ReadSize        uint64           `json:"read_size_bytes"`
		Partial         bool             `json:"partial"`
	} `json:"mounts"`
	Peers []struct {
		Address     string  `json:"address"`
		Process     string  `json:"process"`
		Accepted    bool    `json:"accepted"`
		Serves      bool    `json:"serves_data"`
		Waited      float64 `json:"waited_s"`
		Received    uint64  `json:"received_bytes"`
		Sent        uint64  `json:"sent_bytes"`
		Messages    uint64  `json:"messages_sent"`
		Connections int     `json:"connections"`
		Opened      uint64  `json:"connections_opened"`
		RTT         float64 `json:"min_rtt_s"`
	} `json:"peers"`
	Pressure *struct {
		Some float64 `json:"io_some_s"`
		Full float64 `json:"io_full_s"`
	} `json:"pressure"`
	StorageStalls []struct {
		Start    time.Time `json:"start"`
		Duration float64   `json:"duration_s"`
	} `json:"storage_stalls"`
	UncertaintyRatio *float64 `json:"uncertainty_ratio"`
	Interrupted      bool     `json:"interrupted"`
}

type reportReader struct {
	PID   int    `json:"pid"`
	Name  string `json:"name"`
	Group string `json:"cgroup"`
	Bytes uint64 `json:"read_bytes"`
	Own   bool   `json:"own"`
}

type reportMountDone struct {
	Operations uint64   `json:"operations"`
	Bytes      uint64   `json:"bytes"`
	Time       *float64 `json:"time_mean_s"`
	RoundTrip  *float64 `json:"round_trip_mean_s"`
	Queue      *float64 `json:"queue_mean_s"`
}

// reportLatency is how long the operations of a disk took.
type reportLatency struct {
	Operations uint64  `json:"operations"`
	P50        float64 `json:"p50_s"`
	P99        float64 `json:"p99_s"`
	Max        float64 `json:"max_s"`
	Estimated  bool    `json:"estimated"`
}

type reportDisk struct {
	Name            string         `json:"name"`
	ReadBytes       uint64         `json:"read_bytes"`
	ReadOperations  uint64         `json:"read_operations"`
	ReadAwait       *float64       `json:"read_await_s"`
	WriteBytes      uint64         `json:"write_bytes"`
	WriteOperations uint64         `json:"write_operations"`
	WriteAwait      *float64       `json:"write_await_s"`
	QueueDepth      float64        `json:"queue_depth"`
	BusyRatio       float64        `json:"busy_ratio"`
	UnderPath       bool           `json:"under_path"`
	ReadLatency     *reportLatency `json:"read_latency"`
	WriteLatency    *reportLatency `json:"write_latency"`
	ReadCeiling     float64        `json:"read_ceiling"`
	ReadRatio       float64        `json:"read_ceiling_ratio"`
	WriteCeiling    float64        `json:"write_ceiling"`
	WriteRatio      float64        `json:"write_ceiling_ratio"`
}

// apart is the maximum disorder of wall times. A window's end is its start plus a duration of another clock, which is
// read a moment before or after.
const apart = 20 * time.Millisecond

func (w *reportWindow) label() string {
	switch {
	case w.Epoch != nil:
		return w.Kind + " " + strconv.Itoa(*w.Epoch)
	case w.Model != "":
		return w.Kind + " " + w.Model
	case w.Name != "":
		return w.Kind + " " + w.Name
	}
	return w.Kind
}

// parseReport reads a report, and checks what holds for every report.
func parseReport(t *testing.T, text []byte) *reportDocument {
	t.Helper()
	var d reportDocument
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		t.Fatalf("got the error %v, want none: %s", err, text)
	}
	if d.Run == nil || len(d.Windows) == 0 {
		t.Fatalf("no run or no windows: %s", text)
	}
	for i := range d.Windows {
		w := &d.Windows[i]
		w.check(t)
		if i > 0 && w.Start.Add(apart).Before(d.Windows[i-1].Start) {
			t.Errorf("%s began before the window in front of it", w.label())
		}
		if w.Start.Add(apart).Before(d.Run.Start) || w.End.After(d.Run.End.Add(apart)) {
			t.Errorf("%s from %v to %v is not within the run, %v to %v", w.label(), w.Start, w.End, d.Run.Start, d.Run.End)
		}
	}
	d.Run.check(t)
	return &d
}

func (w *reportWindow) check(t *testing.T) {
	t.Helper()
	none := w.Failed || strings.Contains(w.Finding, "other programs used") // there is nothing to do for these
	if w.Duration < 0 || w.ID == "" || w.Verdict == "" || w.Finding == "" ||
		w.Remedy == "" && !none && w.Duration >= window.MinJudged.Seconds() {
		t.Errorf("%s: got %+v, want an id, a duration, a verdict, a finding and a remedy", w.label(), w)
	}
	if between := w.End.Sub(w.Start).Seconds(); math.Abs(between-w.Duration) > 1e-6 {
		t.Errorf("%s: %v s from start to end, duration %v s", w.label(), between, w.Duration)
	}
	if w.Slow != (w.SlownessReason != "") {
		t.Errorf("%s: slow %v for the reason %q", w.label(), w.Slow, w.SlownessReason)
	}
	if (w.Stall != nil) != (w.Evidence != "") {
		t.Errorf("%s: got the evidence %q, want one with a ledger and none without", w.label(), w.Evidence)
	}
	if w.UncertaintyRatio != nil && *w.UncertaintyRatio <= 0.01 {
		t.Errorf("%s: got an uncertainty of %v, want none", w.label(), *w.UncertaintyRatio)
	}
	if w.Stall == nil {
		if w.Process != nil || w.GPU != nil {
			t.Errorf("%s: half a ledger", w.label())
		}
		return
	}
	sum, total := w.Stall.Storage+w.Stall.Ready+w.Stall.Other, w.Duration
	if w.GPU != nil {
		sum, total = sum+w.GPU.Busy+*w.Stall.CPU, total*float64(len(w.GPU.IDs))
	} else if w.Scope != "host" {
		sum += w.Process.OnCPU
	}
	if math.Abs(sum-total) > 1e-6 {
		t.Errorf("%s: the ledger adds up to %v s of %v s", w.label(), sum, total)
	}
}

// readReport reads the report of a call with "--report", path.
func readReport(t *testing.T, path string) *reportDocument {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return parseReport(t, text)
}

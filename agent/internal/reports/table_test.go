package reports

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
	"github.com/stallspan/stallspan/test/golden"
)

// row is a report with these parts of its GPU time, in percent. The rest is "other".
func row(w window.Window, took time.Duration, gpus []string, busy, storage, cpu int,
	verdict window.Verdict) *window.Report {
	w.Start = sample.Stamp{Mono: time.Hour}
	w.End = sample.Stamp{Mono: time.Hour + took}
	r := &window.Report{Window: w, Facts: window.Facts{GPUIDs: gpus}, Ledger: window.Ledger{Split: true}, Judgement: window.Judgement{Verdict: verdict, Speedup: 100 / float64(100-storage)}}
	total := r.GPUTime()
	r.Busy, r.Storage = total*time.Duration(busy)/100, total*time.Duration(storage)/100
	r.CPU = total * time.Duration(cpu) / 100
	r.Other = total - r.Busy - r.Storage - r.CPU
	return r
}

func epoch(n int) window.Window { return window.Window{Kind: window.Epoch, Epoch: n, HasEpoch: true} }

func load(model string) window.Window {
	return window.Window{Kind: window.ModelLoad, Model: model}
}

func disks(names ...string) (list []window.DiskUse) {
	for _, name := range names {
		list = append(list, window.DiskUse{Name: name})
	}
	return list
}

// tables are the arguments of printTable, by the name of the golden file.
func tables() map[string]struct {
	reports  []*window.Report
	problems []error
} {
	one, two := []string{"GPU-1"}, []string{"GPU-1", "GPU-2"}

	slow := row(epoch(1), 12_345*time.Millisecond, one, 21, 75, 2, window.StorageBound)
	slow.Slow, slow.Disks = true, disks("nvme0n1")
	busy := row(epoch(2), 4*time.Second, two, 97, 1, 1, window.GPUBound)
	busy.Disks = disks("nvme0n1", "sda", "sdb")
	mixed := row(load("resnet50"), 812*time.Millisecond, one, 30, 30, 30, window.Mixed)
	mixed.Mounts = []sample.Mount{{Point: "/data", Type: "fuse.rclone", Source: "remote:bucket"}}

	alone := row(epoch(0), 250*time.Second, nil, 0, 62, 10, window.StorageBound)
	alone.Slow, alone.Disks = true, disks("sda")
	cut := row(epoch(12345), 3*time.Second, nil, 0, 1, 95, window.CPUBound)
	cut.Unfinished = true
	blind := &window.Report{Window: epoch(7), Judgement: window.Judgement{Verdict: window.Unknown, Missing: []window.Missing{{Reason: window.NoReadings}}}}

	var hundred []*window.Report
	for n := range 100 {
		r := row(epoch(n), time.Minute, one, 50, 40, 5, window.StorageBound)
		r.Slow, r.Disks = n%30 == 0, disks("dm-0")
		hundred = append(hundred, r)
	}

	var stepped []*window.Report
	for n, period := range []time.Duration{318 * time.Millisecond, 320 * time.Millisecond, 2400 * time.Millisecond, 0} {
		r := row(epoch(n), time.Minute, one, 50, 40, 5, window.StorageBound)
		if period > 0 {
			r.Steps = &ledger.Steps{Period: period, Count: int(time.Minute / period), Confidence: 0.97}
		}
		stepped = append(stepped, r)
	}
	stepped[2].Steps.Count = 0

	var nested []*window.Report // an epoch and its steps need one sentence, if it is the same one
	for n := range 2 {
		of := row(epoch(n), 10*time.Second, nil, 0, 60, 30, window.StorageBound)
		of.ID = fmt.Sprint("epoch", n)
		nested = append(nested, of)
		for i := range 3 {
			part := row(window.Window{Kind: window.Steps, Within: of.ID}, 3*time.Second, nil, 0, 60, 30, window.StorageBound)
			if n == 1 && i > 0 {
				part = row(window.Window{Kind: window.Steps, Within: of.ID}, 3*time.Second, nil, 0, 2, 90, window.CPUBound)
			}
			nested = append(nested, part)
		}
	}

	path := row(load("/models/meta-llama/Llama-3-8B-Instruct-q8_0.gguf"), 604_800*time.Second, nil, 0, 99, 0,
		window.StorageBound)
	path.Slow, path.Disks = true, disks("mmcblk0boot0")
	path.Mounts = []sample.Mount{{Point: "/" + strings.Repeat("very/long/path/", 12), Type: "nfs4"}} // fits into no line
	wide := row(load("模型/通义千问-7B-聊天"), time.Second, nil, 0, 10, 80, window.CPUBound)
	wide.Disks, wide.Load.Readers = disks("sda"), []window.Reader{{PID: 7, Name: strings.Repeat("数据", 60)}}
	hostile := row(window.Window{Kind: window.Custom, Name: "\x1b[31mred\r\n\ttwo\xff"}, 250*time.Microsecond, nil, 0, 0,
		0, window.Unknown)
	many := row(epoch(3), time.Second, nil, 0, 2, 0, window.Unknown)
	many.Disks = disks(strings.Split(strings.Repeat("nvme0n1 ", 200), " ")...)

	gone := row(epoch(9), time.Second, nil, 0, 20, 70, window.CPUBound)

	var short []*window.Report // they have no remedy, and no line for one
	for n := range 2 {
		r := row(epoch(n), 2*time.Millisecond, nil, 0, 0, 20, window.Unknown)
		r.Missing = []window.Missing{{Reason: window.TooShort}}
		short = append(short, r)
	}

	var late []*window.Report
	for n := range 4 {
		r := row(epoch(n), 600*time.Millisecond, nil, 0, 1, 2, window.Unknown)
		if n == 2 || n == 3 {
			r.End.Mono += 1400 * time.Millisecond
			r.ApplyLimits(window.Limits{Baseline: &window.Baseline{P95: 602 * time.Millisecond, Count: 5 + n}})
		}
		late = append(late, r)
	}

	var trained []*window.Report
	for n := range 3 {
		r := row(epoch(n), time.Minute, one, 95, 1, 1, window.GPUBound)
		r.Findings = []window.Finding{window.IdleTensorCores{GPUs: 1, Busy: 0.95, Tensor: 0.11, SM: 0.3, SmallKernels: true}}
		if n == 1 {
			r.Findings = append(r.Findings, window.Throttling{GPU: &window.GPUUse{}, Cause: history.ThrottledThermal,
				Share: 0.34})
		}
		trained = append(trained, r)
	}

	measured := row(epoch(1), 10*time.Second, one, 30, 55, 5, window.StorageBound)
	measured.Evidence, measured.Disks = window.FromSchedule, disks("sda")
	measured.Speedup, measured.SpeedupLow, measured.SpeedupHigh = 2.2, 2, 2.4
	measured.WhatIf = &window.WhatIf{NoStorage: 2.2, Low: 2, High: 2.4, Workers: 1.04, GPU: 1.2}
	measured.OtherReasons = []window.OtherReason{
		{Kind: window.OtherNetwork, Name: "receiving from 10.0.0.7:443 over TCP", Time: 800 * time.Millisecond},
		{Kind: window.OtherTimer, Name: "timer", Time: 150 * time.Millisecond},
	}
	network := row(epoch(2), 10*time.Second, one, 30, 1, 5, window.Unknown)
	network.Evidence = window.FromSchedule
	network.OtherReasons = []window.OtherReason{
		{Kind: window.OtherNetwork, Name: "receiving from 10.0.0.7:443 over TCP", Time: 6 * time.Second},
	}
	network.WhatIf = &window.WhatIf{NoStorage: 1, GPU: 1.2}
	estimated := row(epoch(3), 10*time.Second, one, 30, 55, 5, window.StorageBound)
	estimated.Evidence = window.FromPressure
	estimated.NoSchedule = "following the scheduler needs root, or CAP_BPF and CAP_PERFMON"

	type shown = struct {
		reports  []*window.Report
		problems []error
	}
	return map[string]shown{
		"gpu":     {reports: []*window.Report{mixed, slow, busy, gone}},
		"process": {reports: []*window.Report{alone, cut}},
		"unknown": {reports: []*window.Report{blind}, problems: []error{
			errors.New("pressure: this kernel reports no I/O pressure, boot with psi=1"),
			errors.New("disk: open /host/a/folder/that/has/a/very/long/name/because/containers/have/such/proc/diskstats: " +
				"permission denied"),
		}},
		"hundred":   {reports: hundred},
		"late":      {reports: late},
		"short":     {reports: short},
		"measured":  {reports: []*window.Report{measured, network}},
		"estimated": {reports: []*window.Report{measured, estimated}},
		"trained":   {reports: trained},
		"steps":     {reports: stepped},
		"nested":    {reports: nested},
		"names":     {reports: []*window.Report{path, wide, hostile, many}},
		"nothing":   {},
		"instant":   {reports: []*window.Report{row(epoch(1), 0, nil, 0, 0, 0, window.Unknown)}},
	}
}

func TestTable(t *testing.T) {
	for name, given := range tables() {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			PrintTable(&out, given.reports, given.problems)
			if name == "measured" || name == "gpu" {
				PrintWhatIf(&out, given.reports)
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), out.Bytes())
			for _, line := range strings.Split(out.String(), "\n") {
				if output.Columns(line) > output.TableWidth || strings.TrimRight(line, " ") != line {
					t.Errorf("%d columns: %q", output.Columns(line), line)
				}
			}
		})
	}
}

func TestEveryVerdictFits(t *testing.T) {
	for _, verdict := range []window.Verdict{window.GPUBound, window.StorageBound, window.CPUBound, window.Mixed,
		window.Unknown} {
		for _, gpus := range [][]string{nil, {"GPU-1"}} {
			for _, took := range []time.Duration{0, 999_900 * time.Nanosecond, 99_900 * time.Microsecond,
				999_700 * time.Microsecond, 99_999 * time.Millisecond, windows.MaxLength} {
				r := row(load("a/model/with/a/name"), took, gpus, 0, 100, 0, verdict)
				r.Slow, r.Unfinished, r.Disks = true, true, disks("nvme0c0n1", "sda")
				var out bytes.Buffer
				PrintTable(&out, []*window.Report{r}, nil)
				for _, line := range strings.Split(out.String(), "\n") {
					if output.Columns(line) > output.TableWidth {
						t.Errorf("%s, %v: %d columns: %q", verdict, took, output.Columns(line), line)
					}
				}
			}
		}
	}
}

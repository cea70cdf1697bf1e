//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/lab/joblog"
	"github.com/stallspan/stallspan/lab/scenario"
)

// The kinds of evidence that a job can be run with.
const (
	schedule = "schedule"
	sampled  = "sampled"
)

// Limits that make a result void. They were chosen before any result.
const (
	shortest = 0.3  // seconds of a window
	stolen   = 0.05 // share of the machine's time that the hypervisor took
	foreign  = 0.15 // share of the machine's time that other programs worked: no speed-up
	repeats  = 0.10 // by how much two reruns may differ, relative
	margin   = 0.15 // a prediction counts if storage was at least this share, as for the verdict
)

// result is a window's truth and what was found.
type result struct {
	Job      string         `json:"job"`
	Seed     uint64         `json:"seed"`
	Wanted   string         `json:"wanted"`   // schedule or sampled
	Evidence string         `json:"evidence"` // that the report names
	Window   string         `json:"window"`
	Cold     bool           `json:"cold"`
	Seconds  float64        `json:"duration_s"`
	Truth    scenario.Parts `json:"truth"`
	Late     float64        `json:"late_s"`  // in CPU and other of the truth, where it fits best
	Ready    float64        `json:"ready_s"` // in storage and CPU of the truth, where it fits best
	Found    scenario.Parts `json:"found"`
	Error    float64        `json:"error"` // of the largest part, as a share
	Label    window.Verdict `json:"label,omitempty"`
	Verdict  window.Verdict `json:"verdict"`
	Finding  string         `json:"finding"`
	Remedy   string         `json:"remedy,omitempty"`

	Predicted   float64 `json:"predicted,omitempty"` // speed-up of the cold window
	Low         float64 `json:"low,omitempty"`       // its range
	High        float64 `json:"high,omitempty"`
	MoreLow     float64 `json:"more_low,omitempty"`     // with eight times the requests at once
	MoreHigh    float64 `json:"more_high,omitempty"`    // the other end
	MoreWorkers float64 `json:"more_workers,omitempty"` // predicted speed-up with twice the workers
	FasterGPU   float64 `json:"faster_gpu,omitempty"`   // predicted speed-up with a GPU twice as fast
	Measured    float64 `json:"measured,omitempty"`     // by the reruns from memory
	Uncertainty float64 `json:"uncertainty,omitempty"`

	Void        string  `json:"void,omitempty"`         // why the window does not count
	VoidSpeedup string  `json:"void_speedup,omitempty"` // why its speed-up does not count
	Steal       float64 `json:"steal"`                  // share of the machine's time
	Foreign     float64 `json:"foreign"`                // share of the machine's time that other programs worked
	Sectors     int64   `json:"sectors"`                // that the disk read
}

func (r *result) right() bool {
	return r.Label == scenario.Labelled(r.Verdict)
}

// unseen reports whether a window that waited for the network is unknown because the kernel gave no scheduler's events:
// which thread or peer was waited for is not known then.
func (r *result) unseen() bool {
	return r.Label == window.NetworkBound && r.Verdict == window.Unknown && r.Evidence != schedule
}

// speedupError is the error of the prediction, relative.
func (r *result) speedupError() float64 { return math.Abs(r.Predicted-r.Measured) / r.Measured }

// reported is what is read of a report (docs/report.md).
type reported struct {
	Windows []struct {
		ID       string  `json:"id"`
		Duration float64 `json:"duration_s"`
		Evidence string  `json:"evidence"`
		GPU      *struct {
			Busy float64 `json:"busy_s"`
		} `json:"gpu"`
		Process struct {
			OnCPU float64 `json:"on_cpu_s"`
		} `json:"process"`
		Stall struct {
			Storage float64 `json:"storage_s"`
			CPU     float64 `json:"cpu_s"`
			Ready   float64 `json:"ready_s"`
			Other   float64 `json:"other_s"`
			Network float64 `json:"network_s"`
		} `json:"stall"`
		Verdict     window.Verdict `json:"verdict"`
		Finding     string         `json:"finding"`
		Remedy      string         `json:"remedy"`
		Speedup     float64        `json:"speedup_bound"`
		Uncertainty float64        `json:"uncertainty_ratio"`
		WhatIf      *struct {
			Low         float64 `json:"no_storage_low"`
			High        float64 `json:"no_storage_high"`
			NetworkLow  float64 `json:"no_network_low"`
			NoNetwork   float64 `json:"no_network"`
			NetworkHigh float64 `json:"no_network_high"`
			MoreLow     float64 `json:"eight_times_the_requests_low"`
			MoreHigh    float64 `json:"eight_times_the_requests_high"`
			MoreWorkers float64 `json:"twice_the_workers"`
			FasterGPU   float64 `json:"gpu_twice_as_fast"`
		} `json:"what_if"`
	} `json:"windows"`
}

// judge compares the report with the log.
func (r *running) judge(seed uint64, evidence string) ([]*result, error) {
	folders := []string{filepath.Join(r.folder, logFolder)}
	if r.job.Second != nil {
		folders = append(folders, filepath.Join(r.folder, secondFolder))
	}
	l, err := joblog.Read(folders...)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(r.report)
	if err != nil {
		return nil, err
	}
	var report reported
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, err
	}
	results, err := r.compare(l, report)
	for _, one := range results {
		one.Job, one.Seed, one.Wanted = r.job.Name, seed, evidence
	}
	return results, err
}

// compare makes the results of all windows. The first one is cold, the others are its reruns from memory.
func (r *running) compare(l *joblog.Log, report reported) ([]*result, error) {
	if len(report.Windows) != len(l.Windows) {
		return nil, fmt.Errorf("the report has %d windows, the log %d", len(report.Windows), len(l.Windows))
	}
	for i := range l.Windows {
		w := &l.Windows[i]
		if f := report.Windows[i]; w.ID != "" && w.ID != f.ID {
			return nil, fmt.Errorf("window %s of the log is %s in the report", w.ID, f.ID)
		} else if w.End == 0 { // it lasted until the program ended, which only the report knows
			w.End = w.Start + int64(f.Duration*1e9)
		}
	}
	cost := joblog.Costs(l, l.Windows[1:])
	var results []*result
	for i, w := range l.Windows {
		f := report.Windows[i]
		one := &result{
			Window: w.Name, Cold: i == 0, Seconds: float64(w.End-w.Start) / 1e9, Evidence: f.Evidence,
			Verdict: f.Verdict, Finding: f.Finding, Remedy: f.Remedy, Uncertainty: f.Uncertainty,
			Found: scenario.Parts{Storage: f.Stall.Storage, CPU: f.Stall.CPU + f.Stall.Ready, Other: f.Stall.Other,
				Network: f.Stall.Network},
		}
		if f.GPU != nil {
			one.Found.Busy = f.GPU.Busy
		} else {
			one.Found.CPU = f.Process.OnCPU + f.Stall.Ready
		}
		one.state(l, w)
		ofStorage := cost
		if !one.Cold && one.Sectors < warmSectors {
			ofStorage = nil
		}
		d := joblog.Truth(l, joblog.Drivers(l), r.job.GPUs > 0, w.Start, w.End, ofStorage)
		one.Late, one.Ready, one.Label = d.Late, d.Ready, d.Label()
		one.Truth, one.Error = d.Apart(one.Found)
		switch {
		case one.Seconds < shortest:
			one.Void = fmt.Sprintf("shorter than %.1f s", shortest)
		case one.Steal > stolen:
			one.Void = fmt.Sprintf("%.0f %% of the machine's time was stolen", 100*one.Steal)
		case math.Abs(one.Seconds-f.Duration) > 0.02*one.Seconds+0.02:
			one.Void = fmt.Sprintf("its ends differ: %.2f s in the log, %.2f s in the report", one.Seconds, f.Duration)
		}
		if w := f.WhatIf; w != nil {
			one.Low, one.High, one.MoreWorkers, one.FasterGPU = w.Low, w.High, w.MoreWorkers, w.FasterGPU
			one.MoreLow, one.MoreHigh = w.MoreLow, w.MoreHigh
		}
		if one.Cold {
			one.Predicted = max(f.Speedup, 1)
		}
		// The reruns are with a fast server. Of a mixed window, the remedies have this prediction, and Speedup has not.
		w := f.WhatIf
		if w != nil && w.NoNetwork > 0 && (f.Verdict == window.NetworkBound || r.job.Server != nil) {
			one.Low, one.High = w.NetworkLow, w.NetworkHigh
			if one.Cold {
				one.Predicted = w.NoNetwork
			}
		}
		results = append(results, one)
	}
	rerun(results, r.job.Second == nil)
	return results, nil
}

// otherWork is why a speed-up does not count where other programs worked.
const otherWork = "other programs took CPU time"

// warmSectors is how much the disk may read in a window from memory: 1 MiB, of metadata and of other programs.
const warmSectors = 1 << 20 / 512

// rerun sets the measured speed-up of the first result by the others. alone is false if another job belongs to it.
func rerun(results []*result, alone bool) {
	if len(results) < 3 {
		return
	}
	cold, a, b := results[0], results[1].Seconds, results[2].Seconds
	mean := (a + b) / 2
	cold.Measured = cold.Seconds / mean
	switch {
	case math.Abs(a-b) > repeats*mean:
		cold.VoidSpeedup = fmt.Sprintf("the reruns took %.2f and %.2f s", a, b)
	case cold.Truth.Storage+cold.Truth.Network < margin*cold.Truth.Total():
		cold.VoidSpeedup = "it hardly waited for data"
	case alone && max(cold.Foreign, results[1].Foreign, results[2].Foreign) > foreign:
		cold.VoidSpeedup = otherWork
	case cold.Void != "":
		cold.VoidSpeedup = cold.Void
	}
}

// state sets what the machine did in a window.
func (r *result) state(l *joblog.Log, w joblog.Window) {
	var before, after joblog.Machine
	for _, m := range l.States {
		if m.At <= w.Start {
			before = m
		}
		if m.At >= w.End-1e8 && after.At == 0 {
			after = m
		}
	}
	if before.At == 0 || after.At <= before.At {
		return
	}
	const tick = 1e7 // ns
	r.Sectors = after.Sectors - before.Sectors
	share := tick / float64(after.At-before.At) / cpus
	r.Foreign = float64(after.Work-before.Work-(after.Own-before.Own)) * share
	r.Steal = float64(after.Steal-before.Steal) * share
}

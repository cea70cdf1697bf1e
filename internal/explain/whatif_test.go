package explain

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/internal/window"
)

// bound is a window that waits for storage, with the answers of its replay.
func bound(w *window.WhatIf, v window.Verdict) *window.Report {
	r := &window.Report{Facts: window.Facts{Scope: window.Process, GPUIDs: []string{"gpu0"}, Disks: []window.DiskUse{{Name: "sda", ReadBytes: 500 << 20, ReadOperations: 500,
		ReadCeiling: 1 << 30, ReadCeilingRatioNow: 0.05}}}, Judgement: window.Judgement{Verdict: v, Speedup: 2.7, WhatIf: w}, Ledger: window.Ledger{Evidence: window.FromSchedule}}
	r.Kind = window.Epoch
	if w != nil {
		r.Speedup = w.NoStorage
	}
	divide(r, map[window.Verdict]window.Shares{window.StorageBound: {Busy: 0.4, Storage: 0.6},
		window.CPUBound: {Busy: 0.4, CPU: 0.6}, window.GPUBound: {Busy: 1}}[v])
	return r
}

// TestRemedyFollowsReplay: what the replay says would not help is not advised.
func TestRemedyFollowsReplay(t *testing.T) {
	for _, test := range []struct {
		replay  *window.WhatIf
		verdict window.Verdict
		want    string
	}{
		{nil, window.StorageBound,
			"Read ahead with more workers: sda read 50 MiB/s, and can read at least 1 GiB/s; about 2.7x faster."},
		{&window.WhatIf{NoStorage: 2.7, Workers: 1, GPU: 1.9}, window.StorageBound,
			"Keep the data in memory or move it to faster storage: about 2.7x faster; more workers would not help " +
				"(twice as many: 1.0x)."},
		{&window.WhatIf{NoStorage: 2.7, Workers: 2.6}, window.StorageBound,
			"Read ahead with more workers: twice as many would make it about 2.6x faster, if the disk can serve them; " +
				"storage without waiting, 2.7x."},
		{&window.WhatIf{NoStorage: 2.7, Workers: 1.5}, window.StorageBound,
			"Read ahead with more workers: sda read 50 MiB/s, and can read at least 1 GiB/s; about 2.7x faster."},
		{&window.WhatIf{NoStorage: 2.7}, window.StorageBound,
			"Read ahead with more workers: sda read 50 MiB/s, and can read at least 1 GiB/s; about 2.7x faster."},
		{&window.WhatIf{NoStorage: 1, Workers: 1.04, GPU: 1.2}, window.CPUBound,
			"Decode less, or cache decoded samples; more workers would not help (twice as many: 1.0x)."},
		{&window.WhatIf{NoStorage: 1, Workers: 1.8}, window.CPUBound,
			"Give the input pipeline more workers (twice as many: about 1.8x faster), or cache decoded samples."},
		{&window.WhatIf{NoStorage: 1.7, Workers: 1.5}, window.CPUBound,
			"The data for this work come late: keep them in memory or on a faster disk: about 1.7x faster; or read with " +
				"more workers (twice as many: about 1.5x, if the disk can serve them)."},
		{&window.WhatIf{NoStorage: 1.7, Workers: 1}, window.CPUBound,
			"The data for this work come late: keep them in memory or on a faster disk: about 1.7x faster."},
		{&window.WhatIf{NoStorage: 1.7, Workers: 1.8}, window.CPUBound,
			"Give the input pipeline more workers (twice as many: about 1.8x faster), or cache decoded samples."},
		{&window.WhatIf{NoStorage: 1, GPU: 1.9}, window.GPUBound,
			"Storage and the input pipeline leave nothing to gain: use a faster GPU (twice as fast: 1.9x) or a " +
				"cheaper model."},
		{&window.WhatIf{NoStorage: 1, GPU: 1.04}, window.GPUBound,
			"Storage leaves nothing to gain, and the input pipeline is hardly faster than the GPU (a GPU twice as " +
				"fast: 1.0x): make both faster, or the model cheaper."},
	} {
		got := Remedy(bound(test.replay, test.verdict))
		if got != test.want {
			t.Errorf("%s, %+v: got %q, want %q", test.verdict, test.replay, got, test.want)
		}
		if test.verdict == window.StorageBound && strings.Contains(got, "GPU") {
			t.Errorf("%+v: got %q, want no faster GPU for a window that waits for storage", test.replay, got)
		}
	}
}

// TestAnswers: an unknown answer is in neither the table nor the JSON.
func TestAnswers(t *testing.T) {
	all := &window.WhatIf{NoStorage: 2.7, Low: 2.5, High: 2.9, Workers: 1, GPU: 1.3}
	r := bound(all, window.StorageBound)
	r.SpeedupLow, r.SpeedupHigh = all.Low, all.High
	want := []Answer{
		{"storage without waiting", "2.7x (2.5 to 2.9)"}, {"twice the workers", "1.0x"}, {"a GPU twice as fast", "1.3x"},
	}
	if got := Answers(r); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	checkJSON(t, r, `{"no_storage":2.7,"no_storage_low":2.5,"no_storage_high":2.9,"twice_the_workers":1,`+
		`"gpu_twice_as_fast":1.3}`)
	r.GPUIDs = nil
	if got := Answers(r); !slices.Equal(got, want[:2]) {
		t.Errorf("without a GPU: got %v, want %v", got, want[:2])
	}
	r.WhatIf = &window.WhatIf{NoStorage: 2.71, Low: 2.69, High: 2.74}
	r.SpeedupLow, r.SpeedupHigh = 2.69, 2.74
	if got, want := Answers(r), []Answer{{"storage without waiting", "2.7x"}}; !slices.Equal(got, want) {
		t.Errorf("a narrow range: got %v, want %v", got, want)
	}
	checkJSON(t, r, `{"no_storage":2.71,"no_storage_low":2.69,"no_storage_high":2.74}`)
	r.WhatIf = &window.WhatIf{NoStorage: 11.8, Low: 8.2, TwoWorkers: 1.94}
	r.SpeedupLow, r.SpeedupHigh = 8.2, 0
	want = []Answer{{"storage without waiting", "11.8x (at least 8.2x)"},
		{"two workers, now none", "1.9x, if the disk can serve them"}}
	if got := Answers(r); !slices.Equal(got, want) {
		t.Errorf("bounds: got %v, want %v", got, want)
	}
	checkJSON(t, r, `{"no_storage":11.8,"no_storage_low":8.2,"two_workers_at_most":1.94}`)
	r.WhatIf = nil
	if got := Answers(r); got != nil {
		t.Errorf("without a replay: got %v, want none", got)
	}
	checkJSON(t, r, `null`)
}

func checkJSON(t *testing.T, r *window.Report, want string) {
	t.Helper()
	got, err := json.Marshal(NewReport(r).WhatIf)
	if err != nil || string(got) != want {
		t.Errorf("what_if: got %s (%v), want %s", got, err, want)
	}
}

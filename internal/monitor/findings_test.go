package monitor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// A replay has the same findings of a GPU. In five epochs of ten seconds it is busy, its tensor cores are not, its
// power cap throttles it, and its memory grows.
func TestReplayOfFindings(t *testing.T) {
	p := newTape(t)
	var reports []*window.Report
	m, feed := p.fed(func(r *window.Report) { reports = append(reports, r) })
	defer m.Stop()
	mark := func(mark recording.Mark) { feed(recording.Entry{Mark: &mark}) }
	mark(recording.Mark{Op: recording.Follow, ID: "train", Scope: "/job", OwnScope: true})
	edge := uint64(0)
	for i := range 551 {
		spent := time.Duration(i) * 100 * time.Millisecond
		at := sample.Stamp{Mono: time.Hour + spent, Wall: dawn.Add(spent)}
		feed(recording.Entry{Source: "gpu", Sample: throttledGPU(at, i)})
		jobs := []sample.Job{{ID: "train", Scope: "/job", OwnScope: true, HasIO: true}}
		feed(recording.Entry{Source: "some", Sample: &sample.Sample{At: at, Jobs: jobs}})
		pressures := []sample.Pressure{{Scope: "/job", Resource: sample.IO}}
		feed(recording.Entry{Source: "some", Sample: &sample.Sample{At: at, Pressures: pressures}})
		mark(recording.Mark{Op: recording.Tick})
		if i%100 != 50 {
			continue
		}
		edge++
		mark(recording.Mark{Op: recording.Edge, Edge: edge, At: &at})
		if edge > 1 {
			mark(recording.Mark{Op: recording.End, Edge: edge, At: &at, ID: string(rune('A' + edge - 1))})
		}
		if edge < 6 {
			epoch := &recording.Window{Kind: window.Epoch, Run: "train", Job: "train"}
			mark(recording.Mark{Op: recording.Begin, Edge: edge, At: &at, ID: string(rune('A' + edge)), Window: epoch})
		}
	}
	p.replaysTheSame()
	if len(reports) != 5 {
		t.Fatalf("%d reports", len(reports))
	}
	for i, r := range reports {
		wants := map[window.FindingKind]string{
			window.TensorIdle: "The GPU was busy 95 % of the time, but its tensor cores only 11 %",
			window.Throttled: "The GPU held its clocks down for 40 % of the time to stay below its power cap of 700 W: " +
				"its SMs ran at 1400 MHz on average, and have run at 1980 MHz.",
			window.MemoryGrows: "",
		}
		if i >= 3 {
			wants[window.MemoryGrows] = "GPU memory grew by 310 MiB an epoch over "
		}
		for kind, want := range wants {
			all := explain.FurtherFindings(r)
			k := slices.IndexFunc(all, func(f explain.FurtherFinding) bool { return f.Kind == kind })
			if k >= 0 != (want != "") || k >= 0 && !strings.HasPrefix(all[k].Text, want) {
				t.Errorf("epoch %d: %+v, want %q", i, all, want)
			}
		}
		if r.Verdict != window.GPUBound || !strings.Contains(text(t, r), `"tensor_active":0.1`) {
			t.Errorf("got %s, want gpu_bound with tensor_active 0.1: %s", r.Verdict, text(t, r))
		}
	}
}

// throttledGPU is the i-th reading, with details once a second.
func throttledGPU(at sample.Stamp, i int) *sample.Sample {
	s := &sample.Sample{At: at, GPUs: []sample.GPU{{
		ID: "GPU-1", Busy: time.Duration(i) * 95 * time.Millisecond,
		Has:        sample.HasMemory | sample.HasPower | sample.HasTemperature,
		MemoryUsed: uint64(i+1000) * 31 << 20 / 10, MemoryTotal: 80 << 30, Power: 699, Temperature: 70,
	}}}
	if i%10 != 0 {
		return s
	}
	d := sample.GPUDetail{GPU: "GPU-1", At: at.Mono}
	d.Values.Set(sample.GPUTensorActive, 0.11)
	d.Values.Set(sample.GPUPowerLimit, 700)
	d.Values.Set(sample.GPUClockSM, 1400e6)
	if i == 0 {
		d.Values.Set(sample.GPUClockSM, 1980e6)
	}
	d.Values.Set(sample.GPUThrottledPower, 0.4*float64(i)/10)
	s.GPUDetails = []sample.GPUDetail{d}
	return s
}

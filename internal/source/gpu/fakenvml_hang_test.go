//go:build linux && cgo

package gpu

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// A call that hangs each time is given up, and the rest of the GPU is read. check names the call.
func TestOneCallHangs(t *testing.T) {
	const text = "gpu 0 utilization=50\nhang gpu=0 call=nvmlDeviceGetTemperature seconds=1.3\n"
	playText(t, text)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	found, err := Probe(ctx, Options{Library: fakeLibrary(t)})
	if said := fmt.Sprint(err, found.Err); !strings.Contains(said, "nvmlDeviceGetTemperature") ||
		strings.Contains(said, "context") {
		t.Errorf("check: got %s, want the call that hangs", said)
	}
	_, k, stop := runFake(t)
	defer stop()
	until(t, "the call is given up", func() bool {
		return strings.Contains(k.errorText(), "nvmlDeviceGetTemperature hung twice")
	})
	var busy time.Duration
	until(t, "the GPU is read", func() bool {
		row, _ := k.last()
		if row.GPUs[0].Status != sample.GPUWorks {
			busy = 0
			return false
		}
		if busy == 0 {
			busy = row.GPUs[0].Busy
		}
		return row.GPUs[0].Busy > busy+time.Second && row.GPUs[0].Has&sample.HasMemory != 0
	})
}

// Of four GPUs, only those hang or are lost that say so, or whose own call does not return, whatever else hangs. The
// others go on being read.
func TestFourGPUs(t *testing.T) {
	var gpus strings.Builder
	for i := range 4 {
		fmt.Fprintf(&gpus, "gpu %d utilization=50\n", i)
	}
	const ok, hung, lost = sample.GPUWorks, sample.GPUHung, sample.GPULost
	w := playText(t, gpus.String())
	_, k, stop := runFake(t)
	statuses := func() (list []sample.GPUStatus) {
		row, _ := k.last()
		for _, g := range row.GPUs {
			list = append(list, g.Status)
		}
		return list
	}
	until(t, "four GPUs", func() bool { return len(statuses()) == 4 })
	const samples, memory = "hang gpu=%d call=nvmlDeviceGetSamples\n", "hang gpu=%d call=nvmlDeviceGetMemoryInfo_v2\n"
	for _, c := range []struct {
		faults string
		said   string // in an error
		want   []sample.GPUStatus
	}{
		{fmt.Sprintf(samples, 0), "", []sample.GPUStatus{hung, ok, ok, ok}},
		{fmt.Sprintf(samples+samples, 0, 1), "", []sample.GPUStatus{hung, hung, ok, ok}},
		{fmt.Sprintf(samples+memory+samples, 0, 2, 3), "", []sample.GPUStatus{hung, ok, hung, hung}},
		{fmt.Sprintf(samples+"hang call=nvmlDeviceGetCount_v2\n", 0), "nvmlDeviceGetCount", []sample.GPUStatus{hung, ok, ok, ok}},
		{fmt.Sprintf(samples+"hang call=nvmlEventSetWait_v2\n", 0), "nvmlEventSetWait", []sample.GPUStatus{hung, ok, ok, ok}},
		{fmt.Sprintf(samples+"lost 1\n", 0), "", []sample.GPUStatus{hung, lost, ok, ok}},
		{"hang gpu=1 call=nvmlDeviceGetHandleByIndex_v2\n", "which GPU number 1 is", []sample.GPUStatus{ok, ok, ok, ok}},
		{"hang gpu=2 call=nvmlDeviceGetMigMode\n", "which GPU number 2 is", []sample.GPUStatus{ok, ok, ok, ok}},
		{"error call=nvmlDeviceGetCount_v2 code=999\n", "listing the GPUs", []sample.GPUStatus{ok, ok, ok, ok}},
	} {
		w.Write(gpus.String() + c.faults)
		until(t, fmt.Sprintf("%v after %q", c.want, c.faults), func() bool {
			return slices.Equal(statuses(), c.want) && strings.Contains(k.errorText(), c.said)
		})
		begin, _ := k.last()
		until(t, "the others are read", func() bool {
			row, _ := k.last()
			for i, g := range row.GPUs {
				if g.Status != c.want[i] {
					t.Fatalf("%q: got status %q of GPU %d, want %q as before", c.faults, g.Status, i, c.want[i])
				}
				if g.Status == ok && g.Busy < begin.GPUs[i].Busy+200*time.Millisecond {
					return false
				}
			}
			return true
		})
		w.Write(gpus.String())
		until(t, "all work again", func() bool { return slices.Equal(statuses(), []sample.GPUStatus{ok, ok, ok, ok}) })
	}
	w.Write(gpus.String() + fmt.Sprintf(samples+samples, 0, 1) + "hang call=nvmlDeviceGetCount_v2\n")
	until(t, "two hang", func() bool { return slices.Equal(statuses(), []sample.GPUStatus{hung, hung, ok, ok}) })
	within5s(t, "the end of the run while calls hang", stop)
	w.Write(gpus.String()) // the calls return, and the last one ends the session
	k.check(t)
}

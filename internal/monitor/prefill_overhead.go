//go:build overhead

package monitor

import (
	"fmt"
	"os"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// prefilledDisks makes eight with one that this machine has.
const prefilledDisks = 7

// prefill makes the history what it is after a day: every ring is full, with the rows of eight disks, the host, a GPU
// and a job. It is built in by the tag overhead alone, for measuring what an agent takes in the long run.
func (m *Monitor) prefill() {
	for at := -24 * time.Hour; at < 0; at += spacing(at) {
		for _, s := range past(at) {
			if err := m.history.Append(&s); err != nil {
				fmt.Fprintln(os.Stderr, "prefill:", err)
				return
			}
		}
		if err := m.history.AppendLedgers(at, pastLedgers(at)); err != nil {
			fmt.Fprintln(os.Stderr, "prefill:", err)
			return
		}
	}
	fmt.Fprintf(os.Stderr, "prefill: the rings take %.1f MiB\n", float64(m.history.Bytes())/(1<<20))
}

// spacing is between the rows that the default tiers keep of so long ago.
func spacing(at time.Duration) time.Duration {
	switch {
	case at < -2*time.Hour:
		return 10 * time.Second
	case at < -10*time.Minute:
		return time.Second
	}
	return 100 * time.Millisecond
}

// past is what the sources read at a moment before this one.
func past(at time.Duration) []sample.Sample {
	stamp := sample.Stamp{Mono: at}
	spent := 24*time.Hour + at
	n := uint64(spent / time.Millisecond)
	disks := make([]sample.Disk, prefilledDisks)
	for i := range disks {
		disks[i] = sample.Disk{
			Name: fmt.Sprintf("past%d", i), Leaf: true, ReadIOs: n + 1, ReadBytes: n << 12, ReadTicks: spent / 2,
			WriteIOs: n, WriteBytes: n << 12, WriteTicks: spent / 4, IOTicks: spent / 2, TimeInQueue: spent,
		}
	}
	return []sample.Sample{
		{At: stamp, Disks: disks},
		{At: stamp, Pressures: []sample.Pressure{
			{Resource: sample.IO, Some: spent / 3, Full: spent / 4}, {Resource: sample.CPU, Some: spent / 9},
			{Resource: sample.IO, Scope: "/past", Some: spent / 3, Full: spent / 4}, {Resource: sample.CPU, Scope: "/past", Some: spent / 9},
		}},
		{At: stamp, Cores: []sample.Core{{Name: "cpu0", User: spent / 2, Idle: spent / 2}}},
		{At: stamp, Jobs: []sample.Job{{ID: "past", CPUTime: spent / 2, ReadBytes: n << 12, ReadChars: n << 12}}},
		{At: stamp, GPUs: []sample.GPU{{ID: "past", Busy: spent / 2}}},
	}
}

func pastLedgers(at time.Duration) []history.LedgerTotals {
	spent := 24*time.Hour + at
	return []history.LedgerTotals{
		{ID: "\x00past", Busy: spent / 2, Storage: spent / 4, CPU: spent / 8},
		{ID: "past\x00past", Busy: spent / 2, Storage: spent / 4, CPU: spent / 8},
	}
}

//go:build overhead

package sampling

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// disksVariable is the number of disks that the history is filled with. The default makes eight with one disk of this
// machine.
const (
	disksVariable  = "STALLSPAN_PREFILL_DISKS"
	prefilledDisks = 7
)

// The build tag overhead fills the history as after a day: every ring has rows of eight disks, the host, a GPU and a
// job. lab/footprint measures such an agent.
func init() {
	number := prefilledDisks
	if n, err := strconv.Atoi(os.Getenv(disksVariable)); err == nil {
		number = n
	}
	prefill = func(h *history.History) error {
		for at := -24 * time.Hour; at < 0; at += spacing(at) {
			for _, s := range past(at, number) {
				if err := h.Append(&s); err != nil {
					return err
				}
			}
			if err := h.AppendLedgers(at, pastLedgers(at)); err != nil {
				return err
			}
		}
		fmt.Fprintf(os.Stderr, "prefill: the rings take %.1f MiB\n", float64(h.Bytes())/(1<<20))
		return nil
	}
}

// spacing returns the time between two rows of the default tiers at that age.
func spacing(at time.Duration) time.Duration {
	switch {
	case at < -2*time.Hour:
		return 10 * time.Second
	case at < -10*time.Minute:
		return time.Second
	}
	return 100 * time.Millisecond
}

// past returns the readings of a moment before this one.
func past(at time.Duration, number int) []sample.Sample {
	stamp := sample.Stamp{Mono: at}
	spent := 24*time.Hour + at
	n := uint64(spent / time.Millisecond)
	disks := make([]sample.Disk, number)
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
			{Resource: sample.IO, Scope: "/past", Some: spent / 3, Full: spent / 4},
			{Resource: sample.CPU, Scope: "/past", Some: spent / 9},
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

//go:build linux && cgo

package gpu

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
)

// A GPU reports its limits as margins to the slowdown temperature only, above and below it.
func TestTemperatureLimitsFromMargins(t *testing.T) {
	playText(t, "gpu 0 uuid=GPU-a temperature=90 slowdown_at=87 shutdown_at=93\n"+
		"error call=nvmlDeviceGetTemperatureThreshold code=3\n")
	_, k, stop := runFake(t)
	until(t, "details", func() bool { return len(k.details("GPU-a")) > 0 })
	stop()
	details := k.details("GPU-a")[0]
	for q, want := range map[sample.GPUQuantity]float64{sample.GPUSlowdownAt: 87, sample.GPUShutdownAt: 93} {
		if got := value(t, details, q); got != want {
			t.Errorf("%v: got %v, want %v", q, got, want)
		}
	}
	if limit, ok := details.Values.Get(sample.GPUMemorySlowdownAt); ok {
		t.Errorf("got memory limit %v, want none", limit)
	}
}

// The fake library accepts numbers in any notation and rejects other text: it never plays another number.
func TestPlayFileNumbers(t *testing.T) {
	gpu := "gpu 0 uuid=GPU-a memory_total=1.5e11 memory_used=%s processes=7:%s\n" +
		"mig 0 uuid=MIG-a memory_total=2e10 memory_used=%s\n"
	w, before := playText(t, "gpu 0\n"), [3]uint64{1, 2, 3}
	for _, c := range []struct {
		used, process, slice string
		want                 [3]uint64
	}{
		{"85e9", "2.5E9", "1e10", [3]uint64{85e9, 2.5e9, 1e10}},
		{"85000000001", "9007199254740993", "0x10", [3]uint64{85000000001, 1<<53 + 1, 16}},
		{"-1", "5", "5", before},
		{"5", "-1", "5", before},
		{"5", "5", "-1", before},
		{"5", "5G", "5", before},
		{"18446744073709551616", "5", "5", before},
		{"", "5", "5", before},
	} {
		w.Write(fmt.Sprintf(gpu, "1", "2", "3"))
		if got := playedMemory(t); got != before {
			t.Fatalf("got %v, want %v", got, before)
		}
		w.Write(fmt.Sprintf(gpu, c.used, c.process, c.slice))
		if got := playedMemory(t); got != c.want {
			t.Errorf("%q, %q, %q: got %v, want %v", c.used, c.process, c.slice, got, c.want)
		}
	}
}

// playedMemory returns the memory used by the first GPU, its process and its MIG device, in a session of its own.
func playedMemory(t *testing.T) (used [3]uint64) {
	t.Helper()
	d := newDriver(fakeLibrary(t))
	if err := d.open(); err != nil {
		t.Fatal(err)
	}
	defer d.close()
	list, err := d.list(0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := list[0].(*handle).memory()
	if err != nil {
		t.Fatal(err)
	}
	used[0] = uint64(m[1])
	processes, _ := list[0].processes()
	if i := slices.IndexFunc(processes, func(p sample.GPUProcess) bool { return p.PID == 7 }); i >= 0 {
		used[1] = processes[i].Memory
	}
	if len(list) > 1 {
		m, _ := list[1].(*handle).memory()
		used[2] = uint64(m[1])
	}
	return used
}

package events

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// machine is looked at once a second.
type machine struct {
	t     *testing.T
	w     Watch
	now   sample.Stamp
	s     sample.Snapshot
	parts []Part

	normalizer sample.DiskNormalizer
}

func newMachine(t *testing.T) *machine {
	return &machine{t: t, now: sample.Stamp{Mono: time.Hour, Wall: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}}
}

// look goes on for some seconds, with change called before each look, and gives what was told.
func (m *machine) look(seconds int, change func()) (told []Event) {
	for range seconds {
		m.now.Mono += time.Second
		m.now.Wall = m.now.Wall.Add(time.Second)
		m.s.Disks.At, m.s.GPUs.At, m.s.Drives.At = m.now, m.now, m.now
		if change != nil {
			change()
		}
		m.normalizer.Normalize(&m.s.Disks)
		told = append(told, m.w.Look(m.now, &m.s, m.parts)...)
	}
	return told
}

// want checks what was told in words of the form "gpu_lost", "gpu_lost over".
func (m *machine) want(told []Event, want ...string) {
	m.t.Helper()
	var got []string
	for _, e := range told {
		text := string(e.Kind)
		if e.Resolved {
			text += " over"
			if !e.Began.Before(e.At) {
				m.t.Errorf("%s: from %v to %v", e.Kind, e.Began, e.At)
			}
		}
		if e.Says == "" || strings.ContainsAny(e.Says, "\n") || e.At.After(m.now.Wall) {
			m.t.Errorf("%+v", e)
		}
		got = append(got, text)
	}
	if !slices.Equal(got, want) {
		m.t.Errorf("told %q, want %q", got, want)
	}
}

func TestGPULost(t *testing.T) {
	m := newMachine(t)
	m.s.GPUs.GPUs = []sample.GPU{{ID: "GPU-1", Name: "one"}, {ID: "GPU-2"}}
	m.want(m.look(5, nil))
	m.s.GPUs.GPUs[1].Status = sample.GPUHung
	told := m.look(5, nil)
	m.want(told, "gpu_lost")
	if e := told[0]; e.GPU.ID != "GPU-2" || e.Lost || !e.Severe || !strings.Contains(e.Says, "does not answer") {
		t.Errorf("%+v", e)
	}
	m.s.GPUs.GPUs[1].Status = sample.GPULost
	told = m.look(5, nil)
	m.want(told, "gpu_lost")
	if e := told[0]; !e.Lost || !e.Severe || !strings.Contains(e.Says, "is gone") || e.At != m.now.Wall.Add(-4*time.Second) {
		t.Errorf("%+v", e)
	}
	m.want(m.look(60, func() { // the same GPU, the same loss
		if m.now.Mono/time.Second%9 == 0 {
			m.s.GPUs.GPUs[1].Status = sample.GPUHung
		} else {
			m.s.GPUs.GPUs[1].Status = sample.GPULost
		}
	}))
	m.s.GPUs.GPUs[1].Status = sample.GPUWorks
	m.want(m.look(10, nil))
	m.want(m.look(1, nil), "gpu_lost over")
	m.want(m.look(3600, func() { // it comes and goes
		if m.now.Mono/time.Second%3 == 0 {
			m.s.GPUs.GPUs[1].Status = sample.GPULost
		} else {
			m.s.GPUs.GPUs[1].Status = sample.GPUWorks
		}
	}), "gpu_lost")
	m.s.GPUs.GPUs = m.s.GPUs.GPUs[:1]
	m.want(m.look(100, nil), "gpu_lost over")
	if len(m.w.cards) != 1 {
		t.Errorf("%d GPUs are remembered", len(m.w.cards))
	}
}

func TestGPUHot(t *testing.T) {
	for name, c := range map[string]struct {
		slowdown        float64
		warm, hot, cool float64
	}{
		"with a limit":           {92, 88, 89, 84},
		"without one":            {0, 84, 85, 80},
		"with one that is wrong": {4000, 84, 85, 80},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.s.GPUs.GPUs = []sample.GPU{{ID: "GPU-1", Has: sample.HasTemperature, Temperature: c.warm}}
			m.s.GPUs.GPUDetails = []sample.GPUDetail{{GPU: "GPU-1"}}
			if c.slowdown > 0 {
				m.s.GPUs.GPUDetails[0].Values.Set(sample.GPUSlowdownAt, c.slowdown)
			}
			gpu := &m.s.GPUs.GPUs[0]
			m.want(m.look(60, nil))
			gpu.Temperature = c.hot
			m.want(m.look(10, nil))
			told := m.look(60, nil)
			m.want(told, "gpu_hot")
			if e := told[0]; e.Value != c.hot || e.Limit != c.hot || e.Memory {
				t.Errorf("%+v", e)
			}
			gpu.Temperature = c.warm
			m.want(m.look(600, nil))
			gpu.Temperature = 808334905 // what a broken GPU says
			m.want(m.look(600, nil))
			gpu.Temperature = c.cool
			m.want(m.look(31, nil), "gpu_hot over")
		})
	}
}

func TestMemoryHot(t *testing.T) {
	m := newMachine(t)
	m.s.GPUs.GPUs = []sample.GPU{{ID: "GPU-1"}}
	m.s.GPUs.GPUDetails = []sample.GPUDetail{{GPU: "GPU-1"}}
	v := &m.s.GPUs.GPUDetails[0].Values
	v.Set(sample.GPUTemperatureMemory, 94)
	m.want(m.look(60, nil)) // its limit is not known
	v.Set(sample.GPUMemorySlowdownAt, 95)
	told := m.look(60, nil)
	m.want(told, "gpu_hot")
	if !told[0].Memory || told[0].Limit != 92 {
		t.Errorf("%+v", told[0])
	}
}

// What is not known of a GPU that hangs is not over, and a limit that nobody told is not said to be its own.
func TestHotAndHung(t *testing.T) {
	m := newMachine(t)
	m.s.GPUs.GPUs = []sample.GPU{{ID: "GPU-1", Has: sample.HasTemperature, Temperature: 86}}
	m.s.GPUs.GPUDetails = []sample.GPUDetail{{GPU: "GPU-1"}}
	v := &m.s.GPUs.GPUDetails[0].Values
	v.Set(sample.GPUMemorySlowdownAt, 95)
	v.Set(sample.GPUTemperatureMemory, 94)
	told := m.look(60, nil)
	m.want(told, "gpu_hot", "gpu_hot")
	if strings.Contains(told[0].Says, "slows down") || !strings.Contains(told[1].Says, "slows down at 95 C") {
		t.Errorf("%q, %q", told[0].Says, told[1].Says)
	}
	m.s.GPUs.GPUs[0].Status, *v = sample.GPUHung, sample.GPUValues{}
	m.want(m.look(120, nil), "gpu_lost")
}

func TestGPUThrottled(t *testing.T) {
	m := newMachine(t)
	m.s.GPUs.GPUs = []sample.GPU{{ID: "GPU-1"}}
	m.s.GPUs.GPUDetails = []sample.GPUDetail{{GPU: "GPU-1"}}
	d := &m.s.GPUs.GPUDetails[0]
	rates := map[sample.GPUQuantity]float64{sample.GPUThrottledPower: 1, sample.GPUThrottledThermal: 0, sample.GPUThrottledHWThermal: 0}
	run := func() {
		d.At = m.now.Mono
		for q, rate := range rates {
			v, _ := d.Values.Get(q)
			d.Values.Set(q, v+rate)
		}
	}
	m.want(m.look(120, run)) // the power cap alone
	rates[sample.GPUThrottledHWThermal] = 0.5
	told := m.look(60, run)
	m.want(told, "gpu_throttled")
	if e := told[0]; e.Reason != "throttled_hw_thermal" || e.Value < 0.2 || e.Value > 0.5 {
		t.Errorf("%+v", e)
	}
	d.Values = sample.GPUValues{} // the driver was loaded again
	m.want(m.look(20, run))
	rates[sample.GPUThrottledHWThermal] = 0
	m.want(m.look(120, run), "gpu_throttled over")
}

func TestDiskSaturated(t *testing.T) {
	m := newMachine(t)
	m.s.Disks.Disks = []sample.Disk{{Name: "vda", Leaf: true}}
	m.s.Ceilings = []sample.Ceiling{{Disk: "vda", Read: 100e6}}
	d := &m.s.Disks.Disks[0]
	// reads is a second of so many, each of that many bytes and milliseconds, with a mean queue.
	reads := func(n, bytes uint64, await time.Duration) func() {
		return func() {
			d.Reads += n
			d.ReadBytes += n * bytes
			d.ReadTime += time.Duration(n) * await
			d.WeightedTime += time.Duration(n) * await
			d.InFlight = 8
		}
	}
	m.want(m.look(120, reads(100, 4096, 2500*time.Microsecond))) // a queue of 0.25
	m.want(m.look(120, reads(100, 4096, 2500*time.Microsecond)))
	told := m.look(90, reads(400, 4096, 20*time.Millisecond)) // all the operations that it can, and a queue of 8
	m.want(told, "disk_saturated")
	if e := told[0]; e.Disk != "vda" || e.Value < 2 || !e.Measure || e.Severe {
		t.Errorf("%+v", e)
	}
	m.want(m.look(600, reads(400, 4096, 20*time.Millisecond)))
	m.want(m.look(150, reads(100, 4096, 2500*time.Microsecond)), "disk_saturated over")
	told = m.look(150, func() {}) // nothing moves, with eight under way
	m.want(told, "disk_saturated")
	if !told[0].Severe {
		t.Errorf("%+v", told[0])
	}
	*d = sample.Disk{Name: "vda", Leaf: true} // pulled out and put back
	m.want(m.look(61, nil))
	m.want(m.look(80, nil), "disk_saturated over")
}

// A device that serves operations in parallel has a queue, and nobody waits for it.
func TestParallelDisk(t *testing.T) {
	m := newMachine(t)
	m.s.Disks.Disks = []sample.Disk{{Name: "nvme0n1", Leaf: true}}
	d := &m.s.Disks.Disks[0]
	m.want(m.look(300, func() {
		n := uint64(20000) // a queue of 4, at the same speed all the time
		d.Reads, d.ReadBytes = d.Reads+n, d.ReadBytes+n*4096
		d.ReadTime += 4 * time.Second
		d.WeightedTime += 4 * time.Second
		m.s.Ceilings = []sample.Ceiling{{Disk: "nvme0n1", Read: float64(n * 4096)}}
	}))
}

// A disk that was busy since before anybody looked is as fast as it looks, until it was measured.
func TestMeasuredDisk(t *testing.T) {
	for measured, want := range map[time.Duration][]string{0: nil, 15 * time.Millisecond: nil, 5 * time.Millisecond: {"disk_saturated"}} {
		m := newMachine(t)
		m.s.Disks.Disks = []sample.Disk{{Name: "vda", Leaf: true}}
		m.s.Ceilings = []sample.Ceiling{{Disk: "vda", Read: 400 * 4096, ReadAwait: measured}}
		d := &m.s.Disks.Disks[0]
		m.want(m.look(300, func() { // a queue of 8
			d.Reads, d.ReadBytes = d.Reads+400, d.ReadBytes+400*4096
			d.ReadTime, d.WeightedTime = d.ReadTime+8*time.Second, d.WeightedTime+8*time.Second
		}), want...)
	}
}

func TestDrives(t *testing.T) {
	m := newMachine(t)
	m.s.Drives.Drives = []sample.Drive{{ID: "wwn-1", Device: "sda", Model: "M", Status: sample.DriveOK}, {ID: "wwn-2", Device: "sdb", Status: sample.DriveOK}}
	d := &m.s.Drives.Drives[0]
	m.want(m.look(60, nil))
	d.Status, d.Finding, d.Remedy = sample.DriveFailing, "312 sectors are reallocated.", "Copy what is on it."
	told := m.look(60, nil)
	m.want(told, "disk_failing")
	if e := told[0]; e.Disk != "sda" || e.Drive.ID != "wwn-1" || e.Says != "sda (M): 312 sectors are reallocated. Copy what is on it." {
		t.Errorf("%+v", e)
	}
	d.Status = sample.DriveAsleep
	m.want(m.look(7200, nil))
	d.Status = sample.DriveVanished
	m.want(m.look(60, nil), "disk_vanished")
	d.Status = sample.DriveOK
	m.want(m.look(7200, nil), "disk_vanished over", "disk_failing over")
}

func TestParts(t *testing.T) {
	m := newMachine(t)
	m.parts = []Part{{"source gpu", "no answer"}, {"export", ""}}
	m.want(m.look(60, nil))
	told := m.look(5, nil)
	m.want(told, "agent_degraded")
	if e := told[0]; e.Part != "source gpu" || e.Reason != "no answer" {
		t.Errorf("%+v", e)
	}
	m.parts = nil // those that work may be left out
	m.want(m.look(70, nil), "agent_degraded over")
	m.want(m.look(300, nil))
	if len(m.w.parts.why) != 0 {
		t.Errorf("%v", m.w.parts.why)
	}
}

// However many devices there are, and whatever they are called, what is kept has a bound.
func TestBounds(t *testing.T) {
	var w Watch
	now := sample.Stamp{Mono: time.Second}
	for i := range 5 {
		var s sample.Snapshot
		for k := range 2 * most {
			name := fmt.Sprint(i, " ", k)
			s.GPUs.GPUs = append(s.GPUs.GPUs, sample.GPU{ID: name, Status: sample.GPULost})
			s.Disks.Disks = append(s.Disks.Disks, sample.Disk{Name: name, Leaf: true})
			s.Drives.Drives = append(s.Drives.Drives, sample.Drive{ID: name, Status: sample.DriveVanished})
		}
		now.Mono += time.Second
		s.Disks.At = now
		w.Look(now, &s, nil)
	}
	if len(w.cards) > most || len(w.disks) > most || len(w.drives) > most {
		t.Errorf("%d GPUs, %d disks, %d drives", len(w.cards), len(w.disks), len(w.drives))
	}
}

func BenchmarkLook(b *testing.B) {
	var w Watch
	var s sample.Snapshot
	for i := range 8 {
		id := fmt.Sprint("GPU-", i)
		s.GPUs.GPUs = append(s.GPUs.GPUs, sample.GPU{ID: id, Has: sample.HasTemperature, Temperature: 50})
		s.GPUs.GPUDetails = append(s.GPUs.GPUDetails, sample.GPUDetail{GPU: id})
		s.Disks.Disks = append(s.Disks.Disks, sample.Disk{Name: fmt.Sprint("nvme", i), Leaf: true})
	}
	now := sample.Stamp{}
	for b.Loop() {
		now.Mono += time.Second
		s.Disks.At = now
		w.Look(now, &s, nil)
	}
}

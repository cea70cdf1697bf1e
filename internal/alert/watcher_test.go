package alert

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// machine is a machine that is evaluated once a second.
type machine struct {
	t     *testing.T
	w     Watcher
	now   sample.Stamp
	s     sample.Snapshot
	parts []Part

	normalizer sample.DiskNormalizer
}

func newMachine(t *testing.T) *machine {
	return &machine{t: t, now: sample.Stamp{Mono: time.Hour, Wall: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}}
}

// run evaluates the machine for some seconds, with update called before each evaluation, and returns the events.
func (m *machine) run(seconds int, update func()) (events []Event) {
	for range seconds {
		m.now.Mono += time.Second
		m.now.Wall = m.now.Wall.Add(time.Second)
		m.s.Disks.At, m.s.GPUs.At, m.s.Drives.At = m.now, m.now, m.now
		if update != nil {
			update()
		}
		m.normalizer.Normalize(&m.s.Disks)
		events = append(events, m.w.Evaluate(m.now, &m.s, m.parts)...)
	}
	return events
}

// expect checks the kinds of events: "gpu_lost" for a beginning, "gpu_lost over" for an end.
func (m *machine) expect(events []Event, want ...string) {
	m.t.Helper()
	var got []string
	for _, e := range events {
		text := string(e.Kind)
		if e.Resolved {
			text += " over"
			if !e.Began.Before(e.At) {
				m.t.Errorf("%s: got began %v, want it before the end at %v", e.Kind, e.Began, e.At)
			}
		}
		if e.Message == "" || strings.ContainsAny(e.Message, "\n") {
			m.t.Errorf("%s: got message %q, want one line", e.Kind, e.Message)
		}
		if e.At.After(m.now.Wall) {
			m.t.Errorf("%s: got time %v, want it not after %v", e.Kind, e.At, m.now.Wall)
		}
		got = append(got, text)
	}
	if !slices.Equal(got, want) {
		m.t.Errorf("got events %q, want %q", got, want)
	}
}

// expectMessage checks that an event's message contains a text.
func expectMessage(t *testing.T, e Event, want string) {
	t.Helper()
	if !strings.Contains(e.Message, want) {
		t.Errorf("%s: got message %q, want %q in it", e.Kind, e.Message, want)
	}
}

func TestGPULost(t *testing.T) {
	m := newMachine(t)
	m.s.GPUs.GPUs = []sample.GPU{{ID: "GPU-1", Name: "one"}, {ID: "GPU-2"}}
	m.expect(m.run(5, nil))
	m.s.GPUs.GPUs[1].Status = sample.GPUUnknown // the driver as a whole does not answer
	m.expect(m.run(60, nil))
	m.s.GPUs.GPUs[1].Status = sample.GPUHung
	events := m.run(5, nil)
	m.expect(events, "gpu_lost")
	if e := events[0]; e.GPU.ID != "GPU-2" || e.Lost || !e.Severe {
		t.Errorf("got %+v, want GPU-2 as severe and not lost", e)
	}
	expectMessage(t, events[0], "does not answer")
	m.s.GPUs.GPUs[1].Status = sample.GPULost
	events = m.run(5, nil)
	m.expect(events, "gpu_lost")
	if e, at := events[0], m.now.Wall.Add(-4*time.Second); !e.Lost || !e.Severe || e.At != at {
		t.Errorf("got %+v, want lost and severe at %v", e, at)
	}
	expectMessage(t, events[0], "reports it as lost")
	m.expect(m.run(60, func() { // lost and hung in turn: one condition
		if m.now.Mono/time.Second%9 == 0 {
			m.s.GPUs.GPUs[1].Status = sample.GPUHung
		} else {
			m.s.GPUs.GPUs[1].Status = sample.GPULost
		}
	}))
	m.s.GPUs.GPUs[1].Status = sample.GPUUnknown
	m.expect(m.run(60, nil))
	m.s.GPUs.GPUs[1].Status = sample.GPUWorks
	m.expect(m.run(10, nil))
	m.expect(m.run(1, nil), "gpu_lost over")
	m.expect(m.run(3600, func() { // it flaps
		if m.now.Mono/time.Second%3 == 0 {
			m.s.GPUs.GPUs[1].Status = sample.GPULost
		} else {
			m.s.GPUs.GPUs[1].Status = sample.GPUWorks
		}
	}), "gpu_lost")
	m.s.GPUs.GPUs = m.s.GPUs.GPUs[:1]
	m.expect(m.run(100, nil), "gpu_lost over")
	if len(m.w.gpus) != 1 {
		t.Errorf("got the state of %d GPUs, want 1", len(m.w.gpus))
	}
}

func TestGPUReleased(t *testing.T) {
	m := newMachine(t)
	m.s.GPUs.GPUs = []sample.GPU{{ID: "GPU-1"}, {ID: "GPU-2"}}
	m.s.GPUs.GPUs[0].Status = sample.GPUAsleep
	m.expect(m.run(5, nil))
	m.s.GPUs.GPUs[1].Status = sample.GPUReleased
	events := m.run(5, nil)
	m.expect(events, "gpu_released")
	expectMessage(t, events[0], "GPU-2 is released")
	m.s.GPUs.GPUs[1].Status = sample.GPUWorks
	events = m.run(60, nil)
	m.expect(events, "gpu_released over")
	expectMessage(t, events[0], "not released any more")
	m.run(60, nil)
	m.s.GPUs.GPUs[1].Status = sample.GPUReleased
	m.expect(m.run(5, nil), "gpu_released")
	m.s.GPUs.GPUs = nil
	m.expect(m.run(60, nil), "gpu_released over")
}

func TestGPUHot(t *testing.T) {
	for name, c := range map[string]struct {
		slowdown        float64
		warm, hot, cool float64
	}{
		"reported limit": {92, 88, 89, 84},
		"no limit":       {0, 84, 85, 80},
		"garbage limit":  {4000, 84, 85, 80},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.s.GPUs.GPUs = []sample.GPU{{ID: "GPU-1", Has: sample.HasTemperature, Temperature: c.warm}}
			m.s.GPUs.GPUDetails = []sample.GPUDetail{{GPU: "GPU-1"}}
			if c.slowdown > 0 {
				m.s.GPUs.GPUDetails[0].Values.Set(sample.GPUSlowdownAt, c.slowdown)
			}
			gpu := &m.s.GPUs.GPUs[0]
			m.expect(m.run(60, nil))
			gpu.Temperature = c.hot
			m.expect(m.run(10, nil))
			events := m.run(60, nil)
			m.expect(events, "gpu_hot")
			if e := events[0]; e.Value != c.hot || e.Limit != c.hot || e.Memory {
				t.Errorf("got %+v, want value and limit %v of the chip", e, c.hot)
			}
			gpu.Temperature = c.warm
			m.expect(m.run(600, nil))
			gpu.Temperature = 808334905 // garbage of a failing GPU
			m.expect(m.run(600, nil))
			gpu.Temperature = c.cool
			m.expect(m.run(31, nil), "gpu_hot over")
		})
	}
}

func TestMemoryHot(t *testing.T) {
	m := newMachine(t)
	m.s.GPUs.GPUs = []sample.GPU{{ID: "GPU-1"}}
	m.s.GPUs.GPUDetails = []sample.GPUDetail{{GPU: "GPU-1"}}
	v := &m.s.GPUs.GPUDetails[0].Values
	v.Set(sample.GPUTemperatureMemory, 94)
	m.expect(m.run(60, nil)) // without a limit
	v.Set(sample.GPUMemorySlowdownAt, 95)
	events := m.run(60, nil)
	m.expect(events, "gpu_hot")
	if !events[0].Memory || events[0].Limit != 92 {
		t.Errorf("got %+v, want the memory with limit 92", events[0])
	}
}

// A condition of a GPU that hangs does not end, and the default limit is not reported as the GPU's own.
func TestHotAndHung(t *testing.T) {
	m := newMachine(t)
	m.s.GPUs.GPUs = []sample.GPU{{ID: "GPU-1", Has: sample.HasTemperature, Temperature: 86}}
	m.s.GPUs.GPUDetails = []sample.GPUDetail{{GPU: "GPU-1"}}
	v := &m.s.GPUs.GPUDetails[0].Values
	v.Set(sample.GPUMemorySlowdownAt, 95)
	v.Set(sample.GPUTemperatureMemory, 94)
	events := m.run(60, nil)
	m.expect(events, "gpu_hot", "gpu_hot")
	if got := events[0].Message; strings.Contains(got, "slows down") {
		t.Errorf("got message %q, want no slowdown temperature", got)
	}
	expectMessage(t, events[1], "slows down at 95 C")
	m.s.GPUs.GPUs[0].Status, *v = sample.GPUHung, sample.GPUValues{}
	m.expect(m.run(120, nil), "gpu_lost")
}

func TestGPUThrottled(t *testing.T) {
	m := newMachine(t)
	m.s.GPUs.GPUs = []sample.GPU{{ID: "GPU-1"}}
	m.s.GPUs.GPUDetails = []sample.GPUDetail{{GPU: "GPU-1"}}
	d := &m.s.GPUs.GPUDetails[0]
	rates := map[sample.GPUQuantity]float64{
		sample.GPUThrottledPower: 1, sample.GPUThrottledThermal: 0, sample.GPUThrottledHWThermal: 0,
	}
	run := func() {
		d.At = m.now.Mono
		for q, rate := range rates {
			v, _ := d.Values.Get(q)
			d.Values.Set(q, v+rate)
		}
	}
	m.expect(m.run(120, run)) // the power cap alone
	rates[sample.GPUThrottledHWThermal] = 0.5
	events := m.run(60, run)
	m.expect(events, "gpu_throttled")
	if e := events[0]; e.Reason != "throttled_hw_thermal" || e.Value < 0.2 || e.Value > 0.5 {
		t.Errorf("got %+v, want a share of 0.2 to 0.5 by throttled_hw_thermal", e)
	}
	d.Values = sample.GPUValues{} // the driver was reloaded
	m.expect(m.run(20, run))
	rates[sample.GPUThrottledHWThermal] = 0
	m.expect(m.run(120, run), "gpu_throttled over")
}

func TestDiskSaturated(t *testing.T) {
	m := newMachine(t)
	m.s.Disks.Disks = []sample.Disk{{Name: "vda", Leaf: true}}
	m.s.Ceilings = []sample.Ceiling{{Disk: "vda", Read: 100e6}}
	d := &m.s.Disks.Disks[0]
	// reads returns an update with n reads of a size and an await, and so a mean queue depth of n * await.
	reads := func(n, bytes uint64, await time.Duration) func() {
		return func() {
			d.ReadIOs += n
			d.ReadBytes += n * bytes
			d.ReadTicks += time.Duration(n) * await
			d.TimeInQueue += time.Duration(n) * await
			d.InFlight = 8
		}
	}
	m.expect(m.run(120, reads(100, 4096, 2500*time.Microsecond))) // queue depth 0.25
	m.expect(m.run(120, reads(100, 4096, 2500*time.Microsecond)))
	events := m.run(90, reads(400, 4096, 20*time.Millisecond)) // its maximum, with queue depth 8
	m.expect(events, "disk_saturated")
	if e := events[0]; e.Disk != "vda" || e.Value < 2 || !e.HasValue || e.Severe {
		t.Errorf("got %+v, want vda with a value of at least 2, not severe", e)
	}
	m.expect(m.run(600, reads(400, 4096, 20*time.Millisecond)))
	m.expect(m.run(150, reads(100, 4096, 2500*time.Microsecond)), "disk_saturated over")
	events = m.run(150, func() {}) // no operation completes, with eight in flight
	m.expect(events, "disk_saturated")
	if !events[0].Severe {
		t.Errorf("got %+v, want a severe event", events[0])
	}
	*d = sample.Disk{Name: "vda", Leaf: true} // removed and added again
	m.expect(m.run(61, nil))
	m.expect(m.run(80, nil), "disk_saturated over")
}

// A device that serves operations in parallel has a deep queue without delay.
func TestParallelDisk(t *testing.T) {
	m := newMachine(t)
	m.s.Disks.Disks = []sample.Disk{{Name: "nvme0n1", Leaf: true}}
	d := &m.s.Disks.Disks[0]
	m.expect(m.run(300, func() {
		n := uint64(20000) // queue depth 4 at a constant rate
		d.ReadIOs, d.ReadBytes = d.ReadIOs+n, d.ReadBytes+n*4096
		d.ReadTicks += 4 * time.Second
		d.TimeInQueue += 4 * time.Second
		m.s.Ceilings = []sample.Ceiling{{Disk: "nvme0n1", Read: float64(n * 4096)}}
	}))
}

// A disk that is busy from the first reading on is judged by its measured await only.
func TestMeasuredDisk(t *testing.T) {
	for measured, want := range map[time.Duration][]string{
		0: nil, 15 * time.Millisecond: nil, 5 * time.Millisecond: {"disk_saturated"},
	} {
		m := newMachine(t)
		m.s.Disks.Disks = []sample.Disk{{Name: "vda", Leaf: true}}
		m.s.Ceilings = []sample.Ceiling{{Disk: "vda", Read: 400 * 4096, ReadAwait: measured}}
		d := &m.s.Disks.Disks[0]
		m.expect(m.run(300, func() { // queue depth 8
			d.ReadIOs, d.ReadBytes = d.ReadIOs+400, d.ReadBytes+400*4096
			d.ReadTicks, d.TimeInQueue = d.ReadTicks+8*time.Second, d.TimeInQueue+8*time.Second
		}), want...)
	}
}

func TestDrives(t *testing.T) {
	m := newMachine(t)
	m.s.Drives.Drives = []sample.Drive{
		{ID: "wwn-1", Device: "sda", Model: "M", Status: sample.DriveOK},
		{ID: "wwn-2", Device: "sdb", Status: sample.DriveOK},
	}
	d := &m.s.Drives.Drives[0]
	m.expect(m.run(60, nil))
	d.Status, d.Finding, d.Remedy = sample.DriveFailing, "312 sectors are reallocated.", "Copy what is on it."
	events := m.run(60, nil)
	m.expect(events, "disk_failing")
	if e := events[0]; e.Disk != "sda" || e.Drive.ID != "wwn-1" {
		t.Errorf("got disk %s and drive %s, want sda and wwn-1", e.Disk, e.Drive.ID)
	}
	const want = "sda (M): 312 sectors are reallocated. Copy what is on it."
	if got := events[0].Message; got != want {
		t.Errorf("got message %q, want %q", got, want)
	}
	d.Status = sample.DriveAsleep
	m.expect(m.run(7200, nil))
	d.Status = sample.DriveVanished
	m.expect(m.run(60, nil), "disk_vanished")
	d.Status = sample.DriveOK
	m.expect(m.run(7200, nil), "disk_vanished over", "disk_failing over")
}

func TestParts(t *testing.T) {
	m := newMachine(t)
	m.parts = []Part{{"source gpu", "no answer"}, {"export", ""}}
	m.expect(m.run(60, nil))
	events := m.run(5, nil)
	m.expect(events, "agent_degraded")
	if e := events[0]; e.Part != "source gpu" || e.Reason != "no answer" {
		t.Errorf("got %+v, want part source gpu with reason no answer", e)
	}
	m.parts = nil // working parts may be left out
	m.expect(m.run(70, nil), "agent_degraded over")
	m.expect(m.run(300, nil))
	if len(m.w.parts.errors) != 0 {
		t.Errorf("got errors %v, want none", m.w.parts.errors)
	}
}

// The number of devices is bounded.
func TestBounds(t *testing.T) {
	var w Watcher
	now := sample.Stamp{Mono: time.Second}
	for i := range 5 {
		var s sample.Snapshot
		for k := range 2 * maxDevices {
			name := fmt.Sprint(i, " ", k)
			s.GPUs.GPUs = append(s.GPUs.GPUs, sample.GPU{ID: name, Status: sample.GPULost})
			s.Disks.Disks = append(s.Disks.Disks, sample.Disk{Name: name, Leaf: true})
			s.Drives.Drives = append(s.Drives.Drives, sample.Drive{ID: name, Status: sample.DriveVanished})
		}
		now.Mono += time.Second
		s.Disks.At = now
		w.Evaluate(now, &s, nil)
	}
	if len(w.gpus) > maxDevices || len(w.disks) > maxDevices || len(w.drives) > maxDevices {
		t.Errorf("got %d GPUs, %d disks, %d drives, want at most %d each",
			len(w.gpus), len(w.disks), len(w.drives), maxDevices)
	}
}

func BenchmarkEvaluate(b *testing.B) {
	var w Watcher
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
		w.Evaluate(now, &s, nil)
	}
}

// No event follows from counters that cannot be true.
func TestImpossibleDisk(t *testing.T) {
	m := newMachine(t)
	m.s.Disks.Disks = []sample.Disk{{Name: "vda", Leaf: true}, {Name: "vdb", Leaf: true, ReadIOs: 1}}
	m.expect(m.run(600, func() {
		m.s.Disks.Disks[0].ReadIOs += 2000 // without any time
		m.s.Disks.Disks[0].ReadBytes += 100e6
		m.s.Disks.Disks[1].InFlight = 1<<32 - 1 // below zero, and no operation completes
	}))
}

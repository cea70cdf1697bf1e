package alert

import (
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
)

// withXIDs returns a machine with a GPU that has reported XIDs.
func withXIDs(t *testing.T, xids ...sample.XID) (*machine, *sample.GPUDetail) {
	m := newMachine(t)
	m.s.GPUs.GPUs = []sample.GPU{{ID: "GPU-1"}}
	m.s.GPUs.GPUDetails = []sample.GPUDetail{{GPU: "GPU-1", XIDs: xids}}
	return m, &m.s.GPUs.GPUDetails[0]
}

// There is one event for a code, and one with the number of XIDs once the code has not come for ten minutes.
func TestXIDs(t *testing.T) {
	m, d := withXIDs(t, sample.XID{Code: 31, Count: 3})
	events := m.run(30, nil)
	m.expect(events, "gpu_error")
	if e := events[0]; e.Code != 31 || e.Count != 3 || e.Severe {
		t.Errorf("got %+v, want code 31 three times, not severe", e)
	}
	expectMessage(t, events[0], "XID 31 3 times, which is usually caused by a program")
	events = m.run(3600, func() { // a flood of 31, and one 79
		d.XIDs = []sample.XID{{Code: 31, Count: d.XIDs[0].Count + 7}, {Code: 79, Count: 1}}
	})
	m.expect(events, "gpu_error", "gpu_error over")
	began, over := events[0], events[1]
	if began.Code != 79 || !began.Severe {
		t.Errorf("got %+v, want code 79, severe", began)
	}
	if over.Code != 79 || !over.Severe || over.Count != 0 || !over.Began.Equal(began.At) {
		t.Errorf("got %+v, want code 79, severe, count 0, began %v", over, began.At)
	}
	m.expect(m.run(600, nil))
	events = m.run(1, nil)
	m.expect(events, "gpu_error over")
	if e := events[0]; e.Code != 31 || e.Count != 7*3600 || e.Severe {
		t.Errorf("got %+v, want code 31, count %d, not severe", e, 7*3600)
	}
	expectMessage(t, events[0], "GPU-1 has not reported XID 31 for 10 min, after 25203 of them")
	d.XIDs = []sample.XID{{Code: 31, Count: 2}} // the counter restarted, within the minimum interval
	m.expect(m.run(59, nil))
	events = m.run(60, nil)
	m.expect(events, "gpu_error")
	if events[0].Count != 2 {
		t.Errorf("got count %d, want 2", events[0].Count)
	}
	m.expect(m.run(3600, nil), "gpu_error over")
	if m.w.xids.has(xidKey{"GPU-1", 31}) {
		t.Error("got state of an ended condition, want none")
	}
}

// An XID within the ten minutes postpones the end.
func TestXIDsPostponeEnd(t *testing.T) {
	m, d := withXIDs(t, sample.XID{Code: 48, Count: 1})
	m.expect(m.run(1, nil), "gpu_error")
	for range 5 {
		m.expect(m.run(599, nil))
		d.XIDs[0].Count++
	}
	m.expect(m.run(601, nil))
	events := m.run(1, nil)
	m.expect(events, "gpu_error over")
	if events[0].Count != 5 {
		t.Errorf("got count %d, want 5", events[0].Count)
	}
	expectMessage(t, events[0], "after 6 of them")
}

// A GPU that comes and goes does not report old XIDs again.
func TestXIDsOfFlappingGPU(t *testing.T) {
	m, _ := withXIDs(t, sample.XID{Code: 31, Count: 1})
	gpus, details := m.s.GPUs.GPUs, m.s.GPUs.GPUDetails
	present := false
	m.expect(m.run(3600, func() {
		if present = !present; present {
			m.s.GPUs.GPUs, m.s.GPUs.GPUDetails = gpus, details
		} else {
			m.s.GPUs.GPUs, m.s.GPUs.GPUDetails = nil, nil
		}
	}), "gpu_error", "gpu_error over")
}

// The number of codes is bounded.
func TestXIDsAreBounded(t *testing.T) {
	m, d := withXIDs(t)
	for code := range 3 * maxXIDs {
		d.XIDs = append(d.XIDs, sample.XID{Code: code, Count: 1})
	}
	if events := m.run(10, nil); len(events) != maxXIDs || len(m.w.gpus["GPU-1"].xids) != maxXIDs {
		t.Errorf("got %d events and %d codes, want %d each", len(events), len(m.w.gpus["GPU-1"].xids), maxXIDs)
	}
}

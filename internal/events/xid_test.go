package events

import (
	"strings"
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
)

// reporting is a machine with a GPU that has reported XIDs.
func reporting(t *testing.T, xids ...sample.XID) (*machine, *sample.GPUDetail) {
	m := newMachine(t)
	m.s.GPUs.GPUs = []sample.GPU{{ID: "GPU-1"}}
	m.s.GPUs.GPUDetails = []sample.GPUDetail{{GPU: "GPU-1", XIDs: xids}}
	return m, &m.s.GPUs.GPUDetails[0]
}

// A code is told once, and once more when it did not come for ten minutes, with how many there were meanwhile.
func TestXIDs(t *testing.T) {
	m, d := reporting(t, sample.XID{Code: 31, Count: 3})
	told := m.look(30, nil)
	m.want(told, "gpu_error")
	if e := told[0]; e.Code != 31 || e.Count != 3 || e.Severe || !strings.Contains(e.Says, "XID 31 3 times, which a program") {
		t.Errorf("%+v", e)
	}
	told = m.look(3600, func() { // a flood of one, and a single one of another
		d.XIDs = []sample.XID{{Code: 31, Count: d.XIDs[0].Count + 7}, {Code: 79, Count: 1}}
	})
	m.want(told, "gpu_error", "gpu_error over")
	if began, over := told[0], told[1]; began.Code != 79 || !began.Severe || over.Code != 79 || !over.Severe || over.Count != 0 || !over.Began.Equal(began.At) {
		t.Errorf("%+v, %+v", began, over)
	}
	m.want(m.look(600, nil))
	told = m.look(1, nil)
	m.want(told, "gpu_error over")
	if e := told[0]; e.Code != 31 || e.Count != 7*3600 || e.Severe || e.Says != "GPU-1 has not reported XID 31 for 10 min, after 25203 of them" {
		t.Errorf("%+v", e)
	}
	d.XIDs = []sample.XID{{Code: 31, Count: 2}} // counted anew, and too soon to be told
	m.want(m.look(59, nil))
	told = m.look(60, nil)
	m.want(told, "gpu_error")
	if told[0].Count != 2 {
		t.Errorf("%+v", told[0])
	}
	m.want(m.look(3600, nil), "gpu_error over")
	if m.w.wrong.Has(fault{"GPU-1", 31}) {
		t.Error("what is over is kept")
	}
}

// Each that comes before the ten minutes are over puts the end off.
func TestXIDsThatComeNowAndThen(t *testing.T) {
	m, d := reporting(t, sample.XID{Code: 48, Count: 1})
	m.want(m.look(1, nil), "gpu_error")
	for range 5 {
		m.want(m.look(599, nil))
		d.XIDs[0].Count++
	}
	m.want(m.look(601, nil))
	if told := m.look(1, nil); len(told) != 1 || told[0].Count != 5 || !strings.HasSuffix(told[0].Says, "after 6 of them") {
		t.Errorf("%+v", told)
	}
}

// A GPU that comes and goes tells nothing anew.
func TestXIDsOfOneThatFlaps(t *testing.T) {
	m, _ := reporting(t, sample.XID{Code: 31, Count: 1})
	gpus, details := m.s.GPUs.GPUs, m.s.GPUs.GPUDetails
	there := false
	m.want(m.look(3600, func() {
		if there = !there; there {
			m.s.GPUs.GPUs, m.s.GPUs.GPUDetails = gpus, details
		} else {
			m.s.GPUs.GPUs, m.s.GPUs.GPUDetails = nil, nil
		}
	}), "gpu_error", "gpu_error over")
}

// However many codes a GPU tells, what is kept has a bound.
func TestXIDsAreBounded(t *testing.T) {
	m, d := reporting(t)
	for code := range 3 * mostXIDs {
		d.XIDs = append(d.XIDs, sample.XID{Code: code, Count: 1})
	}
	if told := m.look(10, nil); len(told) != mostXIDs || len(m.w.cards["GPU-1"].xids) != mostXIDs {
		t.Errorf("%d events, %d codes", len(told), len(m.w.cards["GPU-1"].xids))
	}
}

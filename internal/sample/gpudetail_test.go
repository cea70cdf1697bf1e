package sample

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestGPUValues(t *testing.T) {
	seen := map[string]bool{}
	var v GPUValues
	for q := range GPUQuantities {
		if name := q.String(); name == "" || seen[name] {
			t.Errorf("quantity %d: got name %q, want a unique one", q, name)
		}
		seen[q.String()] = true
		if q%2 == 0 {
			v.Set(q, float64(q)/2)
		}
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var again GPUValues
	if err := json.Unmarshal(text, &again); err != nil || again != v {
		t.Errorf("%s: got %+v, %v; want %+v", text, again, err, v)
	}
	if err := json.Unmarshal([]byte(`{"fan": 0.5, "of the future": 1}`), &again); err != nil {
		t.Error(err)
	}
	if fan, ok := again.Get(GPUFan); fan != 0.5 || !ok {
		t.Errorf("fan: got %v, %v; want 0.5", fan, ok)
	}
	again.Drop(GPUFan)
	if again != (GPUValues{}) {
		t.Errorf("after Drop: got %+v, want no value", again)
	}
}

func TestSnapshotOfDetails(t *testing.T) {
	var n Snapshot
	of := func(gpus []GPU, details ...string) []string {
		s := Sample{GPUs: gpus}
		for _, id := range details {
			s.GPUDetails = append(s.GPUDetails, GPUDetail{GPU: id})
		}
		n.Learn(&s)
		var ids []string
		for _, d := range n.GPUs.GPUDetails {
			ids = append(ids, d.GPU)
		}
		slices.Sort(ids)
		return ids
	}
	both := []GPU{{ID: "a"}, {ID: "b"}}
	for i, c := range []struct{ got, want []string }{
		{of(both, "a", "b"), []string{"a", "b"}},
		{of(both), []string{"a", "b"}},
		{of(both, "b"), []string{"a", "b"}},
		{of([]GPU{{ID: "a", Status: GPULost}, {ID: "b"}}), []string{"b"}},
		{of([]GPU{{ID: "a"}}, "a"), []string{"a"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("reading %d: got details of %v, want %v", i, c.got, c.want)
		}
	}
}

// The errors of a lost GPU are kept.
func TestSnapshotKeepsErrorsOfLostGPU(t *testing.T) {
	var n Snapshot
	d := GPUDetail{GPU: "a", XIDs: []XID{{Code: 79, Count: 1}}}
	d.Values.Set(GPUFan, 0.5)
	n.Learn(&Sample{GPUs: []GPU{{ID: "a"}}, GPUDetails: []GPUDetail{d}})
	n.Learn(&Sample{GPUs: []GPU{{ID: "a", Status: GPULost}}})
	if list := n.GPUs.GPUDetails; len(list) != 1 || len(list[0].XIDs) != 1 || list[0].Values != (GPUValues{}) {
		t.Errorf("lost GPU: got %+v, want its error and no value", list)
	}
	n.Learn(&Sample{GPUs: []GPU{{ID: "b"}}})
	if len(n.GPUs.GPUDetails) != 0 {
		t.Errorf("GPU no longer listed: got %+v, want no details", n.GPUs.GPUDetails)
	}
}

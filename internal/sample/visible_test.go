package sample

import (
	"slices"
	"testing"
)

func TestVisibleGPUs(t *testing.T) {
	same := []GPU{{ID: "GPU-aa", Name: "A", Index: 0}, {ID: "GPU-ab", Name: "A", Index: 1},
		{ID: "GPU-b", Name: "A", Index: 2}}
	mixed := []GPU{{ID: "GPU-aa", Name: "A", Index: 0}, {ID: "GPU-b", Name: "B", Index: 1}}
	sliced := []GPU{{ID: "GPU-aa", Name: "A", Index: 0}, {ID: "MIG-1", Name: "A MIG", Parent: "GPU-aa"},
		{ID: "GPU-b", Name: "A", Index: 1}}
	for _, test := range []struct {
		text  string
		bus   bool
		gpus  []GPU
		want  []string
		known bool
	}{
		{"0", false, same, []string{"GPU-aa"}, true},
		{"2, 0", false, same, []string{"GPU-b", "GPU-aa"}, true},
		{"1,-1,0", false, same, []string{"GPU-ab"}, true},
		{"1,9,0", false, same, []string{"GPU-ab"}, true},
		{"", false, same, nil, true},
		{"-1", false, same, nil, true},
		{"NoDevFiles", false, same, nil, true},
		{"GPU-b", false, same, []string{"GPU-b"}, true},
		{"GPU-a", false, same, nil, true}, // two begin so
		{"GPU-aa,GPU-b", false, mixed, []string{"GPU-aa", "GPU-b"}, true},
		{"1", false, mixed, nil, false},
		{"1", true, mixed, []string{"GPU-b"}, true},
		{"-1", false, mixed, nil, true},
		{"MIG-1", false, sliced, []string{"MIG-1"}, true},
		{"MIG-2", false, sliced, nil, false},
		{"GPU-aa", false, sliced, []string{"GPU-aa", "MIG-1"}, true},
		{"0", true, sliced, nil, false},
		{"0", false, nil, nil, false},
	} {
		v := VisibleFrom(func(key string) (string, bool) {
			if key == "CUDA_DEVICE_ORDER" {
				return "PCI_BUS_ID", test.bus
			}
			return test.text, true
		})
		if v.ByBus != test.bus && test.bus {
			t.Errorf("%q: got by bus %v, want %v", test.text, v.ByBus, test.bus)
		}
		v.ByBus = test.bus
		if got, known := v.Among(test.gpus); known != test.known || !slices.Equal(got, test.want) {
			t.Errorf("%q, by bus %v: got %v, %v, want %v, %v", test.text, test.bus, got, known, test.want, test.known)
		}
	}
	unset := func(string) (string, bool) { return "", false }
	if got, known := VisibleFrom(unset).Among(same); known {
		t.Errorf("without a setting: got %v, want no limit", got)
	}
}

package sample

import (
	"slices"
	"strings"
	"testing"
)

func TestVisibleGPUs(t *testing.T) {
	same := []GPU{{ID: "GPU-aa", Name: "A", Index: 0}, {ID: "GPU-ab", Name: "A", Index: 1},
		{ID: "GPU-b", Name: "A", Index: 2}}
	mixed := []GPU{{ID: "GPU-aa", Name: "A", Index: 0}, {ID: "GPU-b", Name: "B", Index: 1}}
	makers := []GPU{{ID: "GPU-aa", Name: "A", Index: 0}, {ID: "GPU-c", Name: "AMD C", Index: 0, Vendor: "AMD"},
		{ID: "GPU-d", Name: "AMD C", Index: 1, Vendor: "AMD"}}
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
		{"0", false, makers, []string{"GPU-aa"}, true},
		{"1", false, makers, nil, true},
		{"1", false, makers[1:], []string{"GPU-d"}, true},
		{"MIG-1", false, sliced, []string{"MIG-1"}, true},
		{"MIG-2", false, sliced, nil, false},
		{"GPU-aa", false, sliced, []string{"GPU-aa", "MIG-1"}, true},
		{"0", true, sliced, nil, false},
		{"0", false, nil, nil, false},
	} {
		v := VisibleFrom(func(key string) (string, bool) {
			switch key {
			case "CUDA_DEVICE_ORDER":
				return "PCI_BUS_ID", test.bus
			case "NVIDIA_VISIBLE_DEVICES":
				return "", false
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

// The list of a container limits its GPUs, and CUDA counts those of the list.
func TestVisibleGPUsOfAContainer(t *testing.T) {
	four := []GPU{{ID: "GPU-a", Index: 0}, {ID: "GPU-b", Index: 1}, {ID: "GPU-c", Index: 2}, {ID: "GPU-d", Index: 3}}
	mixed := []GPU{{ID: "GPU-a", Name: "A", Index: 0}, {ID: "GPU-b", Name: "B", Index: 1}, {ID: "GPU-c", Index: 2}}
	one := []GPU{{ID: "GPU-d", Index: 0}} // as seen from within a container with the machine's GPU 3
	sliced := []GPU{{ID: "GPU-a", Index: 0}, {ID: "MIG-1", Parent: "GPU-a"}, {ID: "GPU-b", Index: 1}}
	for _, test := range []struct {
		nvidia, cuda string // "-" is not set
		gpus         []GPU
		want         []string
		known        bool
	}{
		{"-", "-", four, nil, false},
		{"all", "-", four, nil, false},
		{"none", "-", four, nil, false},
		{"void", "-", four, nil, false},
		{"", "-", four, nil, false},
		{"all", "1", four, []string{"GPU-b"}, true},
		{"2", "-", four, []string{"GPU-c"}, true},
		{"3, 1", "-", four, []string{"GPU-b", "GPU-d"}, true},
		{"GPU-c", "-", four, []string{"GPU-c"}, true},
		{"GPU-c,GPU-x", "-", four, nil, false},
		{"3,1", "0", four, []string{"GPU-b"}, true},
		{"3,1", "1", four, []string{"GPU-d"}, true},
		{"3,1", "2", four, nil, true},
		{"3,1", "GPU-d", four, []string{"GPU-d"}, true},
		{"3", "", four, nil, true},
		{"3", "-", one, nil, false},
		{"3", "0", one, []string{"GPU-d"}, true},
		{"0,1", "1", mixed, []string{"GPU-a", "GPU-b"}, true}, // CUDA's order of two models is not known
		{"1", "0", mixed, []string{"GPU-b"}, true},
		{"MIG-1", "-", sliced, []string{"MIG-1"}, true},
		{"GPU-b", "0", sliced, []string{"GPU-b"}, true},
		{"0", "-", sliced, nil, false},
		{"0:1", "-", sliced, nil, false},
		{"/var/run/nvidia-container-devices", "-", four, nil, false},
	} {
		v := VisibleFrom(func(key string) (string, bool) {
			value := map[string]string{"CUDA_VISIBLE_DEVICES": test.cuda, "NVIDIA_VISIBLE_DEVICES": test.nvidia}[key]
			return strings.TrimSuffix(value, "-"), value != "-" && key != "CUDA_DEVICE_ORDER"
		})
		if got, known := v.Among(test.gpus); known != test.known || !slices.Equal(got, test.want) {
			t.Errorf("NVIDIA %q, CUDA %q: got %v, %v, want %v, %v", test.nvidia, test.cuda, got, known, test.want, test.known)
		}
	}
	if four[1].Index != 1 {
		t.Error("the numbers of the GPUs were changed")
	}
}

package sample

import (
	"slices"
	"strconv"
	"strings"
)

// VisibleGPUs are the settings of a program's environment that limit which GPUs it can use. A nil pointer is a program
// without a limit.
type VisibleGPUs struct {
	CUDA  string `json:"cuda"`             // CUDA_VISIBLE_DEVICES
	ByBus bool   `json:"by_bus,omitempty"` // CUDA_DEVICE_ORDER=PCI_BUS_ID: numbers are as in nvidia-smi
}

// maxVisible bounds the text of CUDA_VISIBLE_DEVICES.
const maxVisible = 4 << 10

// VisibleFrom reads the settings of an environment.
func VisibleFrom(lookup func(key string) (string, bool)) *VisibleGPUs {
	text, set := lookup("CUDA_VISIBLE_DEVICES")
	if !set || len(text) > maxVisible {
		return nil
	}
	order, _ := lookup("CUDA_DEVICE_ORDER")
	return &VisibleGPUs{CUDA: text, ByBus: order == "PCI_BUS_ID"}
}

// Among returns the IDs of the GPUs that the program can use. known is false without a limit, and where numbers are
// ambiguous: by default CUDA counts the fastest GPU first, which is not the driver's order where models differ, and it
// counts MIG devices in an order of its own. As in CUDA, the list ends at the first entry that is no GPU.
func (v *VisibleGPUs) Among(gpus []GPU) (ids []string, known bool) {
	if v == nil || len(gpus) == 0 {
		return nil, false
	}
	for entry := range strings.SplitSeq(v.CUDA, ",") {
		entry = strings.TrimSpace(entry)
		number, err := strconv.Atoi(entry)
		var found []string
		switch {
		case err == nil && number >= 0 && v.ambiguous(gpus):
			return nil, false
		case err == nil:
			found = numbered(gpus, number)
		default:
			found = named(gpus, entry)
		}
		if strings.HasPrefix(entry, "MIG-") && len(found) == 0 {
			return nil, false // a MIG device that is not listed
		}
		if len(found) == 0 {
			break
		}
		ids = append(ids, found...)
	}
	return ids, true
}

// ambiguous reports whether the numbers of GPUs may not be the driver's.
func (v *VisibleGPUs) ambiguous(gpus []GPU) bool {
	return slices.ContainsFunc(gpus, func(g GPU) bool {
		return g.Parent != "" || !v.ByBus && g.Name != gpus[0].Name
	})
}

func numbered(gpus []GPU, number int) []string {
	for i := range gpus {
		if gpus[i].Index == number {
			return []string{gpus[i].ID}
		}
	}
	return nil
}

// named returns the GPU whose ID begins with a prefix, and its MIG devices; nil for none, or more than one.
func named(gpus []GPU, prefix string) (ids []string) {
	if !strings.HasPrefix(prefix, "GPU-") && !strings.HasPrefix(prefix, "MIG-") {
		return nil
	}
	for i := range gpus {
		if strings.HasPrefix(gpus[i].ID, prefix) {
			if len(ids) > 0 {
				return nil
			}
			ids = append(ids, gpus[i].ID)
		}
	}
	for i := range gpus {
		if len(ids) > 0 && gpus[i].Parent == ids[0] {
			ids = append(ids, gpus[i].ID)
		}
	}
	return ids
}

package sample

import (
	"slices"
	"strconv"
	"strings"
)

// VisibleGPUs are the settings of a program's environment that limit which GPUs it can use. A nil pointer is a program
// without a limit.
type VisibleGPUs struct {
	CUDA   string `json:"cuda"`              // CUDA_VISIBLE_DEVICES
	NoCUDA bool   `json:"no_cuda,omitempty"` // it is not set, so CUDA limits nothing
	ByBus  bool   `json:"by_bus,omitempty"`  // CUDA_DEVICE_ORDER=PCI_BUS_ID: numbers are as in nvidia-smi
	NVIDIA string `json:"nvidia,omitempty"`  // NVIDIA_VISIBLE_DEVICES, if it is a list: the GPUs of a container
}

// maxVisible bounds the text of a list.
const maxVisible = 4 << 10

// VisibleFrom reads the settings of an environment.
func VisibleFrom(lookup func(key string) (string, bool)) *VisibleGPUs {
	var v VisibleGPUs
	cuda, set := lookup("CUDA_VISIBLE_DEVICES")
	if v.NoCUDA = !set || len(cuda) > maxVisible; !v.NoCUDA {
		v.CUDA = cuda
	}
	switch list, _ := lookup("NVIDIA_VISIBLE_DEVICES"); list {
	case "", "all", "none", "void": // no list, as the NVIDIA Container Toolkit defines
	default:
		if len(list) <= maxVisible {
			v.NVIDIA = list
		}
	}
	if v.NoCUDA && v.NVIDIA == "" {
		return nil
	}
	order, _ := lookup("CUDA_DEVICE_ORDER")
	v.ByBus = order == "PCI_BUS_ID"
	return &v
}

// Among returns the IDs of the GPUs that the program can use. known is false without a limit, and where numbers are
// ambiguous: by default CUDA counts the fastest GPU first, which is not the driver's order where models differ, and it
// counts MIG devices in an order of its own. As in CUDA, its list ends at the first entry that is no GPU.
func (v *VisibleGPUs) Among(gpus []GPU) (ids []string, known bool) {
	if v == nil || len(gpus) == 0 {
		return nil, false
	}
	if nvidias := ofNVIDIA(gpus); len(nvidias) > 0 { // else they are HIP's, which reads CUDA's setting
		gpus = nvidias
	}
	inside, limited := v.inContainer(gpus)
	if limited {
		gpus = inside
	}
	if !v.NoCUDA {
		if ids, known = v.amongCUDA(gpus); known {
			return ids, true
		}
	}
	if !limited {
		return nil, false
	}
	for i := range inside {
		ids = append(ids, inside[i].ID)
	}
	return ids, true
}

// inContainer returns the GPUs of a container, numbered as within it, where CUDA counts from 0 again. known is false
// without a list, and if one of its GPUs is not among these: from within the container, numbers of the machine name
// other GPUs or none. If all are found there, they are all of the container's.
func (v *VisibleGPUs) inContainer(gpus []GPU) (inside []GPU, known bool) {
	if v.NVIDIA == "" {
		return nil, false
	}
	var ids []string
	for entry := range strings.SplitSeq(v.NVIDIA, ",") {
		entry = strings.TrimSpace(entry)
		found := named(gpus, entry)
		if number, err := strconv.Atoi(entry); err == nil && !sliced(gpus) {
			found = numbered(gpus, number)
		}
		if len(found) == 0 {
			return nil, false
		}
		ids = append(ids, found...)
	}
	for i := range gpus {
		if g := gpus[i]; slices.Contains(ids, g.ID) {
			inside = append(inside, g)
		}
	}
	slices.SortStableFunc(inside, func(a, b GPU) int { return a.Index - b.Index })
	for i := range inside {
		inside[i].Index = i
	}
	return inside, true
}

// amongCUDA applies the setting of CUDA.
func (v *VisibleGPUs) amongCUDA(gpus []GPU) (ids []string, known bool) {
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

// ofNVIDIA returns the GPUs without those of other makers, which count theirs from 0, too.
func ofNVIDIA(gpus []GPU) []GPU {
	isOther := func(g GPU) bool { return g.Vendor != "" }
	if !slices.ContainsFunc(gpus, isOther) {
		return gpus
	}
	return slices.DeleteFunc(slices.Clone(gpus), isOther)
}

// sliced reports whether there are MIG devices.
func sliced(gpus []GPU) bool {
	return slices.ContainsFunc(gpus, func(g GPU) bool { return g.Parent != "" })
}

// ambiguous reports whether the numbers of GPUs may not be the driver's.
func (v *VisibleGPUs) ambiguous(gpus []GPU) bool {
	return sliced(gpus) || !v.ByBus && slices.ContainsFunc(gpus, func(g GPU) bool { return g.Name != gpus[0].Name })
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

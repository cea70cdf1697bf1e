package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stallspan/stallspan/internal/source/gpu"
)

// gpus asks the NVIDIA driver for its GPUs, and each of these for everything once.
func (m *machine) gpus(ctx context.Context) []Finding {
	ctx, cancel := context.WithTimeout(ctx, mostGPU)
	defer cancel()
	found, err := gpu.Probe(ctx, gpu.Options{Library: m.NVML})
	if err != nil {
		return []Finding{m.noGPU(err)}
	}
	if len(found.Devices) == 0 && found.Err == nil {
		return []Finding{{Area: GPU, What: "driver", State: Missing, Details: driver(found), Fix: m.giveGPU(),
			Says: fmt.Sprintf("The NVIDIA driver %s is here and lists no GPU that this process may use.", found.Driver)}}
	}
	var list []Finding
	for _, d := range found.Devices {
		list = append(list, device(d, found))
	}
	if found.Err != nil {
		list = append(list, Finding{Area: GPU, What: "driver", State: Limited, Details: driver(found),
			Says: "Not every GPU can be read: " + found.Err.Error() + ".", Fix: "nvidia-smi, and look for NVRM and Xid in the kernel's log"})
	}
	return list
}

func driver(found gpu.ProbeResult) map[string]any {
	return map[string]any{"driver": found.Driver, "nvml": found.NVML}
}

func device(d gpu.Device, found gpu.ProbeResult) Finding {
	f := Finding{Area: GPU, What: d.ID, State: Seen, Details: driver(found)}
	f.Details["id"], f.Details["name"], f.Details["index"] = d.ID, d.Name, d.Index
	f.Details["tells"], f.Details["lacks"] = nonNil(d.Supported), nonNil(d.Unsupported)
	f.Details["busy"] = tellsBusy(d)
	f.Says = fmt.Sprintf("GPU %d, %s (driver %s), can be watched.", d.Index, d.Name, found.Driver)
	if len(d.Unsupported) > 0 {
		f.Says = fmt.Sprintf("GPU %d, %s (driver %s), can be watched, but does not tell: %s.", d.Index, d.Name, found.Driver, strings.Join(d.Unsupported, ", "))
	}
	switch {
	case d.Err != nil:
		f.State = Limited
		f.Says += " It failed to answer: " + d.Err.Error() + "."
		f.Fix = "nvidia-smi, and look for NVRM and Xid in the kernel's log"
	case !tellsBusy(d):
		f.State = Limited
		f.Says += " Its time cannot be split."
		if strings.HasPrefix(d.ID, "MIG-") {
			f.Says += " NVIDIA counts no utilization of MIG slices."
		}
	}
	return f
}

// tellsBusy says whether it is known how busy a GPU is.
func tellsBusy(d gpu.Device) bool {
	for _, answer := range d.Supported {
		if strings.HasPrefix(answer, "utilization") {
			return true
		}
	}
	return false
}

// own is what follows where there is no GPU to lack.
const own = "A program's own time is split instead of a GPU's."

// noGPU says why there is none, and how there could be one.
func (m *machine) noGPU(err error) Finding {
	f := Finding{Area: GPU, What: "driver", State: Missing}
	card, loaded := m.card(), exists(m.path("proc/driver/nvidia/version"))
	f.Details = map[string]any{"card": card, "kernel_module": loaded}
	switch {
	case errors.Is(err, gpu.ErrNotBuilt) && (loaded || card == nvidia):
		f.Says, f.Fix = "An NVIDIA GPU is here, and this program was built without NVML (without cgo).", "CGO_ENABLED=1 go install ."
	case errors.Is(err, gpu.ErrNotBuilt):
		f.Says = "No NVIDIA GPU is in sight (and this program could read none: it was built without cgo). " + own
	case errors.Is(err, gpu.ErrNoDriver) && loaded:
		f.Says, f.Fix = "The NVIDIA driver is loaded, and its library libnvidia-ml.so.1 is not here.", m.giveLibrary()
	case errors.Is(err, gpu.ErrNoDriver) && card == nvidia:
		f.Says, f.Fix = "An NVIDIA GPU is in this machine, and its driver is not installed.", m.installDriver()
	case errors.Is(err, gpu.ErrNoDriver) && card != "":
		f.Says = fmt.Sprintf("The GPU in this machine is %s: those of NVIDIA alone can be read. %s", card, own)
	case errors.Is(err, gpu.ErrNoDriver):
		f.Says = "There is no NVIDIA driver here. " + own
	case errors.Is(err, context.DeadlineExceeded):
		f.Says = fmt.Sprintf("The NVIDIA driver did not answer within %v: it hangs, or loads anew for each program.", mostGPU)
		f.Fix = "sudo nvidia-smi -pm 1"
	default:
		m.refused(&f, err)
	}
	return f
}

// refused is about a driver that is there and says no.
func (m *machine) refused(f *Finding, err error) {
	what, todo, _ := strings.Cut(err.Error(), ": ") // "what happened: what to do"
	f.Says, f.Fix = "No GPU can be read: "+what+".", todo
	switch {
	case strings.Contains(what, "NVML error"):
		f.Fix = "nvidia-smi, which may say more"
	case strings.Contains(what, "versions"):
		f.Fix = "sudo reboot"
	case strings.Contains(what, "cannot be loaded"):
		f.Says, f.Fix = "No GPU can be read: "+err.Error()+".", "install the NVIDIA driver again"
	case strings.Contains(what, "permission"), strings.Contains(what, "not loaded"):
		if fix := m.giveGPU(); fix != "" {
			f.Fix = fix
		}
	}
}

// giveGPU is what gives a container its GPUs; "" outside of one.
func (m *machine) giveGPU() string {
	switch visible := os.Getenv("NVIDIA_VISIBLE_DEVICES"); {
	case len(m.containerSigns()) == 0:
		return ""
	case visible == "none" || visible == "void":
		return "NVIDIA_VISIBLE_DEVICES=all, in place of " + visible
	case os.Getenv("KUBERNETES_SERVICE_HOST") != "":
		return "resources: {limits: {nvidia.com/gpu: 1}}, in the pod's spec"
	}
	return "docker run --gpus all ..."
}

func (m *machine) giveLibrary() string {
	if fix := m.giveGPU(); fix != "" {
		if os.Getenv("NVIDIA_DRIVER_CAPABILITIES") != "" {
			return "NVIDIA_DRIVER_CAPABILITIES=compute,utility"
		}
		return fix
	}
	return "install the rest of the NVIDIA driver (on Debian: libnvidia-ml1)"
}

func (m *machine) installDriver() string {
	if fix := m.giveGPU(); fix != "" {
		return fix
	}
	return "install the NVIDIA driver: https://www.nvidia.com/drivers"
}

const nvidia = "NVIDIA's"

// makers of GPUs, by the number of their PCI devices.
var makers = map[string]string{"0x10de": nvidia, "0x1002": "AMD's"}

// card is whose GPU the PCI bus has, "" for none that computes.
func (m *machine) card() string {
	folders, _ := filepath.Glob(m.path("sys/bus/pci/devices/*"))
	best := ""
	for _, folder := range folders {
		class, _ := readStart(filepath.Join(folder, "class"))
		vendor, _ := readStart(filepath.Join(folder, "vendor"))
		if maker := makers[strings.TrimSpace(vendor)]; maker != "" && isDisplay(class) && best != nvidia {
			best = maker
		}
	}
	return best
}

// isDisplay says whether a PCI class is a display controller's (0x03) or an accelerator's (0x12).
func isDisplay(class string) bool {
	return strings.HasPrefix(class, "0x03") || strings.HasPrefix(class, "0x12")
}

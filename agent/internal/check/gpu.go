package check

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/gpu"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// gpus lists the GPUs of the driver, and reads everything of each once.
func (m *machine) gpus(ctx context.Context) []Finding {
	ctx, cancel := context.WithTimeout(ctx, maxGPU)
	defer cancel()
	found, err := gpu.Probe(ctx, gpu.Options{Library: m.NVML, Root: m.root})
	var list []Finding
	nvidias := 0
	for _, d := range found.Devices {
		if d.Vendor == "" {
			nvidias++
		}
		list = append(list, device(d, found.NVML))
	}
	missing := errors.Is(err, gpu.ErrNoDriver) || errors.Is(err, gpu.ErrNotBuilt)
	switch details := map[string]any{"driver": found.Driver, "nvml": found.NVML}; {
	case missing && len(list) > 0 && m.card() != nvidia: // it needs none
	case err != nil:
		list = append(list, m.noGPU(err)...)
	case nvidias == 0 && found.Err == nil:
		list = append(list, Finding{Area: GPU, What: "driver", Details: details}.as(Missing, m.giveGPU(),
			"The NVIDIA driver %s lists no GPU that this process may use.", found.Driver)...)
	}
	if found.Err != nil {
		list = append(list, Finding{Area: GPU, What: "driver", State: Limited,
			Message: "Not every GPU can be read: " + found.Err.Error() + ".", Fix: fixOf(found.Err)})
	}
	return list
}

// fixOf returns what to do about an error of a GPU.
func fixOf(err error) string {
	for _, known := range [...]struct{ text, fix string }{
		{"update this program", "update stallspan, which may know what that GPU's driver writes"},
		{"amdgpu", "search the kernel's log for amdgpu"},
		{"no permission", "give this user /dev/nvidia* and /dev/nvidiactl, or run it as root"},
		{"needs a reset", "sudo nvidia-smi --gpu-reset"},
	} {
		if strings.Contains(err.Error(), known.text) {
			return known.fix
		}
	}
	return "run nvidia-smi, and search the kernel's log for NVRM and Xid"
}

func device(d gpu.Device, nvml string) Finding {
	f := Finding{Area: GPU, What: d.ID, State: Seen, Details: map[string]any{"driver": d.Driver, "nvml": nvml, "id": d.ID,
		"name": d.Name, "index": d.Index, "tells": nonNil(d.Supported), "lacks": nonNil(d.Unsupported), "busy": d.Busy}}
	f.Message = sample.GPUName(d.Vendor, d.Index) + ", " + d.Name
	if d.Driver != "" {
		f.Message += " (driver " + d.Driver + ")"
	}
	if d.Asleep {
		f.State = Off
		f.Message += ", sleeps (power/runtime_status is suspended), and was not woken: it is read while a program uses it, " +
			"and until a minute later."
		return f
	}
	switch f.Message += ", can be read"; {
	case len(d.Supported) == 0:
		f.Message += ", but reports nothing"
	case len(d.Unsupported) > 0:
		f.Message += ", but does not report: " + strings.Join(d.Unsupported, ", ")
	}
	f.Message = strings.Join(append([]string{f.Message + "."}, d.Notes...), " ")
	if d.Err != nil {
		f.State, f.Fix = Limited, fixOf(d.Err)
		f.Message += " A query failed: " + strings.ReplaceAll(d.Err.Error(), "GPU "+d.ID+": ", "") + "."
	}
	if !d.Busy {
		f.State = Limited
		f.Message += " Its time cannot be divided."
	}
	return f
}

// ownTimeInstead is the consequence on a machine without a GPU.
const ownTimeInstead = "A program's own time is divided instead of a GPU's."

const normal = "That is normal on a machine without a GPU. "

// noGPU is why no GPU can be read, with the fix.
func (m *machine) noGPU(err error) []Finding {
	card, loaded := m.card(), exists(m.path("proc/driver/nvidia/version"))
	f := Finding{Area: GPU, What: "driver", Details: map[string]any{"card": card, "kernel_module": loaded}}
	notBuilt, noDriver := errors.Is(err, gpu.ErrNotBuilt), errors.Is(err, gpu.ErrNoDriver)
	switch {
	case errors.Is(err, gpu.ErrAsleep):
		return f.as(Off, "", "The NVIDIA GPU sleeps (runtime_status below /sys/bus/pci/devices is suspended), and was not "+
			"woken: it is read while a program uses it, and until a minute later.")
	case notBuilt && (loaded || card == nvidia):
		return f.as(Missing, "CGO_ENABLED=1 go install .",
			"There is an NVIDIA GPU, but this program was built without NVML (without cgo).")
	case notBuilt:
		return f.as(Off, "", "No GPU is visible (and this program was built without NVML). "+normal+ownTimeInstead)
	case noDriver && exists(m.path("dev/dxg")):
		return f.as(Missing, "install the NVIDIA driver of Windows, then wsl --update",
			"This is WSL2 (/dev/dxg), but /usr/lib/wsl/lib/libnvidia-ml.so.1 is missing.")
	case noDriver && loaded:
		return f.as(Missing, m.giveLibrary(), "The NVIDIA driver is loaded, but its library libnvidia-ml.so.1 is missing.")
	case noDriver && card == nvidia:
		return f.as(Missing, cmp.Or(m.giveGPU(), "install the NVIDIA driver: https://www.nvidia.com/drivers"),
			"There is an NVIDIA GPU, but its driver is not installed.")
	case noDriver && card != "":
		return f.as(Missing, "sudo modprobe amdgpu",
			"The GPU in this machine is %s, and its driver amdgpu is not loaded. %s", card, ownTimeInstead)
	case noDriver:
		return f.as(Off, "", "There is no NVIDIA driver, and no GPU of NVIDIA or AMD is visible. "+normal+ownTimeInstead)
	case errors.Is(err, context.DeadlineExceeded):
		return f.as(Missing, "sudo nvidia-smi -pm 1",
			"The NVIDIA driver did not answer within %v: it hangs, or is loaded again for each program.", maxGPU)
	}
	what, todo, _ := strings.Cut(err.Error(), ": ") // "what happened: what to do"
	switch {
	case strings.Contains(what, "NVML error"):
		todo = "run nvidia-smi, which may explain more"
	case strings.Contains(what, "versions"):
		todo = "sudo reboot"
	case strings.Contains(what, "cannot be loaded"):
		what, todo = err.Error(), "install the NVIDIA driver again"
	case strings.Contains(what, "permission"), strings.Contains(what, "not loaded"):
		todo = cmp.Or(m.giveGPU(), todo)
	}
	return f.as(Missing, todo, "No GPU can be read: %s.", what)
}

// giveGPU gives a container its GPUs; "" outside of one.
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
	if m.giveGPU() != "" && os.Getenv("NVIDIA_DRIVER_CAPABILITIES") != "" {
		return "NVIDIA_DRIVER_CAPABILITIES=compute,utility"
	}
	return cmp.Or(m.giveGPU(), "install the rest of the NVIDIA driver (on Debian: libnvidia-ml1)")
}

const nvidia = "NVIDIA's"

// card returns the maker of the GPU on the PCI bus; "" if no GPU there can compute.
func (m *machine) card() string {
	switch {
	case len(kernfile.Displays(m.root, "0x10de")) > 0:
		return nvidia
	case len(kernfile.Displays(m.root, "0x1002")) > 0:
		return "AMD's"
	}
	return ""
}

package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/internal/source/gpu"
	"github.com/stallspan/stallspan/test/fixture"
)

func TestNoGPU(t *testing.T) {
	none := t.TempDir()
	card := fixture.Root(t, "check_server")
	container := fixture.Root(t, "check_server")
	fixture.Write(t, container, ".dockerenv", nil)
	loaded := t.TempDir()
	fixture.Write(t, loaded, "proc/driver/nvidia/version", []byte("NVRM version: x\n"))
	loadedInside := t.TempDir()
	fixture.Write(t, loadedInside, "proc/driver/nvidia/version", []byte("NVRM version: x\n"))
	fixture.Write(t, loadedInside, ".dockerenv", nil)
	amd := t.TempDir()
	fixture.Write(t, amd, "sys/bus/pci/devices/0000:03:00.0/class", []byte("0x038000\n"))
	fixture.Write(t, amd, "sys/bus/pci/devices/0000:03:00.0/vendor", []byte("0x1002\n"))
	wsl := t.TempDir()
	fixture.Write(t, wsl, "dev/dxg", nil)
	other := t.TempDir() // a network card of NVIDIA's
	fixture.Write(t, other, "sys/bus/pci/devices/0000:03:00.0/class", []byte("0x020000\n"))
	fixture.Write(t, other, "sys/bus/pci/devices/0000:03:00.0/vendor", []byte("0x10de\n"))
	missing := fmt.Errorf("%w (libnvidia-ml.so.1)", gpu.ErrNoDriver)
	for _, c := range []struct {
		root      string
		err       error
		state     State
		says, fix string // "" for no fix at all
	}{
		{none, missing, Off, "no NVIDIA driver", ""},
		{other, missing, Off, "no NVIDIA driver", ""},
		{wsl, missing, Missing, "This is WSL2 (/dev/dxg)", "wsl --update"},
		{none, gpu.ErrNotBuilt, Off, "without NVML", ""},
		{card, gpu.ErrNotBuilt, Missing, "without NVML", "CGO_ENABLED=1 go install ."},
		{loaded, gpu.ErrNotBuilt, Missing, "without NVML", "CGO_ENABLED=1 go install ."},
		{card, missing, Missing, "its driver is not installed", "https://www.nvidia.com/drivers"},
		{container, missing, Missing, "its driver is not installed", "--gpus all"},
		{loaded, missing, Missing, "its library libnvidia-ml.so.1 is missing", "libnvidia-ml1"},
		{loadedInside, missing, Missing, "its library libnvidia-ml.so.1 is missing", "--gpus all"},
		{amd, missing, Missing, "AMD's", "modprobe amdgpu"},
		{none, fmt.Errorf("the NVIDIA driver did not answer in time: %w", context.DeadlineExceeded), Missing, "hangs",
			"nvidia-smi -pm 1"},
		{none, errors.New("the NVIDIA driver is not loaded: `modprobe nvidia`"), Missing, "not loaded.", "modprobe nvidia"},
		{container, errors.New("the NVIDIA driver is not loaded: `modprobe nvidia`"), Missing, "not loaded.", "--gpus all"},
		{none, errors.New("the NVIDIA driver's library cannot be loaded, install the driver again: bad ELF"), Missing,
			"bad ELF", "install"},
	} {
		m := &machine{Options: Options{Root: c.root}, root: c.root}
		f := m.noGPU(c.err)[0]
		if !strings.Contains(f.Message, c.says) || !strings.Contains(f.Fix, c.fix) || (f.Fix == "") != (c.fix == "") ||
			f.State != c.state {
			t.Errorf("%v: got %+v, want %v, %q with the fix %q", c.err, f, c.state, c.says, c.fix)
		}
	}
}

func TestDevice(t *testing.T) {
	whole := gpu.Device{ID: "GPU-1", Name: "NVIDIA H200", Supported: []string{"utilization samples", "energy"}, Busy: true}
	partly := gpu.Device{ID: "GPU-2", Name: "NVIDIA T400", Index: 1, Supported: []string{"utilization"},
		Unsupported: []string{"energy", "power"}, Busy: true}
	slice := gpu.Device{ID: "MIG-3", Name: "NVIDIA H100 MIG 1g.10gb", Supported: []string{"memory"},
		Unsupported: []string{"utilization samples", "utilization"}, Notes: []string{"It is a slice."}}
	failing := gpu.Device{ID: "GPU-4", Supported: []string{"utilization"}, Busy: true, Err: errors.New("the GPU is lost")}
	denied := gpu.Device{ID: "GPU-5", Vendor: "AMD", Supported: []string{"power"}, Err: errors.New("no permission: x")}
	for _, c := range []struct {
		device gpu.Device
		state  State
		says   string
		splits bool
	}{
		{whole, Seen, "GPU 0, NVIDIA H200 (driver 570.1), can be read.", true},
		{partly, Seen, "does not report: energy, power.", true},
		{slice, Limited, "utilization. It is a slice. Its time cannot be divided.", false},
		{failing, Limited, "the GPU is lost.", true},
		{denied, Limited, "no permission: x. Its time cannot be divided.", false},
		{gpu.Device{ID: "GPU-6", Name: "AMD X", Vendor: "AMD", Index: 2}, Limited,
			"AMD GPU 2, AMD X (driver 570.1), can be read, but reports nothing.", false},
	} {
		c.device.Driver = "570.1"
		f := device(c.device, "")
		if f.State != c.state || !strings.Contains(f.Message, c.says) || splitsGPU([]Finding{f}) != c.splits {
			t.Errorf("%s: got %+v, want %v, %q and split %v", c.device.ID, f, c.state, c.says, c.splits)
		}
	}
}

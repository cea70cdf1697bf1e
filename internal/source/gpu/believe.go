package gpu

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// Some drivers answer SUCCESS and say nothing: of integrated GPUs (Jetson) and of some virtual ones. Which of their
// answers cannot be is decided here, by what the rest of the machine shows.

// maxPID is above every number of a process (PID_MAX_LIMIT in the kernel).
const maxPID = 1 << 22

// maxMaps bounds what is read of a process's mappings, in bytes.
const maxMaps = 8 << 20

// integrated are parts of the names of GPUs that have no memory of their own. Others are found by the size of their
// memory.
var integrated = []string{"GB10", "Tegra", "Orin", "Xavier", "Thor"}

// loadFiles are where the kernel shows the load of an integrated GPU, in thousandths of time, below the root.
var loadFiles = []string{
	"sys/devices/gpu.0/load", "sys/devices/platform/*gpu*/load", "sys/devices/platform/*/*gpu*/load",
}

// machine is what the machine shows of its GPUs apart from the driver. nil shows nothing.
type machine struct {
	root     string
	mayLack  bool // the NVIDIA driver
	findLoad sync.Once
	loadFile string // of the integrated GPU; "" for none
}

// lacks reports whether an error only means that this machine has no driver of NVIDIA's.
func (m *machine) lacks(err error) bool {
	if m == nil || !m.mayLack || !errors.Is(err, ErrNoDriver) && !errors.Is(err, ErrNotBuilt) {
		return false
	}
	_, missing := os.Stat(filepath.Join(m.root, "proc/driver/nvidia"))
	return missing != nil
}

// load returns the share of time in which the integrated GPU worked recently, in percent.
func (m *machine) load() (percent float64, known bool) {
	if m == nil {
		return 0, false
	}
	m.findLoad.Do(func() {
		for _, pattern := range loadFiles {
			files, _ := filepath.Glob(filepath.Join(m.root, pattern))
			if len(files) == 1 { // else it is not known which GPU's it is
				m.loadFile = files[0]
			}
		}
	})
	text, err := os.ReadFile(m.loadFile)
	if err != nil {
		return 0, false
	}
	value, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	return value / 10, err == nil && value >= 0 && value <= 1000
}

// memory returns the machine's memory in bytes, or 0.
func (m *machine) memory() uint64 {
	if m == nil {
		return 0
	}
	return kernfile.MemInfo(m.root, "MemTotal")
}

// isWSL reports whether Windows has the GPU, and Linux uses it through /dev/dxg.
func (m *machine) isWSL() bool {
	if m == nil {
		return false
	}
	_, err := os.Stat(filepath.Join(m.root, "dev/dxg"))
	return err == nil
}

// numbersAreOurs reports whether the driver's numbers of processes are those that this program sees.
func (m *machine) numbersAreOurs() bool {
	return m == nil || !kernfile.ForeignPIDs(m.root)
}

// uses reports whether a process has a device of the driver open or its library mapped. The kernel may take long to
// list mappings.
func (m *machine) uses(pid int) bool {
	folder := filepath.Join(m.root, "proc", strconv.Itoa(pid))
	names, _ := kernfile.Names(filepath.Join(folder, "fd"), maxOpen)
	for _, name := range names {
		to, _ := os.Readlink(filepath.Join(folder, "fd", name))
		for _, device := range []string{"/dev/nvidia", "/dev/dxg", "/dev/nvmap", "/dev/nvhost"} {
			if strings.HasPrefix(to, device) {
				return true
			}
		}
	}
	maps, _ := kernfile.ReadWhole(filepath.Join(folder, "maps"), make([]byte, 64<<10), maxMaps)
	return bytes.Contains(maps, []byte("/libcuda.so")) || bytes.Contains(maps, []byte("/libnvidia"))
}

// errForeign is reported with the processes that do not use a GPU here.
var errForeign = errors.New("the NVIDIA driver lists processes by the numbers of another PID namespace: windows " +
	"cover the GPUs that worked; stallspan check reports how this program sees all processes of the machine")

// applyProcesses takes over the processes of a reading. Where the driver may number them in another namespace, a
// process counts if it uses a GPU.
func (r *run) applyProcesses(g *deviceState, list []sample.GPUProcess) {
	for i := range list {
		list[i].GPU = g.info.ID
	}
	if len(list) == 0 || r.machine.numbersAreOurs() {
		r.setProcesses(g, list)
		return
	}
	if g.check.isUnderWay() {
		return
	}
	var ours []sample.GPUProcess
	g.check = r.begin(callTimeout, func() {
		for _, p := range list {
			if r.machine.uses(p.PID) {
				ours = append(ours, p)
			}
		}
	}, func(bool) {
		if len(ours) < len(list) {
			r.reports.Add("foreign", errForeign, r.began)
		}
		if g.readable() {
			r.setProcesses(g, ours)
			g.unused = false
		}
	}, func() {})
}

func (r *run) setProcesses(g *deviceState, list []sample.GPUProcess) {
	g.processes, g.unused, g.memoryListed = list, len(list) == 0, g.gauges.MemoryUsed
	r.grid.processesRead = true
}

// listUsers lists the processes of all devices where the driver lists them together.
func (r *run) listUsers() {
	l, ok := r.driver.(lister)
	if !ok || r.listing.isUnderWay() {
		return
	}
	var list []sample.GPUProcess
	r.listing = r.begin(callTimeout, func() { list = l.users() }, func(bool) {
		for _, g := range r.devices {
			r.setProcesses(g, slices.DeleteFunc(slices.Clone(list), func(p sample.GPUProcess) bool {
				return p.GPU != g.info.ID
			}))
		}
	}, func() {})
}

// listProcesses lists the device's processes. Numbers that no process has are dropped.
func (d *deviceReader) listProcesses(r *reading) (list []sample.GPUProcess) {
	d.do(processRows, r, func() (err error) {
		list, err = d.processes()
		return err
	})
	kept := list[:0]
	for _, p := range list {
		if possible := p.PID > 0 && p.PID < maxPID; possible || !d.hollow && r.valid("process", possible) {
			kept = append(kept, p)
		}
	}
	return kept
}

// readMemoryUse reads the device's memory. Where the driver reports 0 bytes in all, its other zeros are not believed,
// either. Where the memory is the machine's, what is in use is that of the device's processes: the driver may count the
// page cache.
func (d *deviceReader) readMemoryUse(w request, r *reading) {
	d.readRows(memoryRows, w, r)
	all, reported := d.got(memoryTotal, r)
	used, known := d.got(memoryUsed, r)
	if reported {
		d.hollow = all == 0
	}
	known = reported && known && !d.hollow && r.valid("memory", used <= all)
	if !known {
		d.values.Drop(sample.GPUMemoryReserved)
	}
	total := uint64(all)
	if d.sharesMemory(total, reported) {
		d.shared, known = true, false
		if total = max(total, d.machine.memory()); total > 0 && !d.unsupported[processRows.from] {
			list := d.listProcesses(r)
			used, known = 0, r.failed == nil
			for _, p := range list {
				used += float64(p.Memory)
			}
			used = min(used, float64(total))
		}
	}
	if known {
		r.gauges.MemoryUsed, r.gauges.MemoryTotal, r.gauges.Has = uint64(used), total, r.gauges.Has|sample.HasMemory
	}
}

// sharesMemory reports whether the device's memory is the machine's: by its name, by its size, or as the driver reports
// none.
func (d *deviceReader) sharesMemory(total uint64, reported bool) bool {
	if d.initialized || d.parent != "" {
		return d.shared
	}
	for _, name := range integrated {
		if strings.Contains(d.name, name) {
			return true
		}
	}
	machine := d.machine.memory()
	return machine > 0 && (d.unsupported[memoryRows.from] ||
		reported && total <= machine && machine-total < machine/1000)
}

// readLoad reads the kernel's load of an integrated GPU, in place of a driver's that has none. It reports whether the
// driver is not to be asked.
func (d *deviceReader) readLoad(driver driver, r *reading) bool {
	silent := d.unsupported[sampleRows.from] && d.unsupported[rateRows.from]
	if d.parent != "" || !d.hollow && !silent {
		return false
	}
	r.rate, r.hasRate = d.machine.load()
	r.clocks = driver.clocks()
	r.hollow = d.hollow && !r.hasRate
	return d.hollow
}

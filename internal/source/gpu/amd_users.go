package gpu

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
	"github.com/stallspan/stallspan/internal/source/procfile"
)

// Bounds of the search for processes.
const (
	maxUsers = 4096
	maxOpen  = 1024 // files of one process
	maxFiles = 4096 // of all in one search, some microseconds each, from the newest process on
	maxNodes = 256
)

// users lists the processes that compute on cards: those of the driver's list, and those that have a card open. In
// another PID namespace the driver's numbers are not those of the processes here: only open files show who computes.
func (a *amdgpu) users() []sample.GPUProcess {
	a.mu.Lock()
	cards := map[string]string{} // IDs by address
	for _, c := range a.cards {
		cards[c.bus] = c.id
	}
	a.mu.Unlock()
	foreign := kernfile.ForeignPIDs(a.root)
	var list []sample.GPUProcess
	if !foreign {
		list = listedBy(a.root, cardNumbers(a.root, cards))
	}
	for _, p := range openedBy(a.root, cards, foreign) {
		if !slices.ContainsFunc(list, func(o sample.GPUProcess) bool { return o.GPU == p.GPU && o.PID == p.PID }) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b sample.GPUProcess) int {
		return cmp.Or(cmp.Compare(a.GPU, b.GPU), cmp.Compare(a.PID, b.PID))
	})
	return list[:min(len(list), maxUsers)]
}

// listedBy returns the driver's list. cards are the cards' IDs, by the number that the driver's part for computing has
// for each.
func listedBy(root string, cards map[string]string) (list []sample.GPUProcess) {
	folder := filepath.Join(root, "sys/class/kfd/kfd/proc")
	names, _ := kernfile.Names(folder, maxUsers)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid < 1 || pid > maxPID {
			continue
		}
		held := map[string]uint64{}
		for number, id := range cards {
			bytes, _ := strconv.ParseUint(kernfile.Text(filepath.Join(folder, name, "vram_"+number)), 10, 64)
			held[id] += bytes // of each part of a card that is divided
		}
		for id, bytes := range held {
			if bytes > 0 && memoryBytes.contains(float64(bytes)) { // a process is listed with cards that it does not use, too
				list = append(list, sample.GPUProcess{GPU: id, PID: pid, Memory: bytes, Has: true})
			}
		}
	}
	return list
}

// cardNumbers returns the cards' IDs, by the driver's numbers.
func cardNumbers(root string, cards map[string]string) map[string]string {
	list := map[string]string{}
	folder := filepath.Join(root, "sys/class/kfd/kfd/topology/nodes")
	nodes, _ := kernfile.Names(folder, maxNodes)
	for _, node := range nodes {
		number := kernfile.Text(filepath.Join(folder, node, "gpu_id"))
		at := map[string]uint64{}
		for name, value := range fields(filepath.Join(folder, node, "properties"), " ") {
			at[name], _ = strconv.ParseUint(value, 10, 64)
		}
		place := at["location_id"]
		bus := fmt.Sprintf("%04x:%02x:%02x.%x", at["domain"], place>>8&0xff, place>>3&0x1f, place&7)
		if id, ok := cards[bus]; ok && number != "" {
			list[number] = id
		}
	}
	return list
}

// openedBy returns the processes that compute on cards, by their open files.
func openedBy(root string, cards map[string]string, foreign bool) (opened []sample.GPUProcess) {
	proc := filepath.Join(root, "proc")
	names, _ := os.ReadDir(proc)
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	files := 0
	for _, pid := range slices.Backward(pids) {
		looked, err := procfile.Do(proc, pid, func() look { return lookAt(filepath.Join(proc, strconv.Itoa(pid)), cards) })
		if files += looked.files + 1; err != nil {
			continue
		}
		for id, c := range looked.clients {
			if !c.computed {
				c.memory = 0 // that of /dev/kfd is in the driver's list alone
			}
			if c.computed || foreign && looked.computes {
				opened = append(opened, sample.GPUProcess{GPU: id, PID: pid, Memory: c.memory, Has: c.memory > 0})
			}
		}
		if files >= maxFiles {
			break
		}
	}
	return opened
}

// look is what the open files of a process show.
type look struct {
	files    int
	computes bool              // it has the driver's device for computing open
	clients  map[string]client // by card
}

// client is a process that has a card's device open (drm-usage-stats in the kernel's documentation).
type client struct {
	memory   uint64 // bytes
	computed bool
}

// lookAt looks at the files of a process below its folder of /proc.
func lookAt(folder string, cards map[string]string) (l look) {
	names, _ := kernfile.Names(filepath.Join(folder, "fd"), maxOpen)
	l.files, l.clients = len(names), map[string]client{}
	seen := map[string]bool{}
	for _, name := range names {
		to, _ := os.Readlink(filepath.Join(folder, "fd", name))
		l.computes = l.computes || to == "/dev/kfd"
		if !strings.HasPrefix(to, "/dev/dri/") {
			continue
		}
		about := fields(filepath.Join(folder, "fdinfo", name), ":")
		id, ok := cards[about["drm-pdev"]]
		once := about["drm-pdev"] + " " + about["drm-client-id"]
		if about["drm-driver"] != "amdgpu" || !ok || seen[once] {
			continue
		}
		seen[once] = true
		c := l.clients[id]
		c.memory += bytesOf(cmp.Or(about["drm-memory-vram"], about["drm-resident-vram"]))
		c.computed = c.computed || about["drm-engine-compute"] != "" && about["drm-engine-compute"] != "0 ns"
		l.clients[id] = c
	}
	return l
}

// bytesOf returns the number of bytes in a text such as "12 KiB"; 0 for none.
func bytesOf(text string) uint64 {
	number, unit, _ := strings.Cut(text, " ")
	n, err := strconv.ParseUint(number, 10, 64)
	shift, ok := map[string]int{"": 0, "KiB": 10, "MiB": 20}[unit]
	if err != nil || !ok || n > 1<<50>>shift {
		return 0
	}
	return n << shift
}

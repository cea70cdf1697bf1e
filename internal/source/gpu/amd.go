package gpu

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// AMD's GPUs are read from files of the kernel driver amdgpu, without a library: the table gpu_metrics, and for what a
// chip's table lacks, single files below /sys/class/drm. Busy time is the growth of the firmware's sum of activity. A
// chip without one has an average, which says nothing of the time before it: see sample.AveragesBusy. No file stays
// open, and a card that sleeps is not woken.

const maxCards = 64

var (
	errNoCard   = errors.New("the driver amdgpu has no GPU")
	errCardLost = fmt.Errorf("its files are gone%w; look for amdgpu in the kernel log", silently{codeLost})
)

// silently is an error without its text.
type silently struct{ error }

func (silently) Error() string   { return "" }
func (s silently) Unwrap() error { return s.error }

var amd = &maker{vendor: "AMD", driver: "the driver amdgpu", trace: "amdgpu", listedBy: "/sys/class/drm",
	lost: errCardLost, reasons: 0x4 | 0x20 | 0x40,
	calls: map[string]string{callSamples: callTable, callMemory: "mem_info_vram_used"}}

// amdgpu is a driver that lists AMD's GPUs.
type amdgpu struct {
	root  string
	mu    sync.Mutex
	cards []*card // of the newest count
}

func (a *amdgpu) maker() *maker               { return amd }
func (a *amdgpu) close()                      {}
func (a *amdgpu) events() ([]xidEvent, error) { return nil, codeNotSupported }
func (a *amdgpu) stats() driverStats          { return driverStats{} }

func (a *amdgpu) open() error {
	if n, _ := a.count(); n == 0 {
		return errNoCard
	}
	return nil
}

func (a *amdgpu) versions() (driver, library string) {
	return cmp.Or(kernfile.Text(filepath.Join(a.root, "sys/module/amdgpu/version")),
		kernfile.Text(filepath.Join(a.root, "proc/sys/kernel/osrelease"))), ""
}

// clocks has the clock of the cards' samples, which are made at each reading: Unix time.
func (a *amdgpu) clocks() clocks { return clocks{at: sample.Now()} }

// count lists the cards, in the order of their addresses. It reads what the driver keeps, and wakes none.
func (a *amdgpu) count() (int, error) {
	var cards []*card
	folders, _ := filepath.Glob(filepath.Join(a.root, "sys/class/drm/card*[0-9]/device"))
	for _, folder := range folders {
		if target, err := filepath.EvalSymlinks(folder); err == nil {
			folder = target // the number of a card may become that of another
		}
		about := fields(filepath.Join(folder, "uevent"), "=")
		c := &card{identity: identity{maker: amd}, root: a.root, folder: folder, bus: about["PCI_SLOT_NAME"]}
		twice := slices.ContainsFunc(cards, func(other *card) bool { return other.bus == c.bus })
		if about["DRIVER"] != "amdgpu" || c.bus == "" || twice || len(cards) >= maxCards {
			continue // a connector or a part of a card has its folder, too
		}
		c.id = "GPU-" + cmp.Or(c.text("unique_id"), c.bus)
		c.name = cmp.Or(c.text("product_name"), "GPU "+strings.TrimPrefix(about["PCI_ID"], "1002:"))
		if !strings.HasPrefix(strings.ToUpper(c.name), "AMD") {
			c.name = "AMD " + c.name
		}
		cards = append(cards, c)
	}
	slices.SortFunc(cards, func(a, b *card) int { return cmp.Compare(a.bus, b.bus) })
	for i, c := range cards {
		c.index = i
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cards = cards
	return len(cards), nil
}

func (a *amdgpu) list(index int) ([]device, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if index >= len(a.cards) {
		return nil, errCardLost
	}
	return []device{a.cards[index]}, nil
}

// fields returns the lines of a file as names and values.
func fields(path, between string) map[string]string {
	list := map[string]string{}
	text, _ := kernfile.ReadWhole(path, make([]byte, 4096), 16<<10)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, between)
		list[name] = strings.TrimSpace(value)
	}
	return list
}

// card is a device that belongs to amdgpu.
type card struct {
	identity
	root        string
	folder, bus string // of the device in /sys, and its address on PCI: 0000:03:00.0

	table     metrics
	parsed    error        // why the table has nothing
	at        sample.Stamp // of the table; zero for none
	throttled [3]float64   // seconds with reduced clocks, by powerCounts, thermalCounts and hotCounts
}

func (c *card) processes() ([]sample.GPUProcess, error) { return nil, codeNotSupported } // see amdgpu.users

// sleeps returns what shows that the card sleeps. A program that computes opens it.
func (c *card) sleeps() *rest {
	return &rest{devices: filepath.Join(c.root, "dev/kfd"), mayRest: func() []string {
		if c.text("power/control") != "auto" {
			return nil
		}
		return []string{c.folder}
	}}
}

func (c *card) text(file string) string { return kernfile.Text(filepath.Join(c.folder, file)) }

// value returns the number in a file, which may be a pattern.
func (c *card) value(file string) (float64, error) {
	files, _ := filepath.Glob(filepath.Join(c.folder, file))
	if len(files) == 0 {
		return 0, codeNotSupported
	}
	v, err := strconv.ParseFloat(strings.TrimSuffix(kernfile.Text(files[0]), "%"), 64)
	if err != nil {
		return 0, codeNotFound
	}
	return v, nil
}

// load reads the table.
func (c *card) load() (table metrics) {
	var b []byte
	b, c.parsed = kernfile.ReadWhole(filepath.Join(c.folder, callTable), make([]byte, maxMetrics), maxMetrics)
	if c.parsed == nil {
		table, c.parsed = parse(b)
	}
	return table
}

// throttle adds the time in which clocks were reduced.
func (c *card) throttle(past *metrics, elapsed time.Duration) {
	periods := float64(uint32(c.table.values[amdCounts] - past.values[amdCounts]))
	for i := range c.throttled {
		f := amdPowerCounts + field(i)
		share := float64(uint32(c.table.values[f]-past.values[f])) / periods
		if c.table.has[f] && past.has[f] && share <= 1 && periods < math.MaxInt32 {
			c.throttled[i] += share * elapsed.Seconds()
		}
	}
}

var errStands = errors.New("the numbers of its firmware stand still: look for amdgpu in the kernel log")

// samples returns one sample, of the time since the reading before. It is an average where the firmware has no sum, or
// a sum that was reset or stands still for long.
func (c *card) samples(uint64) ([]utilSample, error) {
	if _, err := os.Stat(c.folder); err != nil {
		return nil, errCardLost
	}
	past, began := c.table, c.at
	c.table, c.at = c.load(), sample.Now()
	s := utilSample{timestamp: uint64(c.at.Wall.UnixMicro()), kind: summed}
	stands := false
	if began != (sample.Stamp{}) {
		elapsed := c.at.Mono - began.Mono
		c.throttle(&past, elapsed)
		share, ok := c.grown(&past, elapsed)
		stands = math.IsNaN(share) || ok && c.table == past
		if s.value = 100 * share; ok && !stands {
			return []utilSample{s}, nil
		}
		if stands {
			if c.table, c.at = past, began; elapsed < maxStep { // the firmware has added nothing yet
				return nil, nil
			}
		}
	} else if c.table.has[amdActivitySum] {
		return []utilSample{s}, nil
	}
	s.kind = averaged
	if s.value = float64(c.table.values[amdActivity]); c.table.has[amdActivity] && !stands {
		return []utilSample{s}, nil
	}
	percent, err := c.value("gpu_busy_percent")
	if err != nil && stands {
		return nil, errStands
	}
	if err != nil {
		return nil, cmp.Or(c.refused(), err)
	}
	s.value = percent
	return []utilSample{s}, nil
}

// grown returns the share of time in which the card worked since the reading before, if the firmware has added it up.
func (c *card) grown(past *metrics, elapsed time.Duration) (share float64, known bool) {
	if !c.table.has[amdActivitySum] || !past.has[amdActivitySum] {
		return 0, false
	}
	periods := float64(elapsed.Milliseconds())
	if base, ok := c.table.busyBase(); ok {
		if before, ok := past.busyBase(); ok {
			periods = float64(uint32(base - before))
		}
	}
	sum := float64(uint32(c.table.values[amdActivitySum] - past.values[amdActivitySum]))
	share = sum / 100 / periods // what was reset has grown by too much; two clocks differ a little
	return min(share, 1), share <= maxRatio && periods < math.MaxInt32
}

// refused returns why the table has nothing, and nil where a card has none that is read.
func (c *card) refused() error {
	if errors.Is(c.parsed, os.ErrNotExist) || errors.Is(c.parsed, errAPU) {
		return nil
	}
	return c.parsed
}

// read reads the table, or a file for each number. A chip that does not count has 0.
func (c *card) read(call string, list []answer) error {
	if call == callTable && c.parsed != nil {
		return cmp.Or(c.refused(), error(codeNotSupported))
	}
	if call == callUsers {
		if _, err := os.Stat(filepath.Join(c.root, "sys/class/kfd/kfd/proc")); err != nil {
			return codeNotSupported
		}
		return nil
	}
	for i := range list {
		p := &rows[list[i].row]
		v, err := c.number(p)
		if err == nil && v == 0 && p.unit.min > 0 {
			err = codeNotFound
		}
		list[i].number, list[i].err = v, err
	}
	return nil
}

// generations are the speeds of PCIe by generation, from 1 on.
var generations = []string{"2.5", "5.0", "8.0", "16.0", "32.0", "64.0"}

func (c *card) number(p *row) (float64, error) {
	switch p.call {
	case callTable:
		return c.fromTable(p.id)
	case callMemory:
		return c.memory(p.id)
	case callRAS:
		return c.errorCount(p.id)
	case "current_link_speed", "max_link_speed":
		speed, _, _ := strings.Cut(c.text(p.call), " ")
		i := slices.Index(generations, speed)
		if i < 0 {
			return 0, codeNotFound
		}
		return float64(i + 1), nil
	case "hwmon/hwmon*/temp1_crit": // of the edge, while another temperature is shown
		if !c.table.has[amdEdge] && c.table.has[amdHotspot] {
			return 0, codeNotSupported
		}
	}
	return c.value(p.call)
}

// throttlersOf has the bits of amdThrottlers: limits of power, temperatures, and signals of the board; and those of
// NVIDIA's driver for the same.
var throttlersOf = [...]struct {
	bits uint64
	as   float64
}{{0xff, 0x4}, {0xfff << 32, 0x20}, {0xf << 44, 0x40}}

func (c *card) fromTable(f field) (v float64, err error) {
	if !c.table.has[f] {
		return 0, codeNotSupported
	}
	switch f {
	case amdPowerCounts, amdThermalCounts, amdHotCounts:
		return c.throttled[f-amdPowerCounts], nil
	case amdThrottlers:
		for _, t := range throttlersOf {
			if c.table.values[f]&t.bits != 0 {
				v += t.as
			}
		}
		return v, nil
	}
	return float64(c.table.values[f]), nil
}

// memory returns the card's memory by the id of a row. That of an APU is a part of the machine's that only it uses, and
// what it maps of the rest, which has no page cache in it.
func (c *card) memory(id uint32) (float64, error) {
	if c.at == (sample.Stamp{}) {
		c.load() // whether it is an APU
	}
	files := [][]string{{"mem_info_vram_total", "mem_info_gtt_total"}, {"mem_info_vram_used", "mem_info_gtt_used"}}
	if int(id) >= len(files) {
		return 0, codeNotSupported
	}
	v, err := c.value(files[id][0])
	if err == nil && errors.Is(c.parsed, errAPU) {
		var mapped float64
		mapped, err = c.value(files[id][1])
		v += mapped
	}
	if v == 0 && id == 0 {
		return 0, codeNotSupported
	}
	return v, err
}

// errorCount returns the errors of all parts of the card that ECC corrected, or could not.
func (c *card) errorCount(id uint32) (sum float64, err error) {
	files, _ := filepath.Glob(filepath.Join(c.folder, callRAS))
	err = codeNotSupported
	for _, file := range files {
		n, parsed := strconv.ParseUint(fields(file, ":")[[]string{"ce", "ue"}[id]], 10, 64)
		if parsed == nil {
			sum, err = sum+float64(n), nil
		}
	}
	return sum, err
}

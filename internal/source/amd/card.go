package amd

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// Bounds of what is believed.
const (
	maxCards       = 64
	maxPower       = 10_000 // watts
	maxClock       = 20e9   // hertz
	minTemperature = -50    // degrees Celsius
	maxTemperature = 200    // degrees Celsius
	maxMemory      = 1 << 50
	maxErrors      = 1 << 48
)

const (
	restEvery = 950 * time.Millisecond // what is not busy time is read, and processes are listed
	slowEvery = 10 * time.Second       // limits and errors are read, which may ask the firmware
)

// card is a GPU of the driver amdgpu. What it has does not change.
type card struct {
	folder string // of the device, in /sys
	bus    string // its address on PCI: 0000:03:00.0
	info   sample.GPU
}

// list returns the cards, in the order of their addresses. It reads what the driver keeps, and wakes none.
func list(root string) (cards []*card) {
	folders, _ := filepath.Glob(filepath.Join(root, "sys/class/drm/card*[0-9]/device"))
	driver := cmp.Or(kernfile.Text(filepath.Join(root, "sys/module/amdgpu/version")),
		kernfile.Text(filepath.Join(root, "proc/sys/kernel/osrelease")))
	for _, folder := range folders {
		about := map[string]string{}
		text, _ := os.ReadFile(filepath.Join(folder, "uevent"))
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			about[key] = value
		}
		c := &card{folder: folder, bus: about["PCI_SLOT_NAME"]}
		twice := slices.ContainsFunc(cards, func(other *card) bool { return other.bus == c.bus })
		if about["DRIVER"] != "amdgpu" || c.bus == "" || twice || len(cards) >= maxCards {
			continue // a connector or a part of a card has its folder, too
		}
		name := cmp.Or(c.text("product_name"), "GPU "+strings.TrimPrefix(about["PCI_ID"], "1002:"))
		if !strings.HasPrefix(strings.ToUpper(name), "AMD") {
			name = "AMD " + name
		}
		c.info = sample.GPU{ID: "GPU-" + cmp.Or(c.text("unique_id"), c.bus), Name: name, Driver: driver, Vendor: "AMD"}
		cards = append(cards, c)
	}
	slices.SortFunc(cards, func(a, b *card) int { return cmp.Compare(a.bus, b.bus) })
	for i, c := range cards {
		c.info.Index = i
	}
	return cards
}

func (c *card) text(file string) string { return kernfile.Text(filepath.Join(c.folder, file)) }

// value returns the number in a file; false if it cannot be read.
func (c *card) value(file string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.TrimSuffix(c.text(file), "%"), 64)
	return v, err == nil
}

// isAsleep reports whether the card sleeps. To read this does not wake it, and anything else does.
func (c *card) isAsleep() bool { return strings.HasPrefix(c.text("power/runtime_status"), "suspend") }

// request is what to read of a card.
type request struct{ rest, slow bool }

// reading is what was read of a card.
type reading struct {
	card     *card
	at       sample.Stamp // right after the busy time was read
	table    metrics
	parsed   error   // why the table has nothing
	average  float64 // of busy time, as a ratio
	averages bool    // average is known
	has      request // what was read, apart from busy time
	gauges   sample.GPU
	detail   sample.GPUValues
	slow     sample.GPUValues
	answered bool  // something was read
	err      error // why not
}

// read reads one file for the busy time, and what else is requested.
func (c *card) read(what request) (r reading) {
	r.card, r.has = c, what
	b, err := kernfile.ReadWhole(filepath.Join(c.folder, "gpu_metrics"), make([]byte, maxMetrics), maxMetrics)
	if r.parsed = err; err == nil {
		r.table, r.parsed = parse(b)
	} else if !errors.Is(err, os.ErrNotExist) {
		r.err = fmt.Errorf("%s: %w", c.info.ID, err)
	}
	r.average, r.averages = float64(r.table.values[activity])/100, r.table.has[activity]
	if !r.averages {
		percent, ok := c.value("gpu_busy_percent")
		r.average, r.averages = percent/100, ok
	}
	r.averages = r.averages && r.average >= 0 && r.average <= 1
	r.answered = r.parsed == nil || r.averages
	r.at = sample.Now()
	if r.answered && what.rest {
		c.readRest(&r)
	}
	if r.answered && what.slow {
		c.readSlow(&r)
	}
	return r
}

// details are the quantities that the table alone has.
var details = []struct {
	field       field
	quantity    sample.GPUQuantity
	unit        float64
	least, most float64 // after the unit
}{
	{memoryHeat, sample.GPUTemperatureMemory, 1, minTemperature, maxTemperature},
	{controller, sample.GPUController, 0.01, 0, 1},
	{replays, sample.GPUPCIeReplays, 1, 0, maxErrors},
	{graphicsClock, sample.GPUClockGraphics, 1e6, 1, maxClock},
	{memoryClock, sample.GPUClockMemory, 1e6, 1, maxClock},
	{videoClock, sample.GPUClockVideo, 1e6, 1, maxClock},
}

// readRest reads what is read once a second. A temperature or power that the table lacks is that of a sensor.
func (c *card) readRest(r *reading) {
	r.gauges = c.info
	g := &r.gauges
	c.readMemory(g, errors.Is(r.parsed, errAPU))
	heat, ok := r.first(edge, hotspot)
	if !ok {
		heat, ok = c.sensor("temp1_input", 1e-3) // the edge, where a chip has one
	}
	if ok && heat >= minTemperature && heat <= maxTemperature {
		g.Temperature, g.Has = heat, g.Has|sample.HasTemperature
	}
	watts, ok := r.first(socketPower)
	for _, file := range []string{"power1_average", "power1_input"} {
		if !ok {
			watts, ok = c.sensor(file, 1e-6)
		}
	}
	if ok && watts >= 0 && watts <= maxPower {
		g.Power, g.Has = watts, g.Has|sample.HasPower
	}
	if sum, ok := r.first(energy); ok && sum > 0 { // a chip that does not count has 0
		g.Energy, g.Has = sum/(1<<16), g.Has|sample.HasEnergy
	}
	c.readLink(g)
	for _, d := range details {
		if v, ok := r.first(d.field); ok && v*d.unit >= d.least && v*d.unit <= d.most {
			r.detail.Set(d.quantity, v*d.unit)
		}
	}
}

// first returns the first of some fields of the table that is known.
func (r *reading) first(fields ...field) (float64, bool) {
	for _, f := range fields {
		if r.table.has[f] {
			return float64(r.table.values[f]), true
		}
	}
	return 0, false
}

// readMemory reads the memory in use. That of an APU is a part of the machine's that only it uses, and what it maps of
// the rest, which has no page cache in it.
func (c *card) readMemory(g *sample.GPU, apu bool) {
	used, ok := c.value("mem_info_vram_used")
	total, known := c.value("mem_info_vram_total")
	if apu {
		more, mapped := c.value("mem_info_gtt_used")
		most, limited := c.value("mem_info_gtt_total")
		used, total, ok = used+more, total+most, ok && mapped && limited
	}
	if ok && known && used >= 0 && used <= total && total > 0 && total < maxMemory {
		g.MemoryUsed, g.MemoryTotal, g.Has = uint64(used), uint64(total), g.Has|sample.HasMemory
	}
}

// readLink reads the link of PCIe from the kernel: what the table says of it differs from chip to chip.
func (c *card) readLink(g *sample.GPU) {
	var ok bool
	if g.LinkWidth, g.LinkGeneration, ok = c.link("current"); ok {
		g.Has |= sample.HasLink
	}
	if g.LinkWidthMax, g.LinkGenerationMax, ok = c.link("max"); ok {
		g.Has |= sample.HasLinkMax
	}
}

// generations are the speeds of PCIe by generation, from 1 on.
var generations = []string{"2.5", "5.0", "8.0", "16.0", "32.0", "64.0"}

func (c *card) link(which string) (width, generation int, ok bool) {
	lanes, known := c.value(which + "_link_width")
	speed, _, _ := strings.Cut(c.text(which+"_link_speed"), " ")
	generation = slices.Index(generations, speed) + 1
	if !known || lanes < 1 || lanes > 64 || generation == 0 {
		return 0, 0, false
	}
	return int(lanes), generation, true
}

// readSlow reads what changes rarely. The driver's sensors of temperature are the edge, the hottest spot and the
// memory.
func (c *card) readSlow(r *reading) {
	hottest := "temp1_crit"
	if !r.table.has[edge] && r.table.has[hotspot] {
		hottest = "temp2_crit"
	}
	for _, s := range []struct {
		quantity   sample.GPUQuantity
		file       string
		unit, most float64
	}{
		{sample.GPUPowerLimit, "power1_cap", 1e-6, maxPower}, {sample.GPUSlowdownAt, hottest, 1e-3, maxTemperature},
		{sample.GPUMemorySlowdownAt, "temp3_crit", 1e-3, maxTemperature},
	} {
		if v, ok := c.sensor(s.file, s.unit); ok && v > 0 && v <= s.most {
			r.slow.Set(s.quantity, v)
		}
	}
	files, _ := filepath.Glob(filepath.Join(c.folder, "ras/*_err_count"))
	var sums [2]float64
	known := false
	for _, file := range files {
		var corrected, uncorrected uint64
		text, _ := os.ReadFile(file)
		if n, err := fmt.Sscanf(string(text), "ue: %d\nce: %d", &uncorrected, &corrected); n == 2 && err == nil {
			sums[0], sums[1], known = sums[0]+float64(corrected), sums[1]+float64(uncorrected), true
		}
	}
	if known && sums[0] < maxErrors && sums[1] < maxErrors {
		r.slow.Set(sample.GPUErrorsCorrected, sums[0])
		r.slow.Set(sample.GPUErrorsUncorrected, sums[1])
	}
}

// sensor returns the number of a sensor's file in a unit.
func (c *card) sensor(file string, unit float64) (float64, bool) {
	files, _ := filepath.Glob(filepath.Join(c.folder, "hwmon/hwmon*", file))
	if len(files) == 0 {
		return 0, false
	}
	v, err := strconv.ParseFloat(kernfile.Text(files[0]), 64)
	return v * unit, err == nil
}

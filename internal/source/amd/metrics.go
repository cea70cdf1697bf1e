package amd

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// field is a value of gpu_metrics, a table of the driver amdgpu (kgd_pp_interface.h in the kernel).
type field uint8

const (
	activity           field = iota // percent, an average over a time that the firmware chooses
	controller                      // percent of time with memory accesses, the same
	socketPower                     // watts
	energy                          // joules / 2^16, a counter
	edge                            // degrees Celsius
	hotspot                         // degrees Celsius
	memoryHeat                      // degrees Celsius
	graphicsClock                   // MHz; of the fastest part where there are several
	memoryClock                     // MHz
	videoClock                      // MHz
	activitySum                     // percent, added up once in each count, or in each millisecond
	counts                          // each time that the firmware adds to its sums
	firmwareTime                    // 10 ns
	throttlers                      // a bit for each reason, the same for all chips
	powerCounts                     // counts with clocks that the power limit reduced
	thermalCounts                   // the same, the temperature of the chip
	processorHotCounts              // the same, PROCHOT
	replays                         // of PCIe, a counter
	numFields
)

// place is where a field is. The highest of several values counts.
type place struct{ at, width, values int }

// layout is one version of the structure.
type layout struct {
	size   int
	places [numFields]place
}

// with returns a layout that has more fields than this one, and another size.
func (l layout) with(size int, more map[field]place) layout {
	l.size = size
	for f, p := range more {
		l.places[f] = p
	}
	return l
}

var one = layout{}.with(96, map[field]place{
	edge: {4, 2, 1}, hotspot: {6, 2, 1}, memoryHeat: {8, 2, 1}, activity: {16, 2, 1}, controller: {18, 2, 1},
	socketPower: {22, 2, 1}, energy: {24, 8, 1}, graphicsClock: {54, 2, 1}, memoryClock: {58, 2, 1},
	videoClock: {60, 2, 1}, activitySum: {80, 4, 1},
})

var two = one.with(104, map[field]place{firmwareTime: {96, 8, 1}})

// four is the part that the versions since 1.4 begin with. They have no other common order.
var four = layout{}.with(0, map[field]place{
	hotspot: {4, 2, 1}, memoryHeat: {6, 2, 1}, socketPower: {10, 2, 1}, activity: {12, 2, 1}, controller: {14, 2, 1},
})

var seven = four.with(2208, map[field]place{
	energy: {24, 8, 1}, counts: {40, 4, 1}, processorHotCounts: {44, 4, 1}, powerCounts: {48, 4, 1},
	thermalCounts: {52, 4, 1}, activitySum: {76, 4, 1}, replays: {112, 8, 1}, firmwareTime: {288, 8, 1},
	graphicsClock: {296, 2, 8}, videoClock: {320, 2, 4}, memoryClock: {336, 2, 1},
})

// layouts are the versions 1.0 to 1.8. The energy of 1.0 has no documented unit.
var layouts = [...]layout{
	layout{}.with(80, map[field]place{
		edge: {16, 2, 1}, hotspot: {18, 2, 1}, memoryHeat: {20, 2, 1}, activity: {28, 2, 1}, controller: {30, 2, 1},
		socketPower: {34, 2, 1}, graphicsClock: {54, 2, 1}, memoryClock: {58, 2, 1}, videoClock: {60, 2, 1},
	}),
	one, two, two.with(120, map[field]place{throttlers: {112, 8, 1}}),
	four.with(288, map[field]place{
		energy: {24, 8, 1}, activitySum: {56, 4, 1}, replays: {88, 8, 1}, firmwareTime: {232, 8, 1},
		graphicsClock: {240, 2, 8}, videoClock: {264, 2, 4}, memoryClock: {280, 2, 1},
	}),
	four.with(360, map[field]place{
		energy: {88, 8, 1}, activitySum: {120, 4, 1}, replays: {152, 8, 1}, firmwareTime: {304, 8, 1},
		graphicsClock: {312, 2, 8}, videoClock: {336, 2, 4}, memoryClock: {352, 2, 1},
	}),
	four.with(1664, map[field]place{
		energy: {16, 8, 1}, counts: {32, 4, 1}, processorHotCounts: {36, 4, 1}, powerCounts: {40, 4, 1},
		thermalCounts: {44, 4, 1}, activitySum: {68, 4, 1}, replays: {104, 8, 1}, firmwareTime: {256, 8, 1},
		graphicsClock: {264, 2, 8}, videoClock: {288, 2, 4}, memoryClock: {304, 2, 1},
	}),
	seven, seven.with(3872, nil),
}

// maxMetrics is more than the largest structure, in bytes. The kernel has a page for it.
const maxMetrics = 4096

// metrics are the values of one reading.
type metrics struct {
	values [numFields]uint64
	has    [numFields]bool
}

// errAPU means that the structure is that of a processor with graphics. Its versions 2.x and 3.x have temperatures,
// activity and power in units that differ from chip to chip.
var errAPU = errors.New("it is that of an APU, whose units differ from chip to chip")

// parse reads gpu_metrics. A value of all ones is not supported by the chip.
func parse(b []byte) (m metrics, err error) {
	if len(b) < 4 {
		return m, fmt.Errorf("gpu_metrics has %d bytes: read it with another version of the kernel", len(b))
	}
	size, format, content := int(binary.NativeEndian.Uint16(b)), b[2], b[3]
	switch {
	case format == 2 || format == 3:
		return m, fmt.Errorf("gpu_metrics %d.%d is not read: %w", format, content, errAPU)
	case format != 1 || int(content) >= len(layouts):
		return m, fmt.Errorf("gpu_metrics %d.%d is not known: update this program", format, content)
	}
	l := &layouts[content]
	if size != l.size || len(b) < size {
		return m, fmt.Errorf("gpu_metrics %d.%d says %d bytes and has %d, and not %d: it is of an unknown kernel, update "+
			"this program", format, content, size, len(b), l.size)
	}
	for f, p := range l.places {
		for i := range p.values {
			if v, ok := number(b[p.at+i*p.width:], p.width); ok {
				m.values[f], m.has[f] = max(m.values[f], v), true
			}
		}
	}
	return m, nil
}

// number returns a number of so many bytes; false if it is all ones.
func number(b []byte, width int) (v uint64, known bool) {
	switch width {
	case 2:
		v = uint64(binary.NativeEndian.Uint16(b))
	case 4:
		v = uint64(binary.NativeEndian.Uint32(b))
	default:
		v = binary.NativeEndian.Uint64(b)
	}
	return v, v != 1<<(8*width)-1
}

// busyBase returns how often the firmware has added to its sum of activity. It does so once a millisecond where the
// structure has no count of it.
func (m *metrics) busyBase() (base uint64, known bool) {
	if m.has[counts] {
		return m.values[counts], true
	}
	return m.values[firmwareTime] / 100_000, m.has[firmwareTime]
}

package gpu

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// field is a value of gpu_metrics, a table of the driver amdgpu (kgd_pp_interface.h in the kernel).
type field = uint32

const (
	amdActivity      field = iota // percent, an average over a time that the firmware chooses
	amdController                 // percent of time with memory accesses, the same
	amdPower                      // watts
	amdEnergy                     // joules / 2^16, a counter
	amdEdge                       // degrees Celsius
	amdHotspot                    // degrees Celsius
	amdMemoryHeat                 // degrees Celsius
	amdGraphicsClock              // MHz; of the fastest part where there are several
	amdMemoryClock                // MHz
	amdVideoClock                 // MHz
	amdActivitySum                // percent, added up once in each count, or in each millisecond
	amdCounts                     // each time that the firmware adds to its sums
	amdTime                       // 10 ns
	amdThrottlers                 // a bit for each reason, the same for all chips
	amdPowerCounts                // counts with clocks that the power limit reduced
	amdThermalCounts              // the same, the temperature of the chip
	amdHotCounts                  // the same, PROCHOT
	amdReplays                    // of PCIe, a counter
	amdFields
)

// place is where a field is. The highest of several values counts.
type place struct{ at, width, values int }

// layout is one version of the structure.
type layout struct {
	size   int
	places [amdFields]place
}

// with returns a layout that has more fields than this one, and another size.
func (l layout) with(size int, more map[field]place) layout {
	l.size = size
	for f, p := range more {
		l.places[f] = p
	}
	return l
}

var amd11 = layout{}.with(96, map[field]place{
	amdEdge: {4, 2, 1}, amdHotspot: {6, 2, 1}, amdMemoryHeat: {8, 2, 1}, amdActivity: {16, 2, 1},
	amdController: {18, 2, 1}, amdPower: {22, 2, 1}, amdEnergy: {24, 8, 1},
	amdGraphicsClock: {54, 2, 1}, amdMemoryClock: {58, 2, 1},
	amdVideoClock: {60, 2, 1}, amdActivitySum: {80, 4, 1},
})

var amd12 = amd11.with(104, map[field]place{amdTime: {96, 8, 1}})

// amd14 is the part that the versions since 1.4 begin with. They have no other common order.
var amd14 = layout{}.with(0, map[field]place{
	amdHotspot: {4, 2, 1}, amdMemoryHeat: {6, 2, 1}, amdPower: {10, 2, 1}, amdActivity: {12, 2, 1},
	amdController: {14, 2, 1},
})

var amd17 = amd14.with(2208, map[field]place{
	amdEnergy: {24, 8, 1}, amdCounts: {40, 4, 1}, amdHotCounts: {44, 4, 1}, amdPowerCounts: {48, 4, 1},
	amdThermalCounts: {52, 4, 1}, amdActivitySum: {76, 4, 1}, amdReplays: {112, 8, 1}, amdTime: {288, 8, 1},
	amdGraphicsClock: {296, 2, 8}, amdVideoClock: {320, 2, 4}, amdMemoryClock: {336, 2, 1},
})

// layouts are the versions 1.0 to 1.8. The energy of 1.0 has no documented unit.
var layouts = [...]layout{
	layout{}.with(80, map[field]place{
		amdEdge: {16, 2, 1}, amdHotspot: {18, 2, 1}, amdMemoryHeat: {20, 2, 1}, amdActivity: {28, 2, 1},
		amdController: {30, 2, 1}, amdPower: {34, 2, 1}, amdGraphicsClock: {54, 2, 1},
		amdMemoryClock: {58, 2, 1}, amdVideoClock: {60, 2, 1},
	}),
	amd11, amd12, amd12.with(120, map[field]place{amdThrottlers: {112, 8, 1}}),
	amd14.with(288, map[field]place{
		amdEnergy: {24, 8, 1}, amdActivitySum: {56, 4, 1}, amdReplays: {88, 8, 1}, amdTime: {232, 8, 1},
		amdGraphicsClock: {240, 2, 8}, amdVideoClock: {264, 2, 4}, amdMemoryClock: {280, 2, 1},
	}),
	amd14.with(360, map[field]place{
		amdEnergy: {88, 8, 1}, amdActivitySum: {120, 4, 1}, amdReplays: {152, 8, 1}, amdTime: {304, 8, 1},
		amdGraphicsClock: {312, 2, 8}, amdVideoClock: {336, 2, 4}, amdMemoryClock: {352, 2, 1},
	}),
	amd14.with(1664, map[field]place{
		amdEnergy: {16, 8, 1}, amdCounts: {32, 4, 1}, amdHotCounts: {36, 4, 1}, amdPowerCounts: {40, 4, 1},
		amdThermalCounts: {44, 4, 1}, amdActivitySum: {68, 4, 1}, amdReplays: {104, 8, 1}, amdTime: {256, 8, 1},
		amdGraphicsClock: {264, 2, 8}, amdVideoClock: {288, 2, 4}, amdMemoryClock: {304, 2, 1},
	}),
	amd17, amd17.with(3872, nil),
}

// maxMetrics is more than the largest structure, in bytes. The kernel has a page for it.
const maxMetrics = 4096

// metrics are the values of one reading.
type metrics struct {
	values [amdFields]uint64
	has    [amdFields]bool
}

// errAPU means that the structure is that of a processor with graphics. Its versions 2.x and 3.x have temperatures,
// activity and power in units that differ from chip to chip.
var errAPU = errors.New("it is that of an APU, whose units differ from chip to chip")

// parse reads gpu_metrics. A value of all ones is not supported by the chip.
func parse(b []byte) (m metrics, err error) {
	if len(b) < 4 {
		return m, fmt.Errorf("it has %d bytes: read it with another version of the kernel", len(b))
	}
	size, format, content := int(binary.NativeEndian.Uint16(b)), b[2], b[3]
	switch {
	case format == 2 || format == 3:
		return m, fmt.Errorf("its version %d.%d is not read: %w", format, content, errAPU)
	case format != 1 || int(content) >= len(layouts):
		return m, fmt.Errorf("its version %d.%d is not known: update this program", format, content)
	}
	l := &layouts[content]
	if size != l.size || len(b) < size {
		return m, fmt.Errorf("its version %d.%d says %d bytes and has %d, and not %d: it is of an unknown kernel, update "+
			"this program", format, content, size, len(b), l.size)
	}
	for f, p := range l.places {
		for i := range p.values {
			if v, ok := unsigned(b[p.at+i*p.width:], p.width); ok {
				m.values[f], m.has[f] = max(m.values[f], v), true
			}
		}
	}
	return m, nil
}

// unsigned returns a number of so many bytes; false if it is all ones.
func unsigned(b []byte, width int) (v uint64, known bool) {
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
	if m.has[amdCounts] {
		return m.values[amdCounts], true
	}
	return m.values[amdTime] / 100_000, m.has[amdTime]
}

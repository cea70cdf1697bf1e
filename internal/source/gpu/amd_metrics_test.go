package gpu

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// The structures of the kernel (kgd_pp_interface.h). Go aligns their fields as C does on 64-bit machines. Each field
// that is read has its name in a tag; the rest only takes its room.
type header struct {
	Size            uint16
	Format, Content uint8
}

type before14 struct {
	Edge       uint16 `as:"edge"`
	Hotspot    uint16 `as:"hotspot"`
	Memory     uint16 `as:"memoryHeat"`
	Regulators [3]uint16
	Graphics   uint16 `as:"activity"`
	Controller uint16 `as:"controller"`
	Video      uint16
	Power      uint16 `as:"socketPower"`
}

type amdClocks struct {
	Averages    [7]uint16
	Graphics    uint16 `as:"graphicsClock"`
	SoC         uint16
	Memory      uint16 `as:"memoryClock"`
	Video0      uint16 `as:"videoClock"`
	OtherVideos [3]uint16
}

type v10 struct {
	header
	System uint64
	before14
	Energy uint32
	amdClocks
	Throttle    uint32
	Fan         uint16
	Width, Rate uint8
}

type v11 struct {
	header
	before14
	Energy uint64 `as:"energy"`
	System uint64
	amdClocks
	Throttle                  uint32
	Fan, Width, Rate, Padding uint16
	GraphicsSum               uint32 `as:"activitySum"`
	MemorySum                 uint32
	Stacks                    [4]uint16
}

type v12 struct {
	v11
	Firmware uint64 `as:"firmwareTime"`
}

type v13 struct {
	v12
	Voltages [4]uint16
	Throttle uint64 `as:"throttlers"`
}

type since14 struct {
	Hotspot    uint16 `as:"hotspot"`
	Memory     uint16 `as:"memoryHeat"`
	Regulator  uint16
	Power      uint16 `as:"socketPower"`
	Graphics   uint16 `as:"activity"`
	Controller uint16 `as:"controller"`
}

type traffic struct {
	GraphicsSum                  uint32 `as:"activitySum"`
	MemorySum                    uint32
	BandwidthSum, Bandwidth, Rec uint64
	Replays                      uint64 `as:"replays"`
	Rollovers                    uint64
}

type tail struct {
	Firmware uint64    `as:"firmwareTime"`
	Graphics [8]uint16 `as:"graphicsClock"`
	SoC      [4]uint16
	Video    [4]uint16 `as:"videoClock"`
	Display  [4]uint16
	Memory   uint16 `as:"memoryClock"`
	Last     uint16
}

type v14 struct {
	header
	since14
	VCN                    [4]uint16
	Energy                 uint64 `as:"energy"`
	System                 uint64
	Throttle, Locks        uint32
	Width, Rate, XW, XRate uint16
	traffic
	Read, Written [8]uint64
	tail
}

type v15 struct {
	header
	since14
	VCN                    [4]uint16
	JPEG                   [32]uint16
	Energy                 uint64 `as:"energy"`
	System                 uint64
	Throttle, Locks        uint32
	Width, Rate, XW, XRate uint16
	traffic
	Sent, Received uint32
	Read, Written  [8]uint64
	tail
}

type sums struct {
	Energy                 uint64 `as:"energy"`
	System                 uint64
	Counts                 uint32 `as:"counts"`
	Hot                    uint32 `as:"processorHotCounts"`
	Power                  uint32 `as:"powerCounts"`
	Thermal                uint32 `as:"thermalCounts"`
	Regulator, Stack       uint32
	Locks                  uint32
	Width, Rate, XW, XRate uint16
	GraphicsSum            uint32 `as:"activitySum"`
	MemorySum              uint32
	Bandwidth              [3]uint64
	Replays                uint64 `as:"replays"`
	Rollovers              uint64
	Sent, Received         uint32
	Read, Written          [8]uint64
}

type part struct {
	Busy [8]uint32
	JPEG [32]uint16
	VCN  [4]uint16
	Sum  [8]uint64
}

type v16 struct {
	header
	since14
	sums
	tail
	Parts [8]part
	Other uint32
}

type v17 struct {
	header
	since14
	Most uint64
	sums
	Links   [8]uint16
	Padding uint16
	tail
	Parts [8]struct {
		part
		Below [8]uint64
	}
	Other uint32
}

type v18 struct {
	header
	since14
	Most uint64
	sums
	Links   [8]uint16
	Padding uint16
	tail
	Parts [8]struct {
		Busy [8]uint32
		JPEG [40]uint16
		VCN  [4]uint16
		Sums [5][8]uint64
	}
	Other uint32
}

var structures = []any{v10{}, v11{}, v12{}, v13{}, v14{}, v15{}, v16{}, v17{}, v18{}}

// sizes are those of the kernel's structures.
var sizes = []int{80, 96, 104, 120, 288, 360, 1664, 2208, 3872}

var names = map[string]field{
	"activity": amdActivity, "controller": amdController, "socketPower": amdPower, "energy": amdEnergy, "edge": amdEdge,
	"hotspot": amdHotspot, "memoryHeat": amdMemoryHeat, "graphicsClock": amdGraphicsClock, "memoryClock": amdMemoryClock,
	"videoClock": amdVideoClock, "activitySum": amdActivitySum, "counts": amdCounts, "firmwareTime": amdTime,
	"throttlers": amdThrottlers, "powerCounts": amdPowerCounts, "thermalCounts": amdThermalCounts,
	"processorHotCounts": amdHotCounts, "replays": amdReplays,
}

// places returns where the fields of a structure are.
func placesOf(t reflect.Type, at uintptr, into map[field]place) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			placesOf(f.Type, at+f.Offset, into)
			continue
		}
		if name, ok := names[f.Tag.Get("as")]; ok {
			p := place{int(at + f.Offset), int(f.Type.Size()), 1}
			if f.Type.Kind() == reflect.Array {
				p.width, p.values = int(f.Type.Elem().Size()), f.Type.Len()
			}
			into[name] = p
		}
	}
}

// encode returns gpu_metrics of a version with some values, and all ones elsewhere.
func encode(content int, values map[field]uint64) []byte {
	at := map[field]place{}
	placesOf(reflect.TypeOf(structures[content]), 0, at)
	b := bytes.Repeat([]byte{0xff}, sizes[content])
	binary.NativeEndian.PutUint16(b, uint16(len(b)))
	b[2], b[3] = 1, byte(content)
	for f, v := range values {
		p := at[f]
		switch p.width {
		case 2:
			binary.NativeEndian.PutUint16(b[p.at:], uint16(v))
		case 4:
			binary.NativeEndian.PutUint32(b[p.at:], uint32(v))
		case 8:
			binary.NativeEndian.PutUint64(b[p.at:], v)
		}
	}
	return b
}

func TestLayouts(t *testing.T) {
	for content, structure := range structures {
		kind := reflect.TypeOf(structure)
		if int(kind.Size()) != sizes[content] || layouts[content].size != sizes[content] {
			t.Errorf("1.%d: got %d bytes, and %d in the table, want %d", content, kind.Size(), layouts[content].size,
				sizes[content])
		}
		want := map[field]place{}
		placesOf(kind, 0, want)
		for f, p := range layouts[content].places {
			if p != want[field(f)] {
				t.Errorf("1.%d, field %d: got %+v, want %+v", content, f, p, want[field(f)])
			}
		}
		if len(want) < 9 {
			t.Errorf("1.%d: got %d fields, want more", content, len(want))
		}
	}
}

func TestParse(t *testing.T) {
	for content := range structures {
		at := map[field]place{}
		placesOf(reflect.TypeOf(structures[content]), 0, at)
		values := map[field]uint64{}
		for f := range at {
			values[f] = uint64(f) + 1
		}
		m, err := parse(encode(content, values))
		if err != nil {
			t.Fatal(err)
		}
		for f := range amdFields {
			if want, known := values[f]; m.has[f] != known || m.values[f] != want {
				t.Errorf("1.%d, field %d: got %d, %v, want %d, %v", content, f, m.values[f], m.has[f], want, known)
			}
		}
		if m, err := parse(encode(content, nil)); err != nil || m != (metrics{}) {
			t.Errorf("1.%d, all ones: got %+v, %v, want nothing", content, m, err)
		}
		for _, cut := range []int{0, 3, 4, sizes[content] - 1} {
			if _, err := parse(encode(content, values)[:cut]); err == nil {
				t.Errorf("1.%d, %d bytes: got no error", content, cut)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	newer := encode(8, nil)
	newer[3] = 9
	apu := encode(3, nil)
	apu[2], apu[3] = 2, 4
	desktop := encode(3, nil)
	desktop[2], desktop[3] = 3, 0
	other := encode(6, nil) // 1.6 had other fields at first
	binary.NativeEndian.PutUint16(other, 352)
	for _, c := range []struct {
		data []byte
		says string
		apu  bool
	}{
		{newer, "its version 1.9 is not known:", false}, {apu, "its version 2.4 is not read: it is that of an APU", true},
		{desktop, "its version 3.0 is not read", true}, {other, "its version 1.6 says 352 bytes", false},
		{[]byte{4, 0, 7, 7}, "its version 7.7 is not known", false},
	} {
		_, err := parse(c.data)
		if err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, errAPU) != c.apu {
			t.Errorf("got %v, want %q and APU %v", err, c.says, c.apu)
		}
	}
}

func FuzzParse(f *testing.F) {
	for content := range structures {
		f.Add(encode(content, map[field]uint64{amdActivity: 40, amdActivitySum: 1e6, amdCounts: 1e5}))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parse(data)
		for i := range amdFields {
			if err != nil && m.has[i] || !m.has[i] && m.values[i] != 0 {
				t.Errorf("field %d: got %d, %v with error %v", i, m.values[i], m.has[i], err)
			}
		}
	})
}

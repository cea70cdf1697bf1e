//go:build linux && cgo

package gpu

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// A value of the driver is a number of its type. None that is not a number is within the range of a quantity.
func FuzzDecodeValue(f *testing.F) {
	for kind := range uint32(8) {
		f.Add(kind, uint64(1<<63|7))
		f.Add(kind, math.Float64bits(math.NaN()))
	}
	f.Fuzz(func(t *testing.T, kind uint32, bits uint64) {
		var value [8]byte
		binary.NativeEndian.PutUint64(value[:], bits)
		got := decodeValue(nvml.ValueType(kind), value)
		if kind != uint32(nvml.VALUE_TYPE_DOUBLE) && !math.IsNaN(got) && (got != math.Trunc(got) || math.Abs(got) > 1<<64) {
			t.Errorf("type %d, bits %x: got %v, want a whole number", kind, bits, got)
		}
		for _, p := range rows {
			if p.unit.contains(got) && (math.IsNaN(got) || math.IsInf(got, 0)) {
				t.Errorf("%v takes %v", p.quantity, got)
			}
		}
	})
}

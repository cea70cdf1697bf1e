package emit

import (
	"strconv"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// maxXIDs bounds the XID codes of a GPU that have a series of their own. NVIDIA lists fewer than 200, and a single
// GPU rarely reports more than a few.
const maxXIDs = 64

// gpuName has the attributes of all points of a GPU.
type gpuName struct{ id, name, driver, parent string }

type gpuSets struct {
	plain    attribute.Set
	general  attribute.Set // with the task of hw.gpu.utilization
	hardware attribute.Set // with hw.type
	sensor   attribute.Set // for the temperature of the chip
	limit    attribute.Set // for the highest possible value
	states   [4]attribute.Set
	details  [sample.GPUQuantities]attribute.Set // of the quantities with a place
	names    list                                // attributes of all points
	xids     map[int]attribute.Set               // by code: the first maxXIDs to occur
	otherXID attribute.Set
}

func newGPUSets(n gpuName) gpuSets {
	attrs := list{semconv.HwIDKey.String(UTF8(n.id))}
	attrs.text(semconv.HwNameKey, n.name)
	attrs.text(semconv.HwModelKey, n.name)
	attrs.text(semconv.HwParentKey, n.parent)
	if n.driver != "" { // only NVML reports one
		attrs.text(semconv.HwDriverVersionKey, n.driver)
		attrs.text(semconv.HwVendorKey, "NVIDIA")
	}
	s := gpuSets{
		general:  attrs.with(semconv.HwGPUTaskGeneral),
		hardware: attrs.with(semconv.HwTypeGPU),
		sensor:   attrs.with(sensorChip),
		limit:    attrs.with(semconv.HwLimitTypeMax),
		states: [4]attribute.Set{
			stateOK:               attrs.with(semconv.HwTypeGPU, semconv.HwStateOK),
			stateDegraded:         attrs.with(semconv.HwTypeGPU, semconv.HwStateDegraded),
			stateFailed:           attrs.with(semconv.HwTypeGPU, semconv.HwStateFailed),
			statePredictedFailure: attrs.with(semconv.HwTypeGPU, semconv.HwStatePredictedFailure),
		},
		plain:    attrs.with(),
		otherXID: attrs.with(semconv.HwTypeGPU, semconv.ErrorTypeXidOther),
		names:    attrs,
	}
	for q := range places {
		if places[q].metric != nil {
			s.details[q] = attrs.with(places[q].with...)
		}
	}
	return s
}

// with returns the set of l and more.
func (l list) with(more ...attribute.KeyValue) attribute.Set {
	return attribute.NewSet(append(l[:len(l):len(l)], more...)...)
}

// xid returns the attributes of an XID code, and whether no other code shares them.
func (s *gpuSets) xid(code int) (set attribute.Set, own bool) {
	if set, own = s.xids[code]; own {
		return set, true
	}
	if len(s.xids) >= maxXIDs {
		return s.otherXID, false
	}
	if s.xids == nil {
		s.xids = map[int]attribute.Set{}
	}
	set = s.names.with(semconv.HwTypeGPU, semconv.ErrorTypeKey.String("xid_"+strconv.Itoa(code)))
	s.xids[code] = set
	return set, true
}

func newCallSet(function string) attribute.Set {
	return attribute.NewSet(semconv.GPUDriverFunctionKey.String(UTF8(function)))
}

func newFieldSet(field string) attribute.Set {
	return attribute.NewSet(semconv.GPUDriverFieldKey.String(UTF8(field)))
}

package emit

import (
	"strconv"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// mostXIDs bounds the codes of XID errors that have a series of their own, of one accelerator. NVIDIA's table has fewer
// than 200, and a GPU meets a handful in its life.
const mostXIDs = 64

// gpuName is what names an accelerator, the same on all of its points.
type gpuName struct{ id, name, driver, parent string }

type gpuSets struct {
	plain    attribute.Set
	general  attribute.Set // the task of hw.gpu.utilization
	hardware attribute.Set // with hw.type
	sensor   attribute.Set // of the chip's temperature
	most     attribute.Set // what it could do, not what it does
	states   [4]attribute.Set
	details  [sample.GPUQuantities]attribute.Set // of those that have a place
	names    list                                // what names it
	xids     map[int]attribute.Set               // by code: the first mostXIDs that came
	otherXID attribute.Set
}

func newGPUSets(n gpuName) gpuSets {
	attrs := list{semconv.HwIDKey.String(utf8(n.id))}
	attrs.text(semconv.HwNameKey, n.name)
	attrs.text(semconv.HwModelKey, n.name)
	attrs.text(semconv.HwParentKey, n.parent)
	if n.driver != "" { // NVML's: there is no other
		attrs.text(semconv.HwDriverVersionKey, n.driver)
		attrs.text(semconv.HwVendorKey, "NVIDIA")
	}
	s := gpuSets{
		general:  attrs.with(semconv.HwGPUTaskGeneral),
		hardware: attrs.with(semconv.HwTypeGPU),
		sensor:   attrs.with(sensorChip),
		most:     attrs.with(semconv.HwLimitTypeMax),
		states: [4]attribute.Set{
			isOK:       attrs.with(semconv.HwTypeGPU, semconv.HwStateOK),
			isDegraded: attrs.with(semconv.HwTypeGPU, semconv.HwStateDegraded),
			isFailed:   attrs.with(semconv.HwTypeGPU, semconv.HwStateFailed),
			willFail:   attrs.with(semconv.HwTypeGPU, semconv.HwStatePredictedFailure),
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

// with is the set of these attributes and of more.
func (l list) with(more ...attribute.KeyValue) attribute.Set {
	return attribute.NewSet(append(l[:len(l):len(l)], more...)...)
}

// xid is the set of one code's errors, and whether the code has one of its own: once it has, it keeps it.
func (s *gpuSets) xid(code int) (set attribute.Set, own bool) {
	if set, own = s.xids[code]; own {
		return set, true
	}
	if len(s.xids) >= mostXIDs {
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
	return attribute.NewSet(semconv.GPUDriverFunctionKey.String(utf8(function)))
}

func newFieldSet(field string) attribute.Set {
	return attribute.NewSet(semconv.GPUDriverFieldKey.String(utf8(field)))
}

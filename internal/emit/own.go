package emit

import (
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/semconv"
)

// Own is what this program reports of its own work.
type Own struct {
	Since   time.Time // it counts from then on
	Panics  uint64    // that were caught
	Late    uint64    // readings
	Lost    uint64    // spans and log records
	Refused int       // parts of the evidence that the kernel refuses now
}

// own emits what this program reports of itself. A replay has nothing to report.
func (m *Metrics) own(b *builder) {
	if m.Own == nil || b.time.IsZero() {
		return
	}
	own := m.Own()
	b.start = own.Since
	none := *attribute.EmptySet()
	b.int(&semconv.Panics, own.Panics, none)
	b.int(&semconv.ReadingsLate, own.Late, none)
	b.int(&semconv.WindowsLost, own.Lost, none)
	b.int(&semconv.KernelRefusals, uint64(own.Refused), none)
}

package emit

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// mounts emits the mounts that are on no disk of this machine, and GPUDirect Storage.
func (m *Metrics) mounts(b *builder, now *sample.Snapshot) {
	b.at(now.Mounts.At, m.last.Mounts.At)
	for i := range now.Mounts.MountCounters {
		c := &now.Mounts.MountCounters[i]
		if b.start = c.Began.Wall; b.start.IsZero() { // of an old recording
			b.start = now.Boot
		}
		b.mount(c)
	}
	b.start = now.Boot
	if d := now.Mounts.GPUDirect; d != nil {
		b.direct(&d.Read, directRead, d.HasTransfer)
		b.direct(&d.Write, directWrite, d.HasTransfer)
	}
}

func (b *builder) mount(c *sample.MountCounters) {
	of := list{
		semconv.MountSourceKey.String(UTF8(c.Source)), semconv.SystemFilesystemMountpointKey.String(UTF8(c.Point)),
		semconv.SystemFilesystemTypeKey.String(UTF8(c.Type)),
	}
	plain := of.with()
	operations, requests := c.Has&sample.HasMountOperations != 0, c.Has&sample.HasMountTransport != 0
	for _, class := range [...]struct {
		*sample.MountOperations
		name attribute.KeyValue
	}{
		{&c.Read, semconv.MountOperationClassRead}, {&c.Write, semconv.MountOperationClassWrite},
		{&c.Other, semconv.MountOperationClassOther},
	} {
		if !operations {
			break
		}
		set := of.with(class.name)
		b.int(&semconv.MountOperations, class.Operations, set)
		if class.MountOperations != &c.Other {
			b.int(&semconv.MountIO, class.Bytes, set)
		}
		if c.Has&sample.HasMountTime != 0 {
			b.float(&semconv.MountOperationTime, class.Time.Seconds(), set)
		}
		if requests {
			b.float(&semconv.MountQueueTime, class.Queue.Seconds(), set)
			b.float(&semconv.MountRoundTripTime, class.RoundTrip.Seconds(), set)
		}
	}
	if requests {
		b.int(&semconv.MountRetransmissions, c.Retransmissions, plain)
		b.int(&semconv.MountTimeouts, c.Timeouts, plain)
	}
	if c.Connections > 0 {
		b.int(&semconv.MountConnections, uint64(c.Connections), plain)
	}
	if c.Has&sample.HasMountWaiting != 0 {
		b.int(&semconv.MountRequestsWaiting, c.Waiting, plain)
		b.float(&semconv.MountWaitingTime, c.WaitingTime.Seconds(), plain)
	}
}

func (b *builder) direct(d *sample.GPUDirectTransfers, set attribute.Set, transfers bool) {
	b.int(&semconv.GPUDirectErrors, d.Errors, set)
	if transfers {
		b.int(&semconv.GPUDirectIO, d.Bytes, set)
		b.int(&semconv.GPUDirectOperations, d.Operations, set)
	}
}

var (
	directRead  = attribute.NewSet(semconv.DiskIODirectionRead)
	directWrite = attribute.NewSet(semconv.DiskIODirectionWrite)
)

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
		sets := m.sets.mounts.get(mountKey{c.Source, c.Point, c.Type}, newMountSets)
		if b.start = c.Began.Wall; b.start.IsZero() { // of an old recording
			b.start = now.Boot
		}
		b.mount(c, sets)
	}
	b.start = now.Boot
	if d := now.Mounts.GPUDirect; d != nil {
		b.direct(&d.Read, directRead, d.HasTransfer)
		b.direct(&d.Write, directWrite, d.HasTransfer)
	}
}

func (b *builder) mount(c *sample.MountCounters, sets *mountSets) {
	operations, requests := c.Has&sample.HasMountOperations != 0, c.Has&sample.HasMountTransport != 0
	for _, of := range [...]struct {
		*sample.MountOperations
		set   attribute.Set
		bytes bool
	}{{&c.Read, sets.read, true}, {&c.Write, sets.write, true}, {&c.Other, sets.other, false}} {
		if !operations {
			break
		}
		b.int(&semconv.MountOperations, of.Operations, of.set)
		if of.bytes {
			b.int(&semconv.MountIO, of.Bytes, of.set)
		}
		if c.Has&sample.HasMountTime != 0 {
			b.float(&semconv.MountOperationTime, of.Time.Seconds(), of.set)
		}
		if requests {
			b.float(&semconv.MountQueueTime, of.Queue.Seconds(), of.set)
			b.float(&semconv.MountRoundTripTime, of.RoundTrip.Seconds(), of.set)
		}
	}
	if requests {
		b.int(&semconv.MountRetransmissions, c.Retransmissions, sets.plain)
		b.int(&semconv.MountTimeouts, c.Timeouts, sets.plain)
	}
	if c.Connections > 0 {
		b.int(&semconv.MountConnections, uint64(c.Connections), sets.plain)
	}
	if c.Has&sample.HasMountWaiting != 0 {
		b.int(&semconv.MountRequestsWaiting, c.Waiting, sets.plain)
		b.float(&semconv.MountWaitingTime, c.WaitingTime.Seconds(), sets.plain)
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

type mountKey struct{ source, point, fsType string }

type mountSets struct{ plain, read, write, other attribute.Set }

func newMountSets(k mountKey) mountSets {
	mount := list{
		semconv.MountSourceKey.String(UTF8(k.source)), semconv.SystemFilesystemMountpointKey.String(UTF8(k.point)),
		semconv.SystemFilesystemTypeKey.String(UTF8(k.fsType)),
	}
	return mountSets{
		plain: mount.with(), read: mount.with(semconv.MountOperationClassRead),
		write: mount.with(semconv.MountOperationClassWrite), other: mount.with(semconv.MountOperationClassOther),
	}
}

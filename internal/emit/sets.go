package emit

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// maxKept bounds the attribute sets of one kind that are kept between collections.
const maxKept = 1024

// sets caches the attribute sets. To sort and hash them for every point would be most of the cost of a collection.
type sets struct {
	disks     cache[string, diskSets] // by name
	cores     cache[int, coreSets]    // by number
	gpus      cache[gpuName, gpuSets]
	drives    cache[driveName, driveSets]
	mounts    cache[mountKey, mountSets]
	processes cache[int, processSets] // by PID
	holders   cache[holder, attribute.Set]
	times     cache[string, timeSets]      // by GPU
	calls     cache[string, attribute.Set] // by function of the driver
	fields    cache[string, attribute.Set] // by field of the driver
}

// cache keeps one value for each key. The zero value is ready. When it is full, it is emptied.
type cache[K comparable, V any] struct{ kept map[K]*V }

func (c *cache[K, V]) get(key K, create func(K) V) *V {
	if v := c.kept[key]; v != nil {
		return v
	}
	if c.kept == nil || len(c.kept) >= maxKept {
		c.kept = map[K]*V{}
	}
	v := create(key)
	c.kept[key] = &v
	return &v
}

type diskSets struct{ plain, read, write, flush, discard attribute.Set }

// of returns the attributes of a kind of operation.
func (s *diskSets) of(o sample.Operation) *attribute.Set {
	switch o {
	case sample.ReadOperation:
		return &s.read
	case sample.WriteOperation:
		return &s.write
	case sample.FlushOperation:
		return &s.flush
	}
	return &s.discard
}

func newDiskSets(disk string) diskSets {
	name := semconv.SystemDeviceNameKey.String(UTF8(disk))
	return diskSets{
		plain: attribute.NewSet(name),
		read:  attribute.NewSet(name, semconv.DiskIODirectionRead),
		write: attribute.NewSet(name, semconv.DiskIODirectionWrite),
		// OpenTelemetry has no values for these two, and allows others.
		flush:   attribute.NewSet(name, semconv.DiskIODirectionKey.String(string(sample.FlushOperation))),
		discard: attribute.NewSet(name, semconv.DiskIODirectionKey.String(string(sample.DiscardOperation))),
	}
}

// coreSets has a set for each mode, in the order of modes.
type coreSets [7]attribute.Set

func newCoreSets(number int) (s coreSets) {
	for i, mode := range [...]attribute.KeyValue{
		semconv.CPUModeUser, semconv.CPUModeNice, semconv.CPUModeSystem, semconv.CPUModeIdle, semconv.CPUModeIOWait,
		semconv.CPUModeInterrupt, semconv.CPUModeSteal,
	} {
		s[i] = attribute.NewSet(semconv.CPULogicalNumberKey.Int(number), mode)
	}
	return s
}

type processSets struct{ read, write attribute.Set }

func newProcessSets(number int) processSets {
	pid := semconv.ProcessPIDKey.Int(number)
	return processSets{
		read:  attribute.NewSet(pid, semconv.DiskIODirectionRead),
		write: attribute.NewSet(pid, semconv.DiskIODirectionWrite),
	}
}

// holder is a process with memory on a GPU.
type holder struct {
	gpu string
	pid int
}

func newHolderSet(h holder) attribute.Set {
	return attribute.NewSet(semconv.HwIDKey.String(UTF8(h.gpu)), semconv.ProcessPIDKey.Int(h.pid))
}

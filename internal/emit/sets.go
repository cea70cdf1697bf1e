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
	disks  cache[string, diskSets] // by name
	cores  cache[int, coreSets]    // by number
	gpus   cache[gpuName, gpuSets]
	drives cache[driveName, driveSets]
	times  cache[string, timeSets] // by GPU
}

// cache keeps one value for each key, zero at first without create. The zero cache is ready. When it is full, it is
// emptied.
type cache[K comparable, V any] struct{ kept map[K]*V }

func (c *cache[K, V]) get(key K, create func(K) V) *V {
	if v := c.kept[key]; v != nil {
		return v
	}
	if c.kept == nil || len(c.kept) >= maxKept {
		c.kept = map[K]*V{}
	}
	v := new(V)
	if create != nil {
		*v = create(key)
	}
	c.kept[key] = v
	return v
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

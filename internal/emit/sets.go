package emit

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/semconv"
)

// mostKept bounds the attribute sets of one kind that are kept from one collection to the next. More are made anew.
const mostKept = 1024

// sets are the attribute sets of everything that was told of, each made once: to sort and hash them anew for every point
// was most of what a collection cost.
type sets struct {
	disks     cache[string, diskSets] // by name
	cores     cache[int, coreSets]    // by number
	gpus      cache[gpuName, gpuSets]
	drives    cache[driveName, driveSets]
	processes cache[int, processSets] // by PID: a process that takes over a number takes over the sets
	holders   cache[holder, attribute.Set]
	calls     cache[string, attribute.Set] // by function of the driver
	fields    cache[string, attribute.Set] // by field of the driver's
}

// cache keeps what is made of a key. The zero value is ready. It forgets everything once it holds mostKept.
type cache[K comparable, V any] struct{ kept map[K]*V }

func (c *cache[K, V]) of(key K, fresh func(K) V) *V {
	if v := c.kept[key]; v != nil {
		return v
	}
	if c.kept == nil || len(c.kept) >= mostKept {
		c.kept = map[K]*V{}
	}
	v := fresh(key)
	c.kept[key] = &v
	return &v
}

type diskSets struct{ plain, read, write attribute.Set }

func newDiskSets(disk string) diskSets {
	name := semconv.SystemDeviceNameKey.String(utf8(disk))
	return diskSets{
		plain: attribute.NewSet(name),
		read:  attribute.NewSet(name, semconv.DiskIODirectionRead),
		write: attribute.NewSet(name, semconv.DiskIODirectionWrite),
	}
}

// coreSets has one set a mode, in the order of modes.
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

// holder is a process that holds memory of a GPU.
type holder struct {
	gpu string
	pid int
}

func newHolderSet(h holder) attribute.Set {
	return attribute.NewSet(semconv.HwIDKey.String(utf8(h.gpu)), semconv.ProcessPIDKey.Int(h.pid))
}

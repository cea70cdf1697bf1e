//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/stallspan/stallspan/internal/sample"
)

// Sizes that programs/latency.bpf.h has, too.
const (
	buckets   = sample.LatencyBuckets
	bounds    = 128
	cells     = 256
	shards    = 8
	cellWords = 8 + buckets

	cellBytes      = 8 * cellWords
	keyBytes       = 8
	directoryHead  = 32 // bytes before the keys
	directoryBytes = directoryHead + cells*keyBytes
)

// operations are in the order of programs/latency.bpf.h.
var operations = [...]sample.Operation{
	sample.ReadOperation, sample.WriteOperation, sample.FlushOperation, sample.DiscardOperation,
}

const readEvery = time.Second // between two readings that no window needs

// Latencies reads how long the operations of disks take, from the histograms of a Source, whose lock it takes.
type Latencies struct {
	source *Source
	sys    string        // the host's /sys/dev/block
	began  sample.Stamp  // when the Tracing began
	read   time.Duration // the newest reading, Stamp.Mono
	known  []histogram   // by cell
	list   []sample.Latency
}

// Latencies is the source of how long disks take.
func (s *Source) Latencies() *Latencies { return &s.latencies }

// histogram is what one cell counted.
type histogram struct {
	key        key
	disk       string
	job        string
	generation uint32
	began      sample.Stamp
	words      [cellWords]uint64        // newest
	base       *[cellWords]uint64       // when a job or device took the place of another; nil for zeros
	newest     *sample.LatencyHistogram // of words without base
}

// key is union key of programs/latency.bpf.h.
type key struct {
	device    uint32
	job       uint16
	operation uint16
}

// Read sets Latencies once a second, and for the edge of a window. Their histograms are immutable. With another
// Tracing, everything counts from zero.
func (l *Latencies) Read(into *sample.Sample) error {
	s := l.source
	s.mu.Lock()
	defer s.mu.Unlock()
	into.At = sample.Now()
	if s.closed {
		return errClosed
	}
	if !into.Edge && l.read > 0 && into.At.Mono-l.read < readEvery-readEvery/20 {
		return nil
	}
	if err := s.revive(); err != nil || s.cells == nil {
		return err
	}
	if !into.Edge {
		l.read = into.At.Mono
	}
	l.learn(into.At)
	into.Latencies = append(into.Latencies, l.list...)
	return nil
}

// learn reads all cells and makes the list.
func (l *Latencies) learn(now sample.Stamp) {
	used := min(l.word(0), cells)
	for len(l.known) < int(used) {
		l.known = append(l.known, histogram{})
	}
	l.list = l.list[:0]
	for i := range l.known {
		h := &l.known[i]
		k := l.key(i)
		if k.device == 0 || int(k.operation) >= len(operations) {
			continue
		}
		if h.key == (key{}) {
			h.key, h.began = k, l.began
		}
		words := l.source.sum(i)
		if h.key != k { // of a job that has ended; what came since the last reading is of the new one
			base := h.words
			*h = histogram{key: k, began: now, words: base, base: &base}
		}
		if l.taken(h, &words, now) || words != h.words || h.newest == nil {
			h.words, h.newest = words, count(&words, h.base)
		}
		if h.disk == "" || h.key.job != 0 && h.job == "" || h.newest.Count() == 0 {
			continue
		}
		l.list = append(l.list, sample.Latency{
			Disk: h.disk, Operation: operations[h.key.operation], Job: h.job, Began: h.began, LatencyHistogram: h.newest,
		})
	}
}

// taken notes the names of a cell. It reports whether another device has the number now, or another job the slot: then
// the cell counts from here on.
func (l *Latencies) taken(h *histogram, words *[cellWords]uint64, now sample.Stamp) (changed bool) {
	if *words != h.words || h.disk == "" {
		disk := l.nameOf(h.key.device)
		changed = h.disk != "" && disk != "" && disk != h.disk
		if disk != "" {
			h.disk = disk
		}
	}
	if h.key.job != 0 {
		job, generation := l.source.jobIn(int(h.key.job))
		changed = changed || h.generation != 0 && generation != h.generation && generation != 0
		if generation != 0 { // else the job has ended, and the slot is free
			h.generation = generation
		}
		h.job = job
	}
	if changed {
		base := h.words // as of the last reading: what came since is of the new one
		h.base, h.began = &base, now
	}
	return changed
}

// nameOf returns the name of a device; "" for one that is gone.
func (l *Latencies) nameOf(device uint32) string {
	link, err := os.Readlink(filepath.Join(l.sys, fmt.Sprintf("%d:%d", device>>20, device&(1<<20-1))))
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(filepath.Base(link), "!", "/") // as in /proc/diskstats
}

// count makes a histogram.
func count(words, base *[cellWords]uint64) *sample.LatencyHistogram {
	grown := *words
	if base != nil {
		for i := range grown {
			grown[i] -= base[i]
		}
	}
	return sample.NewLatencyHistogram(time.Duration(grown[0]), grown[1], (*[buckets]uint64)(grown[8:]))
}

// Left returns how many operations had no place, because there are too many devices and jobs.
func (l *Latencies) Left() uint64 {
	l.source.mu.Lock()
	defer l.source.mu.Unlock()
	if l.source.directory == nil {
		return 0
	}
	return l.word(1)
}

// word returns a number of the directory.
func (l *Latencies) word(i int) uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&l.source.directory[8*i])))
}

// key returns what a cell is of. It is read as one number, because the kernel may change it meanwhile. Both
// architectures have the lowest byte first.
func (l *Latencies) key(i int) key {
	all := l.word(directoryHead/8 + i)
	return key{uint32(all), uint16(all >> 32), uint16(all >> 48)}
}

// sum adds the parts of a cell that the CPUs count.
func (m *mapped) sum(cell int) (all [cellWords]uint64) {
	for shard := range shards {
		part := unsafe.Slice((*uint64)(unsafe.Pointer(&m.cells[(cell*shards+shard)*cellBytes])), cellWords)
		for i := range part {
			all[i] += atomic.LoadUint64(&part[i])
		}
	}
	return all
}

// jobIn returns the job in a slot, and which one since the Source began it is; "" for none.
func (s *Source) jobIn(slot int) (name string, generation uint32) {
	if slot < 1 || slot > MaxJobs || s.jobs[slot] == nil {
		return "", 0
	}
	return s.jobs[slot].name, s.jobs[slot].generation
}

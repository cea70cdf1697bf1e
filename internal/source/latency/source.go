//go:build linux && (amd64 || arm64)

package latency

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/schedule"
)

const readEvery = time.Second // between two readings that no window needs

var (
	errClosed = errors.New("the source of the disks' latencies is closed")
	errAway   = errors.New("how long disks take is not counted: the helper that does has ended and is started again")
)

// Source reads the histograms. Its methods may be called at the same time.
type Source struct {
	open func() (opened, error) // again, after the process of a Tracing ended
	jobs Jobs                   // nil for none
	sys  string                 // the host's /sys/dev/block

	mu      sync.Mutex
	tracing opened // without a Tracing while none is there
	memory  memory
	began   sample.Stamp // when tracing began
	again   schedule.Reopening[opened]
	read    time.Duration // the newest reading, Stamp.Mono
	closed  bool
	known   []histogram // by cell
	list    []sample.Latency
}

// opened is a Tracing, and what follows the threads of the jobs that it counts for.
type opened struct {
	Tracing
	with schedule.Tracing
}

// Jobs names the jobs of the scheduler's slots. It is implemented by schedule.Source.
type Jobs interface {
	Tracing() schedule.Tracing
	JobIn(slot int) (name string, generation uint32)
}

// memory are the maps of a Tracing.
type memory struct{ cells, directory []byte }

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

// key is union key of bpf/latency.bpf.c.
type key struct {
	device    uint32
	job       uint16
	operation uint16
}

// New counts with a Tracer of this process. root is where the host's files are, "" for "/".
func New(root string) (*Source, error) { return NewFrom(Local(root), nil, root) }

// NewFrom counts with what open returns. jobs is nil to count for no job. After an error, the Source counts nothing
// until a later attempt of Read succeeds: see Missing.
func NewFrom(open Opener, jobs Jobs, root string) (*Source, error) {
	s := &Source{jobs: jobs, sys: filepath.Join("/", root, "sys/dev/block")}
	s.open = func() (opened, error) {
		with := s.followed()
		tracing, err := open(with)
		return opened{tracing, with}, err
	}
	tracing, err := s.open()
	if err == nil {
		err = s.begin(tracing)
	}
	if err != nil {
		s.again.Refuse(sample.Now().Mono, err)
	}
	return s, err
}

// followed returns what follows the threads of jobs now; nil for nothing.
func (s *Source) followed() schedule.Tracing {
	if s.jobs == nil {
		return nil
	}
	return s.jobs.Tracing()
}

// Missing returns why nothing is counted; nil if it is.
func (s *Source) Missing() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.again.Refused()
}

// Retry has the next Read try again what the kernel refused.
func (s *Source) Retry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again.Now()
}

// begin maps the memory of a Tracing. It closes it if that fails.
func (s *Source) begin(tracing opened) error {
	m := tracing.Memory()
	counted, err := mapped(m.Cells, cells*shards*cellBytes)
	if err != nil {
		_ = tracing.Close()
		return err
	}
	directory, err := mapped(m.Directory, directoryBytes)
	if err != nil {
		_ = unix.Munmap(counted)
		_ = tracing.Close()
		return err
	}
	s.tracing, s.memory, s.began, s.known = tracing, memory{counted, directory}, sample.Now(), nil
	s.again = schedule.Reopening[opened]{}
	return nil
}

func mapped(fd, size int) ([]byte, error) {
	page := os.Getpagesize()
	text, err := unix.Mmap(fd, 0, (size+page-1)/page*page, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the latencies of disks: %w", err)
	}
	return text, nil
}

// end unmaps and closes.
func (s *Source) end() error {
	if s.tracing.Tracing == nil {
		return nil
	}
	err := errors.Join(unix.Munmap(s.memory.cells), unix.Munmap(s.memory.directory), s.tracing.Close())
	s.tracing, s.memory = opened{}, memory{}
	return err
}

// Close ends the counting.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.again.Close()
	return s.end()
}

// Read sets Latencies once a second, and for the edge of a window. Their histograms are immutable.
func (s *Source) Read(into *sample.Sample) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	into.At = sample.Now()
	if s.closed {
		return errClosed
	}
	if !into.Edge && s.read > 0 && into.At.Mono-s.read < readEvery-readEvery/20 {
		return nil
	}
	if err := s.revive(into.At.Mono); err != nil || s.tracing.Tracing == nil {
		return err
	}
	if !into.Edge {
		s.read = into.At.Mono
	}
	s.learn(into.At)
	into.Latencies = append(into.Latencies, s.list...)
	return nil
}

// revive opens a Tracing again if the last one has ended, if the kernel refused it, or if another Tracing follows the
// threads of jobs now. Everything then counts from zero.
func (s *Source) revive(now time.Duration) error {
	ended := s.tracing.Tracing == nil || s.tracing.Ended() != nil
	if !ended && s.tracing.with == s.followed() {
		return nil
	}
	next, done, err := s.again.Next(now, s.open)
	if done && err == nil {
		_ = s.end() // it has nothing to lose
		err = s.begin(next)
	}
	if done && err == nil || !ended || s.again.Refused() != nil {
		return nil
	}
	return errAway
}

// learn reads all cells and makes the list.
func (s *Source) learn(now sample.Stamp) {
	used := min(s.word(0), cells)
	for len(s.known) < int(used) {
		s.known = append(s.known, histogram{})
	}
	s.list = s.list[:0]
	for i := range s.known {
		h := &s.known[i]
		k := s.key(i)
		if k.device == 0 || int(k.operation) >= len(operations) {
			continue
		}
		if h.key == (key{}) {
			h.key, h.began = k, s.began
		}
		words := s.memory.sum(i)
		if h.key != k { // of a job that has ended; what came since the last reading is of the new one
			base := h.words
			*h = histogram{key: k, began: now, words: base, base: &base}
		}
		if s.taken(h, &words, now) || words != h.words || h.newest == nil {
			h.words, h.newest = words, count(&words, h.base)
		}
		if h.disk == "" || h.key.job != 0 && h.job == "" || h.newest.Count() == 0 {
			continue
		}
		s.list = append(s.list, sample.Latency{
			Disk: h.disk, Operation: operations[h.key.operation], Job: h.job, Began: h.began, LatencyHistogram: h.newest,
		})
	}
}

// taken notes the names of a cell. It reports whether another device has the number now, or another job the slot: then
// the cell counts from here on.
func (s *Source) taken(h *histogram, words *[cellWords]uint64, now sample.Stamp) (changed bool) {
	if *words != h.words || h.disk == "" {
		disk := s.nameOf(h.key.device)
		changed = h.disk != "" && disk != "" && disk != h.disk
		if disk != "" {
			h.disk = disk
		}
	}
	if h.key.job != 0 && s.jobs != nil {
		job, generation := s.jobs.JobIn(int(h.key.job))
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
func (s *Source) nameOf(device uint32) string {
	link, err := os.Readlink(filepath.Join(s.sys, fmt.Sprintf("%d:%d", device>>20, device&(1<<20-1))))
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

// Lacks lists what is not known now, as the kernel refused a part of the programs.
func (s *Source) Lacks() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tracing.Tracing == nil {
		return nil
	}
	return s.tracing.Lacks()
}

// Refused returns how many operations had no place, because there are too many devices and jobs.
func (s *Source) Refused() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tracing.Tracing == nil {
		return 0
	}
	return s.word(1)
}

// word returns a number of the directory.
func (s *Source) word(i int) uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&s.memory.directory[8*i])))
}

// key returns what a cell is of. It is read as one number, because the kernel may change it meanwhile. Both
// architectures have the lowest byte first.
func (s *Source) key(i int) key {
	all := s.word(directoryHead/8 + i)
	return key{uint32(all), uint16(all >> 32), uint16(all >> 48)}
}

// sum adds the parts of a cell that the CPUs count.
func (m *memory) sum(cell int) (all [cellWords]uint64) {
	for shard := range shards {
		part := unsafe.Slice((*uint64)(unsafe.Pointer(&m.cells[(cell*shards+shard)*cellBytes])), cellWords)
		for i := range part {
			all[i] += atomic.LoadUint64(&part[i])
		}
	}
	return all
}

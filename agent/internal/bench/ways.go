package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/disk"
	"github.com/stallspan/stallspan/internal/source/modelfile"
	"github.com/stallspan/stallspan/internal/source/mount"
	"github.com/stallspan/stallspan/internal/source/pagecache"
)

const (
	ways      = 6               // that read storage
	minShare  = minSize / large // parts that a way reads from storage at least
	maxCached = 4 << 30         // bytes that are read again from the page cache
)

// modelFile is an open file of the model.
type modelFile struct {
	*target
	mapping []byte // nil while it is not read by page faults
}

// part is a MiB of a file.
type part struct {
	file *modelFile
	at   int64 // bytes
}

// files are the open files of a model, as one sequence of parts. What follows the last whole MiB of a file is left out.
type files struct {
	all    []*modelFile
	parts  []part
	size   int64
	memory bool // all are on a file system in memory
	direct bool // all can be read with O_DIRECT
}

// modelRun is one measurement of a model.
type modelRun struct {
	*files
	options ModelOptions
	share   int // of the parts: what each way reads from storage at most
	disks   disks
	next    int // the part that the next way begins with
	seen    int // parts that were read from storage
	kept    bool
	above   bool // a cache above the disk was noted
	result  ModelResult
}

// Model measures how fast a model can be read: from the page cache and from storage, by one and by several readers,
// with read(2), by page faults and with O_DIRECT. It only reads, and drops the model's pages from the page cache, as a
// load right after a boot finds them. Afterwards, what the last way read is in the page cache.
//
// Each way reads its own sixth of the model, so that a cache below the file system, as that of a server, has not seen
// its bytes yet, unless the model is smaller than 384 MiB or was read a short time ago. If ctx ends, or storage fails
// or hangs, it returns what it has measured, with an error for the latter two.
func Model(ctx context.Context, o ModelOptions) (*ModelResult, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	began := time.Now()
	defer withThreads(o.Readers)()
	open, err := inTime(ctx, o.Path, func() (*files, error) { return openModel(o.Path) })
	if err != nil {
		return nil, err
	}
	if o.Before != nil {
		if err := o.Before(); err != nil {
			open.close()
			return nil, err
		}
	}
	m := &modelRun{files: open, options: o, share: max(len(open.parts)/ways, minShare), result: ModelResult{
		Path: o.Path, Files: len(open.all), Size: uint64(open.size), Ways: []Way{},
	}}
	m.describe()
	err = m.result.end(ctx, began, m, o.Path, m.all(ctx))
	return &m.result, err
}

// openModel opens the files of a model.
func openModel(path string) (f *files, err error) {
	found, err := modelfile.Find(path)
	if err != nil {
		return nil, absent(path, err)
	}
	f = &files{memory: true, direct: true}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	for _, one := range found {
		t := &target{path: one.Path, name: one.Path}
		if err := t.open(one.Path); err != nil {
			return f, err
		}
		file := &modelFile{target: t}
		f.all = append(f.all, file)
		if err := t.inspect(); err != nil {
			return f, err
		}
		f.size += t.size
		f.memory = f.memory && t.memory
		f.direct = f.direct && t.bypasses()
		for at := int64(0); at+large <= t.size; at += large {
			f.parts = append(f.parts, part{file, at})
		}
	}
	if f.size < minSize {
		return f, fmt.Errorf("%s has %d bytes, but the minimum is %d MiB: give a larger model", path, f.size, minSize>>20)
	}
	return f, nil
}

func (f *files) close() {
	f.unmap()
	for _, file := range f.all {
		file.close()
	}
}

// forget drops the files from the page cache, and returns how many bytes stayed there. A page that is not written yet
// would stay.
func (f *files) forget() (stayed int64) {
	for _, file := range f.all {
		_ = unix.Fdatasync(int(file.cached.Fd()))
		_ = pagecache.Forget(file.cached) // what stays is counted
		if found, _, err := pagecache.Resident(file.cached); err == nil {
			stayed += found
		}
	}
	return stayed
}

// mapAll maps the files.
func (f *files) mapAll() error {
	for _, file := range f.all {
		mapping, err := unix.Mmap(int(file.cached.Fd()), 0, int(file.size), unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			f.unmap()
			return &os.PathError{Op: "mmap", Path: file.name, Err: err}
		}
		file.mapping = mapping
	}
	return nil
}

func (f *files) unmap() {
	for _, file := range f.all {
		if file.mapping != nil {
			_ = unix.Munmap(file.mapping)
			file.mapping = nil
		}
	}
}

// read reads the part with a number, times its size.
func (f *files) read(how How) reads {
	return func(buffer []byte, offset int64) (int, error) {
		p := f.parts[offset/large]
		switch how {
		case Mapped:
			return fault(buffer, p.file.mapping[p.at:p.at+large])
		case Direct:
			return pread(p.file.direct, buffer, p.at)
		}
		return pread(p.file.cached, buffer, p.at)
	}
}

// fault reads by page faults. A page fault in Go code would stop the whole program while storage hangs, as the garbage
// collector waits for it; MADV_POPULATE_READ (Linux 5.14) has the kernel take the same faults in a system call.
func fault(buffer, mapping []byte) (int, error) {
	for {
		err := unix.Madvise(mapping, unix.MADV_POPULATE_READ)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EINVAL):
			return 0, errOldKernel
		case err != nil:
			return 0, os.NewSyscallError("a page of its mapping cannot be read: madvise", err)
		default:
			return copy(buffer, mapping), nil
		}
	}
}

var errOldKernel = errors.New("page faults are measured from Linux 5.14 on")

// describe finds out where the model is, and what the page cache has of it.
func (m *modelRun) describe() {
	var cached uint64
	known := true
	for _, file := range m.files.all {
		path, err := filepath.Abs(file.path)
		if err == nil {
			var held pagecache.Held
			held, err = pagecache.Look("/", path)
			cached += held.Cached
			known = known && held.Known
		}
		known = known && err == nil
	}
	if known {
		m.result.InCache = &cached
	}
	under, device, known := m.disks.find("model", &m.result.ending, func(source *disk.Source) (disk.Placement, error) {
		return source.Under(m.files.all[0].path)
	})
	m.result.FileSystem, m.result.Device = mount.Name(under.Mount.Type), device
	if known && len(under.Disks) == 0 && !m.memory && under.Mount.Source != "" {
		m.result.FileSystem += ", " + under.Mount.Source
	}
}

// all measures all ways, one after another.
func (m *modelRun) all(ctx context.Context) error {
	if m.memory {
		m.result.note("The model is in memory: it is read from no storage.")
		return m.again(ctx, 0, len(m.parts))
	}
	several := m.options.Readers
	for _, way := range []Way{
		{How: Read, Readers: 1}, {How: Mapped, Readers: 1}, {How: Mapped, Readers: several},
		{How: Direct, Readers: 1}, {How: Direct, Readers: several}, {How: Read, Readers: several},
	} {
		if way.How == Direct && !m.direct {
			continue
		}
		if m.options.KeepCache && way.How != Direct {
			continue
		}
		from := m.next
		read, err := m.storage(ctx, way)
		if err != nil {
			return err
		}
		if way.How == Read && way.Readers > 1 {
			if err := m.again(ctx, from, read); err != nil {
				return err
			}
		}
	}
	if !m.direct {
		m.result.note("The file system has no direct reads (O_DIRECT).")
	}
	if m.options.KeepCache && m.result.InCache != nil && *m.result.InCache >= m.result.Size {
		if err := m.again(ctx, 0, len(m.parts)); err != nil {
			return err
		}
	}
	if m.seen > len(m.parts) {
		m.result.note("The model is small, so parts of it were read more than once: a cache below the file system, as that " +
			"of a server or a hypervisor, may have made later ways faster.")
	}
	return nil
}

// storage measures a way that reads storage: its share of the parts, from the next one on. It returns the number of
// parts that it read.
func (m *modelRun) storage(ctx context.Context, way Way) (parts int, err error) {
	if way.How != Direct {
		if stayed := m.forget(); stayed > m.size/20 && !m.kept {
			m.kept = true
			m.result.note("%d MiB stayed in the page cache, because a program has them mapped or the file system keeps them: "+
				"read and mmap are faster here than for a load from storage.", stayed>>20)
		}
	}
	before := m.disks.counters()
	number, err := m.way(ctx, way, m.from(m.next, min(m.share, len(m.parts)), true), m.options.Step)
	m.next = (m.next + number) % len(m.parts)
	m.seen += number
	read := uint64(number) * large
	if fromDisk := m.disks.counters() - before; err == nil && len(m.disks) > 0 && !m.above &&
		float64(fromDisk) < 0.9*float64(read) {
		m.above = true
		m.result.note("The disks have read %.0f %% of the bytes: the rest came from a cache above them, or was compressed.",
			100*float64(fromDisk)/float64(read))
	}
	return number, err
}

// again measures the ways that read the page cache, with parts that are in it.
func (m *modelRun) again(ctx context.Context, from, parts int) error {
	parts = min(parts, maxCached/large)
	if parts == 0 {
		return nil
	}
	for _, way := range []Way{
		{How: Read, Cached: true, Readers: 1}, {How: Read, Cached: true, Readers: m.options.Readers},
		{How: Mapped, Cached: true, Readers: 1}, {How: Mapped, Cached: true, Readers: m.options.Readers},
	} {
		if _, err := m.way(ctx, way, m.from(from, parts, false), m.options.Step/2); err != nil {
			return err
		}
	}
	return nil
}

// from returns offsets of a number of parts from one on, for all readers together: once, or over and over.
func (m *modelRun) from(first, parts int, once bool) func(int) func() int64 {
	return numbered(parts, once, func(number int) int64 { return int64((first+number)%len(m.parts)) * large })
}

// way measures one way, and adds it to the result. It returns the number of parts that it read.
func (m *modelRun) way(ctx context.Context, way Way, offsets func(int) func() int64, lasts time.Duration) (int, error) {
	if way.How == Mapped {
		if err := m.mapAll(); err != nil {
			m.result.note("The model cannot be mapped: %v.", err)
			return 0, nil
		}
	}
	s := step{late: m.close, read: m.read(way.How), readers: way.Readers, length: large, lasts: lasts, offsets: offsets}
	t, err := s.run(ctx)
	if !errors.Is(err, errHangs) {
		m.unmap()
	}
	if errors.Is(err, errOldKernel) {
		m.result.note("mmap was not measured: %v.", err)
		return 0, nil
	}
	if err != nil || ctx.Err() != nil || t.times.N == 0 {
		return 0, errors.Join(err, ctx.Err())
	}
	way.Bytes, way.Rate = t.bytes, t.rate(lasts)*large
	way.Load = float64(m.size) / way.Rate
	m.result.Ways = append(m.result.Ways, way)
	number := int(t.bytes / large)
	if way.How == Direct && way.Readers == 1 {
		times, err := s.touch(ctx, t, m.from(m.next, number, true))
		if times > 0 {
			m.result.note(touched, times)
		}
		return number, err
	}
	return number, nil
}

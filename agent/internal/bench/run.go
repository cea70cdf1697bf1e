package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// openTimeout bounds the wait until a device or file is open.
const openTimeout = 30 * time.Second

// Run measures. It only reads, except with Options.MakeFile. If ctx ends, or the device fails or hangs, it returns the
// results so far, with an error for the latter two. Reads that hang are left behind, as nothing can end them. The
// result is nil if nothing could be measured.
//
// While it runs, GOMAXPROCS is at least 34, so that the Go scheduler does not delay threads that return from a read.
// With GOMAXPROCS at 2, 32 threads did 41,519 and 37,902 reads per second where fio's 32 threads did 58,883 and 55,082.
func Run(ctx context.Context, o Options) (*Result, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	began := time.Now()
	defer withThreads(depths[len(depths)-1])()
	t, err := inTime(ctx, o.Device+o.Path, func() (*target, error) { return o.open(ctx) })
	if err != nil {
		return nil, err
	}
	m := &measurement{target: t, options: o, result: Result{Path: t.path, Size: uint64(t.size), Direct: t.bypasses(),
		Seed: o.Seed, Random: []Random{}}}
	m.disk()
	err = m.result.end(ctx, began, t, t.name, m.all(ctx))
	return &m.result, err
}

// withThreads has the Go scheduler run so many threads that return from a read, until the result is called.
func withThreads(n int) (restore func()) {
	was := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(max(was, n+2))
	return func() { runtime.GOMAXPROCS(was) }
}

// closer is what inTime closes when it comes too late.
type closer interface{ close() }

// inTime opens something. A file system that hangs blocks it, which nothing can end.
func inTime[T closer](ctx context.Context, name string, open func() (T, error)) (none T, err error) {
	type answer struct {
		opened T
		err    error
	}
	done := make(chan answer, 1)
	go func() {
		opened, err := open()
		done <- answer{opened, err}
	}()
	late := time.NewTimer(openTimeout)
	defer late.Stop()
	select {
	case a := <-done:
		return a.opened, a.err
	case <-ctx.Done():
		select {
		case a := <-done:
			if a.err == nil {
				a.opened.close()
			}
		case <-time.After(readTimeout / 2):
		}
		return none, context.Cause(ctx)
	case <-late.C:
		return none, fmt.Errorf("%s cannot be opened: no answer for %v", name, openTimeout)
	}
}

func (o *Options) open(ctx context.Context) (*target, error) {
	if o.Device != "" {
		return openDevice(o.Device)
	}
	info, err := os.Stat(o.Path)
	switch {
	case err != nil:
		return nil, err
	case o.MakeFile && !info.IsDir():
		return nil, fmt.Errorf("%s is not a folder: leave --make-file out", o.Path)
	case o.MakeFile:
		file, err := makeFile(ctx, o.Path, o.Seed)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		return openFile(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), o.Path)
	case info.IsDir():
		path, err := choose(ctx, o.Path)
		if err != nil {
			return nil, err
		}
		return openFile(path, path)
	case info.Mode().IsRegular():
		return openFile(o.Path, o.Path)
	}
	return nil, fmt.Errorf("%s is neither a file nor a folder, nor a block device", o.Path)
}

// measurement is one run.
type measurement struct {
	target  *target
	options Options
	disks   disks
	above   bool // a cache above the disk was noted
	result  Result
}

// all runs the steps one after another.
func (m *measurement) all(ctx context.Context) error {
	if !m.target.bypasses() {
		m.result.note("The file system has no direct reads (O_DIRECT), so its pages were dropped before each step " +
			"(fadvise): pages that stayed in memory made it faster.")
	}
	if m.target.memory {
		m.result.note("The file is in memory: no disk was read.")
	}
	if err := m.cached(ctx); err != nil {
		return err
	}
	proven, err := m.sequential(ctx)
	if err != nil {
		return err
	}
	for _, depth := range depths {
		own, err := m.random(ctx, depth)
		if err != nil {
			return err
		}
		if depth == 1 && proven {
			m.result.OfDisk = own && m.target.bypasses()
		}
	}
	return nil
}

// cached reads blocks again that are in memory, as hdparm -T.
func (m *measurement) cached(ctx context.Context) error {
	s := step{late: m.target.close, read: from(m.target.cached), readers: 1, length: large, lasts: m.options.Step / 2,
		offsets: inOrder(min(m.target.size, cached), true)}
	t, err := s.run(ctx)
	if err != nil || t.bytes == 0 || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	s.offsets = inOrder(int64(t.bytes), false)
	if t, err = s.run(ctx); err != nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	m.result.Cached = t.rate(s.lasts) * large
	return nil
}

// sequential reports whether the disk itself served the reads.
func (m *measurement) sequential(ctx context.Context) (own bool, err error) {
	s := step{readers: ahead, length: large, offsets: inOrder(m.target.size, !m.target.bypasses())}
	t, own, err := m.storage(ctx, &s, unix.FADV_SEQUENTIAL)
	if err != nil {
		return own, err
	}
	m.result.Sequential = t.rate(s.lasts) * large
	if !m.target.bypasses() {
		return own, nil
	}
	times, err := s.touch(ctx, t, inOrder(min(int64(t.bytes), m.target.size), true))
	if m.result.slowTouch = times > 0; m.result.slowTouch {
		m.result.note(touched, times)
	}
	return own, err
}

func (m *measurement) random(ctx context.Context, depth int) (own bool, err error) {
	s := step{readers: depth, length: small, offsets: anywhere(m.target.size, m.options.Seed+uint64(depth)<<32)}
	t, own, err := m.storage(ctx, &s, unix.FADV_RANDOM)
	if err == nil {
		iops := t.rate(s.lasts)
		m.result.Random = append(m.result.Random, Random{
			Depth: depth, IOPS: iops, Rate: iops * small, AwaitP50: t.times.Quantile(0.5),
			AwaitP99: t.times.Quantile(0.99), Reads: t.times.N,
		})
	}
	return own, err
}

// storage runs a step that reads storage, and reports whether the disk itself served it.
func (m *measurement) storage(ctx context.Context, s *step, advice int) (t *tally, own bool, err error) {
	s.late, s.read, s.lasts = m.target.close, from(m.target.direct), m.options.Step
	if !m.target.bypasses() {
		m.forget(advice)
	}
	before := m.disks.counters()
	t, err = s.run(ctx)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return nil, false, err
	}
	return t, m.owns(before, t.bytes), nil
}

// forget drops a file from the page cache. Errors are ignored: a note has announced that this may not work.
func (m *measurement) forget(then int) {
	fd := int(m.target.cached.Fd())
	_ = unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED)
	_ = unix.Fadvise(fd, 0, 0, then)
}

// inOrder reads the whole MiB up to a size, by all readers together: once, or over and over.
func inOrder(size int64, once bool) func(int) func() int64 {
	return numbered(int(size/large), once, func(number int) int64 { return int64(number) * large })
}

// numbered reads parts that are numbered from 0 on, by all readers together: once, or over and over.
func numbered(parts int, once bool, at func(number int) int64) func(int) func() int64 {
	var next atomic.Int64
	return func(int) func() int64 {
		return func() int64 {
			number := int(next.Add(1) - 1)
			if once && number >= parts {
				return -1
			}
			return at(number % parts)
		}
	}
}

// anywhere reads whole blocks at random.
func anywhere(size int64, seed uint64) func(int) func() int64 {
	return func(reader int) func() int64 {
		random := rand.New(rand.NewPCG(seed, uint64(reader)))
		return func() int64 { return random.Int64N(size/small) * small }
	}
}

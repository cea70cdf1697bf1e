package recording

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/stallspan/stallspan/internal/sample"
)

// Rotation bounds the disk space of a recording: Keep files of about MaxSize bytes each.
type Rotation struct {
	MaxSize int64 // compressed bytes after which a file is complete; 0 for DefaultMaxSize
	Keep    int   // maximum number of files, with the one being written; 0 for DefaultKeep
}

// Defaults and limits. With a single file, each rotation would drop everything before it.
const (
	DefaultMaxSize = 256 << 20 // bytes
	DefaultKeep    = 8
	MinKeep        = 2
	MaxKeep        = 10_000
)

func (r *Rotation) complete() error {
	if r.MaxSize == 0 {
		r.MaxSize = DefaultMaxSize
	}
	if r.Keep == 0 {
		r.Keep = DefaultKeep
	}
	if r.MaxSize < 0 {
		return fmt.Errorf("the maximum size of a file is %d bytes: give a positive one", r.MaxSize)
	}
	if r.Keep < MinKeep || r.Keep > MaxKeep {
		return fmt.Errorf("a recording cannot have %d files: choose %d to %d", r.Keep, MinKeep, MaxKeep)
	}
	return nil
}

// Parts writes a recording of several files, each a recording of its own. The newest part has the given name; NAME.1,
// NAME.2 and so on are older ones. Writing never waits for the disk, so that a slow disk delays only the recording. It
// is safe for concurrent use.
type Parts struct {
	rotation Rotation
	spool    *spool

	mu       sync.Mutex
	header   Header
	part     *Writer
	followed []Mark // of the followed jobs, repeated at the start of each part
	drives   *Entry // last reading of the drives, repeated there too, as they are read every 10 min
	closed   bool
}

// Create begins a recording at path, with mode 0600. A recording that exists there, as after a kill, becomes PATH.1
// like a part. Any other file at path is an error, and so is a recording that another program is writing. If a complete
// part cannot be renamed, the next part goes into the same file, and warn receives the reason on another goroutine.
func Create(path string, h Header, r Rotation, warn func(error)) (*Parts, error) {
	if err := r.complete(); err != nil {
		return nil, err
	}
	files := &series{path: path, keep: r.Keep}
	if err := files.open(); err != nil {
		return nil, err
	}
	p := &Parts{rotation: r, header: h, spool: newSpool(files, warn)}
	err := p.begin()
	if err == nil {
		err = broken(p.spool.wait()) // to notice a full disk now
	}
	if err != nil {
		_ = p.spool.close()
		_ = os.Remove(files.path)
		return nil, err
	}
	return p, nil
}

func broken(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the recording cannot be written, check its disk: %w", err)
}

// Write adds an entry, like Writer.Write. An error of the disk is returned by a later Write and by Close. Entries after
// Close are ignored: a monitor may outlive its recording.
func (p *Parts) Write(e *Entry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	err := p.part.Write(e)
	if errors.Is(err, ErrFull) {
		if err = p.next(); err == nil {
			err = p.part.Write(e)
		}
	}
	if err == nil && e.Sample != nil && len(e.Sample.Drives) > 0 {
		p.drives = &Entry{Source: e.Source, Sample: &sample.Sample{At: e.Sample.At, Drives: slices.Clone(e.Sample.Drives)}}
	}
	if err != nil || e.Mark == nil {
		return err
	}
	p.remember(e.Mark)
	if e.Mark.Op == Tick && p.spool.size() >= p.rotation.MaxSize { // between two rounds of readings
		return p.next()
	}
	return nil
}

// remember keeps the marks of followed jobs.
func (p *Parts) remember(m *Mark) {
	switch m.Op {
	case Follow:
		p.followed = append(p.followed, *m)
	case Leave:
		p.followed = slices.DeleteFunc(p.followed, func(f Mark) bool { return f.ID == m.ID })
	}
}

// next completes a part and begins the next one.
func (p *Parts) next() error {
	if err := p.part.Close(); err != nil {
		return err
	}
	p.spool.cut()
	p.header.Part++
	return p.begin()
}

// begin writes the start of a part.
func (p *Parts) begin() error {
	part, err := NewWriter(p.spool, p.header)
	if err != nil {
		return err
	}
	p.part = part
	if p.drives != nil {
		if err := p.part.Write(p.drives); err != nil {
			return err
		}
	}
	for i := range p.followed {
		if err := p.part.Write(&Entry{Mark: &p.followed[i]}); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the recording and waits until it is on disk. The error is the reason why it is incomplete. Close may be
// called again.
func (p *Parts) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	err := p.part.Close()
	p.mu.Unlock()
	if failed := p.spool.close(); failed != nil {
		return broken(failed) // err has the same reason
	}
	return err
}

// Size returns the bytes and the parts written so far, with those that were removed since.
func (p *Parts) Size() (bytes int64, parts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spool.total(), p.header.Part + 1
}

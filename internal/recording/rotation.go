package recording

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/state"
	"github.com/stallspan/stallspan/internal/trust"
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
	r.MaxSize, r.Keep = cmp.Or(r.MaxSize, DefaultMaxSize), cmp.Or(r.Keep, DefaultKeep)
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
	switch e.Mark.Op {
	case Follow:
		p.followed = append(p.followed, *e.Mark)
	case Leave:
		p.followed = slices.DeleteFunc(p.followed, func(f Mark) bool { return f.ID == e.Mark.ID })
	case Tick: // between two rounds of readings
		if size, _ := p.spool.size(); size >= p.rotation.MaxSize {
			return p.next()
		}
	}
	return nil
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
	_, bytes = p.spool.size()
	return bytes, p.header.Part + 1
}

// series are the files of a recording on disk. It is not safe for concurrent use.
type series struct {
	path string
	keep int
	file *os.File // the one being written, locked
}

// name returns the file of the i-th newest part.
func (s *series) name(i int) string {
	if i == 0 {
		return s.path
	}
	return s.path + "." + strconv.Itoa(i)
}

// open begins the first file. It never changes a file that is not a recording.
func (s *series) open() error {
	target, err := trust.Follow(s.path)
	if err != nil {
		return fmt.Errorf("no recording can be written to %s: %w", s.path, reason(err))
	}
	s.path = target // a link stays one
	kind, err := inspect(s.path)
	if err == nil && kind == recorded {
		err = s.shift()
	} else if err == nil && kind == blank {
		err = os.Remove(s.path)
	}
	if err != nil {
		return err
	}
	return s.create()
}

func (s *series) create() error {
	file, err := os.OpenFile(s.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("no recording can be written to %s, give a file in a folder that exists and is yours: %w", s.path,
			errors.Unwrap(err))
	}
	_ = state.Lock(file, 0) // it is new, so no other process holds it
	s.file = file
	return nil
}

// next renames the complete file to its number and begins another. After an error, there is still a file to write to.
func (s *series) next() error {
	complete := s.file
	if err := s.begin(); err != nil {
		return fmt.Errorf("the recording continues in the same file, because no other could be created: %w", err)
	}
	if err := complete.Close(); err != nil {
		return fmt.Errorf("a complete file of the recording may be damaged: %w", errors.Unwrap(err))
	}
	return nil
}

func (s *series) begin() error {
	switch now, err := os.Stat(s.path); {
	case errors.Is(err, fs.ErrNotExist): // it was moved away
		return s.create()
	case err != nil:
		return err
	case !s.own(now):
		return fmt.Errorf("%s is another file now", s.path)
	}
	if err := s.shift(); err != nil {
		return err
	}
	if err := s.create(); err != nil {
		return errors.Join(err, os.Rename(s.name(1), s.path))
	}
	return nil
}

func (s *series) own(info fs.FileInfo) bool {
	own, err := s.file.Stat()
	return err == nil && os.SameFile(info, own)
}

// shift renames the file at path to number 1, number 1 to number 2, and so on, up to the first free number. If no
// number is free, it replaces the oldest file.
func (s *series) shift() error {
	free := s.keep - 1
	for i := 1; i < s.keep; i++ {
		kind, err := inspect(s.name(i))
		if err != nil {
			return err
		}
		if kind == nothing {
			free = i
			break
		}
	}
	for i := free; i > 0; i-- {
		if err := os.Rename(s.name(i-1), s.name(i)); err != nil {
			return fmt.Errorf("%s cannot be renamed: %w", s.name(i-1), reason(err))
		}
	}
	return nil
}

// reason returns err without the names of files.
func reason(err error) error {
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}

// fileKind is what a name refers to.
type fileKind int

const (
	nothing  fileKind = iota
	blank             // an empty file
	recorded          // a recording, of any format
)

// inspect returns what is at path. The error is for files that must not be changed.
func inspect(path string) (fileKind, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nothing, nil
	case err != nil:
		return nothing, fmt.Errorf("no recording can be written to %s: %w", path, errors.Unwrap(err))
	case !info.Mode().IsRegular():
		return nothing, fmt.Errorf("%s is not a regular file: choose another name for the recording", path)
	case info.Size() == 0:
		return blank, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nothing, fmt.Errorf("%s exists and cannot be read, choose another name: %w", path, errors.Unwrap(err))
	}
	defer func() { _ = file.Close() }()
	if state.Lock(file, 0) != nil { // another process writes it
		return nothing, fmt.Errorf("%s is being written by another stallspan: choose another name, or stop that one", path)
	}
	if _, err := NewReader(file); errors.Is(err, ErrForeign) {
		return nothing, fmt.Errorf("%s exists and is not a recording: choose another name, or move it away", path)
	}
	return recorded, nil
}

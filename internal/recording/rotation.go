package recording

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/stallspan/stallspan/internal/sample"
)

// Rotation bounds what a recording takes of its disk: Keep files of about MaxSize bytes each.
type Rotation struct {
	MaxSize int64 // compressed bytes after which a file is complete; 0 for DefaultMaxSize
	Keep    int   // files at most, the one that is being written included; 0 for DefaultKeep
}

// Defaults and the least that Keep may be: with one file alone, each that is full would take everything with it.
const (
	DefaultMaxSize = 256 << 20 // bytes
	DefaultKeep    = 8
	LeastKeep      = 2
	MostKeep       = 10_000
)

func (r *Rotation) complete() error {
	if r.MaxSize == 0 {
		r.MaxSize = DefaultMaxSize
	}
	if r.Keep == 0 {
		r.Keep = DefaultKeep
	}
	if r.MaxSize < 0 {
		return fmt.Errorf("a file of a recording cannot have %d bytes", r.MaxSize)
	}
	if r.Keep < LeastKeep || r.Keep > MostKeep {
		return fmt.Errorf("%d files cannot be kept of a recording: choose %d to %d", r.Keep, LeastKeep, MostKeep)
	}
	return nil
}

// Parts makes a recording of several files, each a recording of its own. The newest part has the name that was given,
// and NAME.1, NAME.2 and so on are older ones. Writing never waits for the disk, so that a disk that stalls holds nobody
// up but the recording. It is safe for concurrent use.
type Parts struct {
	rotation Rotation
	spool    *spool

	mu       sync.Mutex
	header   Header
	part     *Writer
	followed []Mark // of the jobs that each part is told of at its beginning
	drives   *Entry // what the drives told last, told there too: they are asked each ten minutes, and a part may be shorter
	closed   bool
}

// Create begins a recording at path, with mode 0600. A recording that is there already, as after a crash, becomes PATH.1
// as a part would; anything else at path is refused, and so is a recording that another program is still writing. When a
// complete part cannot be renamed, tell is called with the reason, on another goroutine, and the recording goes on
// behind it in the same file.
func Create(path string, h Header, r Rotation, tell func(error)) (*Parts, error) {
	if err := r.complete(); err != nil {
		return nil, err
	}
	files := &series{path: path, keep: r.Keep}
	if err := files.open(); err != nil {
		return nil, err
	}
	p := &Parts{rotation: r, header: h, spool: newSpool(files, tell)}
	err := p.begin()
	if err == nil {
		err = broken(p.spool.wait()) // so that a full disk is known now
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
	return fmt.Errorf("the recording cannot be written, look at the disk it goes to: %w", err)
}

// Write adds an entry, as Writer.Write does. An error of the disk shows in a later Write and in Close. What comes after
// Close is passed over: a monitor may outlive its recording.
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

// remember keeps which jobs are followed.
func (p *Parts) remember(m *Mark) {
	switch m.Op {
	case Follow:
		p.followed = append(p.followed, *m)
	case Leave:
		p.followed = slices.DeleteFunc(p.followed, func(f Mark) bool { return f.ID == m.ID })
	}
}

// next completes a part and begins the one after it.
func (p *Parts) next() error {
	if err := p.part.Close(); err != nil {
		return err
	}
	p.spool.cut()
	p.header.Part++
	return p.begin()
}

// begin writes what stands at the beginning of each part.
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

// Close ends the recording and waits until the disk has taken it. The error says why it is not whole. It may be called
// again.
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
		return broken(failed) // err says the same
	}
	return err
}

// Size is how many bytes were written to how many parts so far, those included that were removed since.
func (p *Parts) Size() (bytes int64, parts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spool.total(), p.header.Part + 1
}

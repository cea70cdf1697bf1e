package recording

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/stallspan/stallspan/internal/sample"
)

var (
	// ErrForeign says that a file is something else than a recording.
	ErrForeign = errors.New("this is no recording of Stallspan: give a file that it recorded, usually named *.jsonl.gz")
	// ErrCut says that a recording ends in its middle. Everything before that was given.
	ErrCut = errors.New("the recording is cut off: its program was killed, or it is still being written")
)

// Reader gives the entries of a recording back, in the order they were written. It holds one line in memory, and is not
// safe for concurrent use.
type Reader struct {
	header Header
	lines  *bufio.Scanner
	number int  // of lines read
	part   bool // the last line has no end
	err    error
}

// NewReader reads the header of a recording. The error is ErrForeign for any other file; a recording of a newer format
// is refused, too.
func NewReader(file io.Reader) (*Reader, error) {
	zip, err := gzip.NewReader(file)
	if err != nil {
		if errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, ErrForeign
		}
		return nil, fmt.Errorf("the recording cannot be read: %w", err)
	}
	r := &Reader{lines: bufio.NewScanner(&bounded{zip, mostBytes})}
	r.lines.Buffer(nil, mostLine)
	r.lines.Split(r.split)
	text, err := r.line()
	if errors.Is(err, io.EOF) || errors.Is(err, ErrCut) {
		return nil, ErrForeign
	} else if err != nil {
		return nil, err
	}
	var format struct {
		Version *int `json:"stallspan_recording"`
	}
	if json.Unmarshal(text, &format) != nil || format.Version == nil || *format.Version < 1 {
		return nil, ErrForeign
	}
	if *format.Version > Format {
		return nil, fmt.Errorf("the recording has format %d and this version of Stallspan reads formats up to %d: use the version that recorded it, or a newer one",
			*format.Version, Format)
	}
	if err := json.Unmarshal(text, &r.header); err != nil {
		return nil, fmt.Errorf("the recording's first line is damaged: %w", err)
	}
	if boot := r.header.Boot; !boot.IsZero() && checkStamp(sample.Stamp{Wall: boot}) != nil {
		return nil, fmt.Errorf("the recording's first line is damaged: the machine started in %d", boot.Year())
	}
	return r, nil
}

// Header says where and how the recording was made. A file may hold parts one after another; Part is then that of the
// last entry.
func (r *Reader) Header() Header { return r.header }

// Next gives the next entry. After the last one the error is io.EOF, and for a recording without an end ErrCut; any
// other error says at which line the file is damaged. Once there was an error, it stays.
func (r *Reader) Next(e *Entry) error {
	for r.err == nil {
		var text []byte
		if text, r.err = r.line(); r.err != nil {
			break
		}
		var next Entry
		err := json.Unmarshal(text, &next)
		if err == nil {
			err = next.check()
		}
		if err == nil {
			*e = next
			return nil
		}
		if !r.goesOn(text) {
			r.err = fmt.Errorf("the recording is damaged at line %d: %w", r.number, err)
		}
	}
	return r.err
}

// goesOn takes the header of a part that follows in the same file, and refuses what is none.
func (r *Reader) goesOn(text []byte) bool {
	var h Header
	if json.Unmarshal(text, &h) != nil || h.Format < 1 || h.Format > Format || h.ID == "" || h.ID != r.header.ID {
		return false
	}
	r.header.Part = h.Part
	return true
}

// line gives the next whole line, valid until the one after it is asked for.
func (r *Reader) line() ([]byte, error) {
	if r.lines.Scan() {
		r.number++
		return r.lines.Bytes(), checkLine(r.lines.Bytes())
	}
	err := r.lines.Err()
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), err == nil && r.part:
		return nil, ErrCut
	case err == nil:
		return nil, io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		err = errLong
	}
	return nil, fmt.Errorf("the recording is damaged after line %d: %w", r.number, err)
}

// split cuts lines off, and gives none without its end.
func (r *Reader) split(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	r.part = atEOF && len(data) > 0
	return 0, nil, nil
}

// bounded ends a file that unpacks to more than anybody recorded.
type bounded struct {
	from io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("it unpacks to more than %d GiB", mostBytes>>30)
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

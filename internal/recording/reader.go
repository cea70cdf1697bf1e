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
	// ErrForeign means that a file is not a recording.
	ErrForeign = errors.New("this is not a recording of Stallspan: give a file that it recorded, such as machine.gz")
	// ErrCut means that a recording is incomplete. Next has returned everything before that.
	ErrCut = errors.New("the recording is cut off: its program was killed, or it is still being written")
)

// Reader returns the entries of a recording in the order in which they were written. It holds one line in memory, and
// is not safe for concurrent use.
type Reader struct {
	header Header
	lines  *bufio.Scanner
	number int  // of lines read
	part   bool // the last line has no end
	err    error
}

// NewReader reads the header of a recording. The error is ErrForeign for any other file. A newer format is an error,
// too.
func NewReader(file io.Reader) (*Reader, error) {
	zip, err := gzip.NewReader(file)
	if err != nil {
		if errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, ErrForeign
		}
		return nil, fmt.Errorf("the recording cannot be read: %w", err)
	}
	r := &Reader{lines: bufio.NewScanner(&bounded{zip, maxBytes})}
	r.lines.Buffer(nil, maxLine)
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
		return nil, fmt.Errorf("the recording has format %d and this version of Stallspan reads formats up to %d: "+
			"use the version that recorded it, or a newer one", *format.Version, Format)
	}
	if err := json.Unmarshal(text, &r.header); err != nil {
		return nil, fmt.Errorf("the recording's first line is damaged: %w", err)
	}
	if boot := r.header.Boot; !boot.IsZero() && checkStamp(sample.Stamp{Wall: boot}) != nil {
		return nil, fmt.Errorf("the recording's first line is damaged: the machine started in %d", boot.Year())
	}
	return r, nil
}

// Header returns where and how the recording was made.
func (r *Reader) Header() Header { return r.header }

// Next reads the next entry. The error is io.EOF after the last one, and ErrCut if the recording is incomplete. Any
// other error has the number of the damaged line. Later calls return the same error.
func (r *Reader) Next(e *Entry) error {
	if r.err != nil {
		return r.err
	}
	var text []byte
	if text, r.err = r.line(); r.err != nil {
		return r.err
	}
	var next Entry
	err := json.Unmarshal(text, &next)
	if err == nil {
		err = next.check()
	}
	if err != nil {
		r.err = fmt.Errorf("the recording is damaged at line %d: %w", r.number, err)
		return r.err
	}
	*e = next
	return nil
}

// line returns the next complete line, valid until the next call.
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

// split splits the file into complete lines.
func (r *Reader) split(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	r.part = atEOF && len(data) > 0
	return 0, nil, nil
}

// bounded limits the uncompressed size of a file: a damaged one may unpack to any size.
type bounded struct {
	from io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("it unpacks to more than %d GiB", maxBytes>>30)
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

package store

import (
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"time"
)

// Item is a block: rows, windows or events, or times of jobs. The others are empty.
type Item struct {
	Rows    *Rows
	Entries []Entry
	Times   []Entry
}

// Reader reads the blocks of a file, or of several files one after the other. It is not safe for concurrent use.
type Reader struct {
	From, Until time.Time // blocks without anything in between are left out; zero for no limit
	OnlyTimes   bool      // all but the times of jobs are left out, and not looked into

	in      *bufio.Reader
	begun   bool
	columns [groups]*numbered
	inflate io.ReadCloser
	read    int64 // bytes that were consumed
	made    int64 // bytes that were made of them
	damaged int
	later   int
	cut     int64
}

// numbered are columns with their number in the file.
type numbered struct {
	number  uint32
	columns []Column
}

// NewReader returns a reader of a file.
func NewReader(in io.Reader) *Reader {
	return &Reader{in: bufio.NewReaderSize(in, frameSize+maxPayload)}
}

// Damaged returns how many places could not be read so far.
func (r *Reader) Damaged() int { return r.damaged }

// Later returns how many blocks were left out so far because a later version of this program has written them.
func (r *Reader) Later() int { return r.later }

// Limits of the work for a file that no writer has made.
const (
	maxDamaged  = 1000     // places
	maxGrowth   = 64       // bytes that one byte may become
	freeGrowth  = 16 << 20 // bytes more than that
	minInterval = 1        // seconds
	maxInterval = 3600
)

// Next returns the next block, or io.EOF. Blocks that are damaged, or of a kind that is not known, are left out.
func (r *Reader) Next() (Item, error) {
	for {
		f, payload, err := r.block()
		if err != nil {
			return Item{}, err
		}
		if f.content != schemaBlock && r.outside(&f) || r.OnlyTimes && f.content != timesBlock {
			continue
		}
		item, err := r.decode(&f, payload)
		switch {
		case errors.Is(err, ErrBroken):
			return Item{}, err
		case err != nil:
			if r.damaged++; r.damaged > maxDamaged {
				return Item{}, ErrBroken
			}
		case item.Rows != nil || item.Entries != nil || item.Times != nil:
			return item, nil
		}
	}
}

// workPart is the length of a part of work, and of the pause after it.
const workPart = 10 * time.Millisecond

// Each calls take with each block that is left, at half of a core's speed: the machine's programs come first.
func (r *Reader) Each(ctx context.Context, take func(*Item)) error {
	for worked := time.Now(); ; {
		item, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		take(&item)
		if time.Since(worked) > workPart {
			time.Sleep(workPart)
			worked = time.Now()
		}
	}
}

func (r *Reader) outside(f *frame) bool {
	return !r.From.IsZero() && f.last < r.From.Unix()-maxInterval || !r.Until.IsZero() && f.first > r.Until.Unix()
}

// block returns the next complete block. The payload is valid until the next call.
func (r *Reader) block() (f frame, payload []byte, err error) {
	for {
		head, err := r.in.Peek(frameSize)
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return f, nil, err
		case !r.begun || bytes.HasPrefix(head, []byte(heading)):
			if err := checkHeader(head); err != nil && (!r.begun || errors.Is(err, ErrNewer)) {
				if bytes.HasPrefix(header(), head) { // its writer was killed before the first block
					err = io.EOF
				}
				return f, nil, err
			} else if err == nil {
				r.begun, r.columns = true, [groups]*numbered{}
				r.skip(headerSize)
				continue
			}
		case len(head) == 0:
			return f, nil, io.EOF
		}
		if f, ok := parseFrame(head); ok {
			whole, err := r.in.Peek(frameSize + int(f.length))
			if err != nil && !errors.Is(err, io.EOF) {
				return f, nil, err
			}
			if err == nil && crc32.Checksum(whole[frameSize:], castagnoli) == f.sum {
				r.skip(len(whole))
				return f, whole[frameSize:], nil // skip does not move the bytes
			}
		}
		if err := r.search(); err != nil {
			return f, nil, err
		}
	}
}

func (r *Reader) skip(n int) {
	_, _ = r.in.Discard(n) // they are in the buffer
	r.read += int64(n)
}

// search goes on to the next place at which a block may begin.
func (r *Reader) search() error {
	if r.damaged > maxDamaged {
		return ErrBroken
	}
	passed := int64(0)
	for first := true; ; first = false {
		text, err := r.in.Peek(len(marker))
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(text) < len(marker) {
			r.skip(len(text))
			r.cut += passed + int64(len(text))
			return io.EOF
		}
		text, _ = r.in.Peek(r.in.Buffered())
		from := 0
		if first {
			from = 1
		}
		at := r.candidate(text[from:])
		if at >= 0 {
			r.skip(from + at)
			r.damaged++
			return nil
		}
		n := max(1, len(text)-max(len(marker), headerSize)+1)
		r.skip(n)
		passed += int64(n)
	}
}

// candidate returns where a block or a header may begin, or -1.
func (r *Reader) candidate(text []byte) int {
	block, file := bytes.Index(text, marker), bytes.Index(text, []byte(heading))
	if block < 0 || file >= 0 && file < block {
		return file
	}
	return block
}

var errDamaged = errors.New("a block is damaged")

func (r *Reader) decode(f *frame, payload []byte) (item Item, err error) {
	if f.content < schemaBlock || f.content > timesBlock || f.group >= groups {
		r.later++
		return item, nil
	}
	raw, err := r.unpack(payload)
	if err != nil {
		return item, err
	}
	switch f.content {
	case schemaBlock:
		r.columns[f.group] = nil
		columns, err := parseColumns(raw)
		if err == nil {
			r.columns[f.group] = &numbered{f.schema, columns}
		}
		return item, err
	case rowsBlock:
		known := r.columns[f.group]
		if known == nil || known.number != f.schema {
			return item, errDamaged // the block with its columns was
		}
		item.Rows, err = parseRows(raw, f, known.columns)
		return item, err
	}
	entries, err := parseEntries(raw, f)
	if f.content == timesBlock {
		item.Times = entries
	} else {
		item.Entries = entries
	}
	return item, err
}

// unpack inflates a payload. All blocks together must not grow more than those of any writer.
func (r *Reader) unpack(payload []byte) ([]byte, error) {
	left := maxGrowth*r.read + freeGrowth - r.made
	if left <= 0 {
		return nil, ErrBroken
	}
	if r.inflate == nil {
		r.inflate = flate.NewReader(nil)
	}
	if err := r.inflate.(flate.Resetter).Reset(bytes.NewReader(payload), nil); err != nil {
		return nil, errDamaged
	}
	raw, err := io.ReadAll(io.LimitReader(r.inflate, maxRaw+1))
	r.made += int64(len(raw))
	if err != nil || len(raw) > maxRaw {
		return nil, errDamaged
	}
	return raw, nil
}

func parseColumns(raw []byte) ([]Column, error) {
	var columns []Column
	if err := json.Unmarshal(raw, &columns); err != nil || len(columns) > maxColumns {
		return nil, errDamaged
	}
	for i := range columns {
		c := &columns[i]
		if max(len(c.Of), len(c.ID), len(c.Name), len(c.Quantity)) > maxName || !(c.Step > 0) || math.IsInf(c.Step, 0) {
			return nil, errDamaged
		}
	}
	return columns, nil
}

func parseRows(raw []byte, f *frame, columns []Column) (*Rows, error) {
	in := varints{raw: raw}
	n, width, length := in.unsigned(), in.unsigned(), in.unsigned()
	if n == 0 || n > maxValues || width != uint64(len(columns)) || n*max(1, width) > maxValues ||
		length < minInterval || length > maxInterval || n*width > uint64(len(raw)) {
		return nil, errDamaged
	}
	rows := &Rows{Group: f.group, Columns: columns, Length: time.Duration(length) * time.Second,
		Starts: make([]int64, n), Values: make([][]float64, width)}
	at := f.first
	for i := range rows.Starts {
		if i > 0 {
			step := in.signed()
			if step <= 0 || at > math.MaxInt64-step {
				return nil, errDamaged
			}
			at += step
		}
		rows.Starts[i] = at
	}
	all := make([]float64, n*width)
	for c := range rows.Values {
		rows.Values[c], all = all[:n:n], all[n:]
		value := int64(0)
		for i := range rows.Values[c] {
			code := in.unsigned()
			if code == 0 {
				rows.Values[c][i] = unknown
				continue
			}
			value += unzigzag(code - 1) // may wrap around in a file of no writer
			rows.Values[c][i] = float64(value) * columns[c].Step
		}
	}
	if in.bad || len(in.raw) > 0 {
		return nil, errDamaged
	}
	return rows, nil
}

func parseEntries(raw []byte, f *frame) ([]Entry, error) {
	kind, _ := f.content.kind()
	var list []Entry
	for line := range bytes.Lines(raw) {
		e := Entry{Kind: kind}
		if err := json.Unmarshal(line, &e); err != nil || len(e.Text) == 0 || len(list) == maxEntries {
			return nil, errDamaged
		}
		list = append(list, e)
	}
	return list, nil
}

// varints reads integers one after the other.
type varints struct {
	raw []byte
	bad bool // one could not be read
}

func (v *varints) unsigned() uint64 {
	x, n := binary.Uvarint(v.raw)
	if n <= 0 {
		v.bad, v.raw = true, nil
		return 0
	}
	v.raw = v.raw[n:]
	return x
}

func (v *varints) signed() int64 { return unzigzag(v.unsigned()) }

// Copy writes the blocks between two times as a file. With shows, it leaves out the curves of jobs, the entries for
// which that is false, and what it does not know.
func Copy(to io.Writer, in io.Reader, from, until time.Time, shows func(Entry) bool) error {
	r := NewReader(in)
	r.From, r.Until = from, until
	var e encoder
	block := header()
	for {
		if len(block) > 0 { // something is left of it
			if _, err := to.Write(block); err != nil {
				return fmt.Errorf("the history cannot be copied: %w", err)
			}
		}
		f, payload, err := r.block()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		kind, isList := f.content.kind()
		switch block = block[:0]; {
		case f.content != schemaBlock && r.outside(&f):
		case shows == nil:
			block = append(f.append(block), payload...)
		case isList:
			if item, err := r.decode(&f, payload); err == nil {
				own := slices.DeleteFunc(slices.Concat(item.Entries, item.Times), func(e Entry) bool { return !shows(e) })
				block, _ = e.entries(block, kind, own) // what was read can be written
			}
		case f.group == Devices && f.content <= rowsBlock:
			block = append(f.append(block), payload...)
		}
	}
}

package store

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
)

// A file begins with this text, and a version of three digits and a line feed.
const (
	heading    = "stallspan history "
	headerSize = len(heading) + 4
)

func header() []byte { return fmt.Appendf(nil, "%s%03d\n", heading, Version) }

// checkHeader returns why a file that begins like this is not read.
func checkHeader(text []byte) error {
	if len(text) < headerSize || !bytes.HasPrefix(text, []byte(heading)) || text[headerSize-1] != '\n' {
		return ErrForeign
	}
	version, err := strconv.ParseUint(string(text[len(heading):headerSize-1]), 10, 16)
	switch {
	case err != nil || version == 0:
		return ErrForeign
	case version > Version:
		return ErrNewer
	}
	return nil
}

// content is what a block holds.
type content uint8

const (
	schemaBlock content = 1 + iota // columns of a group
	rowsBlock                      // rows of a group
	windowsBlock
	eventsBlock
	timesBlock
)

// contentOf are the blocks of entries, by their kind.
var contentOf = [entryKinds]content{Window: windowsBlock, Event: eventsBlock, Times: timesBlock}

// kind returns the kind of the entries of a block; false for a block of anything else.
func (c content) kind() (EntryKind, bool) {
	for kind, of := range contentOf {
		if of == c {
			return EntryKind(kind), true
		}
	}
	return 0, false
}

// marker begins each block. Readers search for it after damage.
var marker = []byte{0xd7, 'S', 'b', '\n'}

const frameSize = 40

// frame is what stands before the payload of a block, with a checksum of its own.
type frame struct {
	content     content
	group       Group
	schema      uint32 // number of the columns, which counts up within a file
	length      uint32 // bytes of the payload
	sum         uint32 // CRC-32C of the payload
	first, last int64  // Unix seconds: starts of the first and the last interval, or times of entries
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (f *frame) append(to []byte) []byte {
	at := len(to)
	to = append(to, marker...)
	to = append(to, byte(f.content), byte(f.group), 0, 0)
	to = binary.LittleEndian.AppendUint32(to, f.schema)
	to = binary.LittleEndian.AppendUint32(to, f.length)
	to = binary.LittleEndian.AppendUint32(to, f.sum)
	to = binary.LittleEndian.AppendUint64(to, uint64(f.first))
	to = binary.LittleEndian.AppendUint64(to, uint64(f.last))
	return binary.LittleEndian.AppendUint32(to, crc32.Checksum(to[at:], castagnoli))
}

// parseFrame reports false for anything but a frame. Contents of later programs are frames, too.
func parseFrame(text []byte) (f frame, ok bool) {
	if len(text) < frameSize || !bytes.HasPrefix(text, marker) {
		return f, false
	}
	const end = frameSize - 4
	if crc32.Checksum(text[:end], castagnoli) != binary.LittleEndian.Uint32(text[end:]) {
		return f, false
	}
	f = frame{
		content: content(text[4]), group: Group(text[5]),
		schema: binary.LittleEndian.Uint32(text[8:]), length: binary.LittleEndian.Uint32(text[12:]),
		sum:   binary.LittleEndian.Uint32(text[16:]),
		first: int64(binary.LittleEndian.Uint64(text[20:])), last: int64(binary.LittleEndian.Uint64(text[28:])),
	}
	return f, f.length <= maxPayload
}

// encoder makes blocks. It keeps its memory from one block to the next.
type encoder struct {
	raw     []byte
	packed  bytes.Buffer
	deflate *flate.Writer
}

// pack appends a block with the payload e.raw to a text.
func (e *encoder) pack(to []byte, f frame) ([]byte, error) {
	e.packed.Reset()
	if e.deflate == nil {
		// Blocks have a few kilobytes. The fastest level needs a tenth of the others' memory.
		e.deflate, _ = flate.NewWriter(&e.packed, flate.BestSpeed) // the level is valid
	} else {
		e.deflate.Reset(&e.packed)
	}
	_, _ = e.deflate.Write(e.raw) // a Buffer takes everything
	_ = e.deflate.Close()
	payload := e.packed.Bytes()
	if len(e.raw) > maxRaw || len(payload) > maxPayload {
		return to, fmt.Errorf("a block of %d bytes is too large for the history, please report this", len(e.raw))
	}
	f.length, f.sum = uint32(len(payload)), crc32.Checksum(payload, castagnoli)
	return append(f.append(to), payload...), nil
}

func (e *encoder) columns(to []byte, g Group, number uint32, columns []Column) ([]byte, error) {
	raw, err := json.Marshal(columns)
	if err != nil {
		return to, err
	}
	e.raw = raw
	return e.pack(to, frame{content: schemaBlock, group: g, schema: number})
}

// rows appends a block of rows. Each column is a list of differences, as varints, with 0 for a value that is not known.
func (e *encoder) rows(to []byte, number uint32, r *Rows) ([]byte, error) {
	n := len(r.Starts)
	raw := binary.AppendUvarint(e.raw[:0], uint64(n))
	raw = binary.AppendUvarint(raw, uint64(len(r.Columns)))
	raw = binary.AppendUvarint(raw, uint64(r.Length.Seconds()))
	for i, start := range r.Starts {
		if i > 0 {
			raw = binary.AppendVarint(raw, start-r.Starts[i-1])
		}
	}
	for c := range r.Columns {
		previous := int64(0)
		for _, v := range r.Values[c] {
			value, known := quantized(v, r.Columns[c].Step)
			if !known {
				raw = append(raw, 0)
				continue
			}
			raw = binary.AppendUvarint(raw, zigzag(value-previous)+1)
			previous = value
		}
	}
	e.raw = raw
	return e.pack(to, frame{content: rowsBlock, group: r.Group, schema: number, first: r.Starts[0], last: r.Starts[n-1]})
}

func (e *encoder) entries(to []byte, kind EntryKind, list []Entry) ([]byte, error) {
	if len(list) == 0 {
		return to, nil
	}
	f := frame{content: contentOf[kind], first: math.MaxInt64, last: math.MinInt64}
	if kind == Times {
		f.group = Jobs // which earlier versions do not show to other users
	}
	e.raw = e.raw[:0]
	for i := range list {
		line, err := json.Marshal(&list[i])
		if err != nil {
			return to, err
		}
		e.raw = append(append(e.raw, line...), '\n')
		f.first, f.last = min(f.first, list[i].At.Unix()), max(f.last, list[i].At.Unix())
	}
	return e.pack(to, f)
}

// maxQuantum bounds stored values, so that no difference overflows.
const maxQuantum = 1 << 53

func quantized(v, step float64) (int64, bool) {
	q := math.Round(v / step)
	if math.IsNaN(q) {
		return 0, false
	}
	return int64(max(-maxQuantum, min(maxQuantum, q))), true
}

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

package store

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
)

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

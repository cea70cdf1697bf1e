package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
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

package helper

import (
	"encoding/binary"
	"errors"
	"strings"
	"syscall"

	"github.com/stallspan/stallspan/internal/source/process"
)

// Version is the version of the frames. Both sides are the same program, so no other one can be right.
const Version = 9

// Bounds of a frame. Each is one packet of a socket that keeps their limits (SOCK_SEQPACKET).
const (
	headerBytes    = 6 // version, op, and the number of the question, which its answer repeats
	keyBytes       = 12
	bytesBytes     = 26
	fileBytes      = 17
	modelFileBytes = 31   // without its path
	maxKeys        = 512  // of a question
	maxOpenFiles   = 1024 // of an answer
	maxListening   = 1024
	maxPID         = 1 << 22 // PID_MAX_LIMIT
	maxQuestion    = headerBytes + maxKeys*keyBytes
	maxAnswer      = 20 << 10
	maxErrno       = 4095 // MAX_ERRNO
	maxReason      = 512  // bytes of a text
)

// errFrame is the error of a frame that breaks the format.
var errFrame = errors.New("a frame is damaged")

// op is what a frame is about.
type op uint8

// The operations. Numbers have the byte order of the wire: little endian. Each answer is as long as its content.
const (
	opHello   op = iota + 1 // the helper is ready: the process IDs of it and of its keeper
	opEnded                 // the helper has ended, or cannot start: the reason, which may be empty
	opBytes                 // keys; the answer has for each an error and three numbers
	opFiles                 // a key, an index and a limit; an error, the number of open files, and some files
	opSame                  // two keys; an error, and whether they run the same program
	opTrace                 // what is wanted; a handle, a size, what is refused, and up to four descriptors; or why not
	opJob                   // a handle, a slot, a generation; an error
	opAdopt                 // the same, and process IDs; an error
	opFlush                 // a handle; an error
	opReport                // a handle; an error
	opUntrace               // a handle; nothing
	opModels                // a key, and what is wanted; an error, a number, and files
	opDevice                // a key and a device; an error, whether it is open, and the number of files
	opEnd
)

// question is a parsed question of an agent.
type question struct {
	op          op
	number      uint32
	keys        []process.Key
	from, limit int
	models      process.FilesWanted
	device      uint64
}

func header(b []byte, o op, number uint32) []byte {
	return binary.LittleEndian.AppendUint32(append(b, Version, byte(o)), number)
}

// hello is the frame with which a helper begins.
func hello(helper, keeper int) []byte {
	b := binary.LittleEndian.AppendUint32(header(nil, opHello, 0), uint32(helper))
	return binary.LittleEndian.AppendUint32(b, uint32(keeper))
}

// ended is the frame that reports the end of a helper.
func ended(why string) []byte {
	return append(header(nil, opEnded, 0), why[:min(len(why), maxReason)]...)
}

// split returns the parts of a frame.
func split(frame []byte) (o op, number uint32, body []byte, err error) {
	if len(frame) < headerBytes || frame[0] != Version || frame[1] == 0 || op(frame[1]) >= opEnd {
		return 0, 0, nil, errFrame
	}
	return op(frame[1]), binary.LittleEndian.Uint32(frame[2:]), frame[headerBytes:], nil
}

// append adds the frame of a question.
func (q *question) append(b []byte) []byte {
	b = header(b, q.op, q.number)
	for _, key := range q.keys {
		b = binary.LittleEndian.AppendUint32(b, uint32(key.PID))
		b = binary.LittleEndian.AppendUint64(b, key.Start)
	}
	switch q.op {
	case opFiles:
		b = binary.LittleEndian.AppendUint16(b, uint16(q.from))
		b = binary.LittleEndian.AppendUint16(b, uint16(q.limit))
	case opModels:
		b = append(b, bits(q.models.Maps, q.models.Sockets))
	case opDevice:
		b = binary.LittleEndian.AppendUint64(b, q.device)
	}
	return b
}

// parse takes a question from a frame. It reuses the memory of q, and accepts exactly what append makes.
func (q *question) parse(frame []byte) error {
	d := decoder{}
	var err error
	q.keys, q.from, q.limit = q.keys[:0], 0, 0
	q.models, q.device = process.FilesWanted{}, 0
	if q.op, q.number, d.rest, err = split(frame); err != nil {
		return err
	}
	keys := 0
	switch q.op {
	case opBytes:
		keys = len(d.rest) / keyBytes
		d.bad = keys == 0 || keys > maxKeys
	case opFiles, opModels, opDevice:
		keys = 1
	case opSame:
		keys = 2
	default:
		return errFrame
	}
	for range keys {
		q.keys = append(q.keys, process.Key{PID: d.pid(), Start: d.uint64()})
	}
	switch q.op {
	case opFiles:
		q.from, q.limit = int(d.uint16()), int(d.uint16())
		d.bad = d.bad || q.limit == 0 || q.limit > maxOpenFiles
	case opModels:
		wanted := d.flags(2)
		q.models.Maps, q.models.Sockets = wanted&1 != 0, wanted&2 != 0
	case opDevice:
		q.device = d.uint64()
	}
	return d.end()
}

// decoder takes numbers from a frame. After an error it returns zeros.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) take(n int) []byte {
	if len(d.rest) < n {
		d.bad, d.rest = true, nil
		return make([]byte, n)
	}
	part := d.rest[:n]
	d.rest = d.rest[n:]
	return part
}

func (d *decoder) uint8() uint8   { return d.take(1)[0] }
func (d *decoder) uint16() uint16 { return binary.LittleEndian.Uint16(d.take(2)) }
func (d *decoder) uint32() uint32 { return binary.LittleEndian.Uint32(d.take(4)) }
func (d *decoder) uint64() uint64 { return binary.LittleEndian.Uint64(d.take(8)) }

func (d *decoder) pid() int {
	n := d.uint32()
	if n == 0 || n > maxPID {
		d.bad = true
	}
	return int(n)
}

func (d *decoder) errno() syscall.Errno {
	n := d.uint16()
	d.bad = d.bad || n > maxErrno
	return syscall.Errno(n)
}

// end returns an error for a frame that was too short, too long or wrong.
func (d *decoder) end() error {
	if d.bad || len(d.rest) > 0 {
		return errFrame
	}
	return nil
}

func appendErrno(b []byte, err syscall.Errno) []byte {
	return binary.LittleEndian.AppendUint16(b, uint16(min(err, maxErrno)))
}

func appendBytes(b []byte, list []process.Bytes) []byte {
	for i := range list {
		v := &list[i]
		b = appendErrno(b, v.Err)
		for _, n := range [...]uint64{v.Read, v.Chars, v.Write} {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
	}
	return b
}

func parseBytes(body []byte, into []process.Bytes) error {
	d := decoder{rest: body}
	for i := range into {
		into[i] = process.Bytes{Err: d.errno(), Read: d.uint64(), Chars: d.uint64(), Write: d.uint64()}
	}
	return d.end()
}

func appendFiles(b []byte, list []process.OpenFile, files int, err syscall.Errno) []byte {
	b = appendErrno(b, err)
	b = binary.LittleEndian.AppendUint16(b, uint16(files))
	for i := range list[:min(len(list), maxOpenFiles)] {
		f := &list[i]
		b = binary.LittleEndian.AppendUint32(b, uint32(f.Mount))
		b = binary.LittleEndian.AppendUint32(b, f.Inode)
		b = binary.LittleEndian.AppendUint64(b, f.Pipe)
		b = append(b, bits(f.Reads, f.Writes, f.Stays))
	}
	return b
}

// bits returns a number with a bit for each truth, the lowest first.
func bits(all ...bool) (number byte) {
	for i, is := range all {
		if is {
			number |= 1 << i
		}
	}
	return number
}

func parseFiles(body []byte) (list []process.OpenFile, files int, failed syscall.Errno, err error) {
	d := decoder{rest: body}
	failed, files = d.errno(), int(d.uint16())
	d.bad = d.bad || files > maxOpenFiles || len(d.rest) > maxOpenFiles*fileBytes
	for len(d.rest) > 0 && !d.bad {
		mount, inode, pipe, is := d.uint32(), d.uint32(), d.uint64(), d.uint8()
		d.bad = d.bad || mount >= 1<<31 || is >= 1<<3
		list = append(list, process.OpenFile{Mount: int(mount), Inode: inode, Pipe: pipe,
			Ends: process.Ends{Reads: is&1 != 0, Writes: is&2 != 0, Stays: is&4 != 0}})
	}
	return list, files, failed, d.end()
}

// flags takes a number of bits.
func (d *decoder) flags(bits int) uint8 {
	n := d.uint8()
	d.bad = d.bad || n >= 1<<bits
	return n
}

// appendModels adds as many files as fit.
func appendModels(b []byte, all process.Files, err syscall.Errno) []byte {
	b = appendErrno(b, err)
	b = binary.LittleEndian.AppendUint16(b, uint16(min(all.Listening, maxListening)))
	for _, f := range all.List {
		if len(f.Path) > process.MaxFilePath || len(b)+modelFileBytes+len(f.Path) > maxAnswer || !process.OfModel(f.Path) {
			continue // only files of models are answered
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(f.FD+1))
		for _, n := range [...]int64{f.Size, f.Offset, f.Mapped} {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
		b = append(b, bits(f.Write))
		b = binary.LittleEndian.AppendUint16(b, uint16(len(f.Path)))
		b = append(b, f.Path...)
	}
	return b
}

func parseModels(body []byte) (all process.Files, failed syscall.Errno, err error) {
	d := decoder{rest: body}
	failed, all.Listening = d.errno(), int(d.uint16())
	d.bad = d.bad || all.Listening > maxListening
	for len(d.rest) > 0 && !d.bad && len(all.List) < process.MaxFiles {
		fd := d.uint32()
		f := process.File{FD: int(fd) - 1, Size: d.size(), Offset: d.size(), Mapped: d.size(), Write: d.flags(1) != 0}
		n := int(d.uint16())
		d.bad = d.bad || n > process.MaxFilePath || fd > maxPID
		if d.bad {
			break
		}
		f.Path = string(d.take(n))
		d.bad = d.bad || !strings.HasPrefix(f.Path, "/") || strings.ContainsRune(f.Path, 0) || !process.OfModel(f.Path)
		all.List = append(all.List, f)
	}
	if err = d.end(); err != nil {
		return process.Files{}, failed, err
	}
	return all, failed, nil
}

// size takes a size of a file in bytes.
func (d *decoder) size() int64 {
	n := d.uint64()
	d.bad = d.bad || n > 1<<62
	return int64(n)
}

func appendDevice(b []byte, open bool, files int, err syscall.Errno) []byte {
	b = append(appendErrno(b, err), bits(open))
	return binary.LittleEndian.AppendUint16(b, uint16(min(files, maxOpenFiles)))
}

func parseDevice(body []byte) (open bool, files int, failed syscall.Errno, err error) {
	d := decoder{rest: body}
	failed, open, files = d.errno(), d.flags(1) != 0, int(d.uint16())
	d.bad = d.bad || files > maxOpenFiles || open && failed != 0
	return open && !d.bad, files, failed, d.end()
}

func appendSame(b []byte, same bool, err syscall.Errno) []byte {
	return append(appendErrno(b, err), bits(same))
}

func parseSame(body []byte) (same bool, failed syscall.Errno, err error) {
	d := decoder{rest: body}
	failed, same = d.errno(), d.flags(1) != 0
	return same && !d.bad, failed, d.end()
}

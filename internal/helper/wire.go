package helper

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"syscall"

	"github.com/stallspan/stallspan/internal/source/bpf"
	"github.com/stallspan/stallspan/internal/source/process"
)

// Version is the version of the frames. Both sides are the same program, so no other one can be right.
const Version = 9

// Bounds of a frame. Each is one packet of a socket that keeps their limits (SOCK_SEQPACKET).
const (
	headerBytes    = 6 // version, op, and the number of the question, which its answer repeats
	keyBytes       = 12
	modelFileBytes = 31   // without its path
	maxKeys        = 512  // of a question
	maxOpenFiles   = 1024 // of an answer
	maxListening   = 1024
	maxAdopted     = 1024    // processes of a question
	maxRefusals    = 64      // of an answer
	maxPID         = 1 << 22 // PID_MAX_LIMIT
	maxQuestion    = headerBytes + maxKeys*keyBytes
	maxAnswer      = 20 << 10
	maxErrno       = 4095 // MAX_ERRNO
	maxReason      = 512  // bytes of a text
	maxMap         = 1 << 30
	maxFile        = 1 << 62 // bytes
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

// traces reports whether an operation is for the tracer.
func (o op) traces() bool { return o >= opTrace && o <= opUntrace }

func header(b []byte, o op, number uint32) []byte {
	return binary.LittleEndian.AppendUint32(append(b, Version, byte(o)), number)
}

// hello is the frame with which a helper begins.
func hello(helper, keeper int) []byte {
	c := codec{rest: header(nil, opHello, 0)}
	c.pid(&helper)
	c.pid(&keeper)
	return c.rest
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

// question is one of an agent. Its operation decides which fields it has.
type question struct {
	op          op
	number      uint32
	keys        []process.Key
	from, limit int
	models      process.FilesWanted
	device      uint64

	want             bpf.Wanted
	handle           uint32
	slot, generation uint32
	pids             []int
}

// append adds the frame of a question.
func (q *question) append(b []byte) []byte {
	c := codec{rest: header(b, q.op, q.number)}
	q.fields(&c)
	return c.rest
}

// parse takes a question from a frame. It reuses the memory of q, and accepts exactly what append makes.
func (q *question) parse(frame []byte) error {
	*q = question{keys: q.keys[:0], pids: q.pids[:0]}
	c := codec{reads: true}
	var err error
	if q.op, q.number, c.rest, err = split(frame); err != nil {
		return err
	}
	q.fields(&c)
	return c.end()
}

// fields writes or reads what follows the header.
func (q *question) fields(c *codec) {
	switch q.op {
	case opBytes:
		list(c, &q.keys, 1, maxKeys, c.key)
	case opSame:
		list(c, &q.keys, 2, 2, c.key)
	case opFiles, opModels, opDevice:
		if c.reads {
			q.keys = append(q.keys, process.Key{})
		}
		c.key(&q.keys[0])
	case opJob, opAdopt, opFlush, opReport, opUntrace:
		num(c, 4, &q.handle, 0, math.MaxUint32)
	}
	switch q.op {
	case opBytes, opSame, opFlush, opReport, opUntrace:
	case opFiles:
		num(c, 2, &q.from, 0, math.MaxUint16)
		num(c, 2, &q.limit, 1, maxOpenFiles)
	case opModels:
		c.flags(&q.models.Maps, &q.models.Sockets)
	case opDevice:
		num(c, 8, &q.device, 0, math.MaxUint64)
	case opTrace:
		c.flags(&q.want.Threads, &q.want.Disks)
	case opJob, opAdopt:
		num(c, 4, &q.slot, 1, bpf.MaxJobs)
		num(c, 4, &q.generation, 0, math.MaxUint32)
		if q.op == opAdopt {
			list(c, &q.pids, 1, maxAdopted, c.pid)
		}
	default:
		c.fail()
	}
}

// content is that of an answer. The operation decides which fields it has.
type content struct {
	failed syscall.Errno
	bytes  []process.Bytes
	open   []process.OpenFile
	files  int // open ones
	yes    bool
	models process.Files

	handle     uint32 // of what traces; 0 for none
	eventBytes uint32 // 0 if threads are not followed
	disks      bool
	reason     string // why nothing traces
	lacks      bpf.Refusals
}

// append adds the content of an answer to its header: as much as an answer holds.
func (a *content) append(b []byte, o op) []byte {
	a.failed, a.files = min(a.failed, maxErrno), min(a.files, maxOpenFiles)
	a.open = a.open[:min(len(a.open), maxOpenFiles)]
	a.models.Listening = min(a.models.Listening, maxListening)
	c := codec{rest: b}
	a.fields(&c, o)
	return c.rest
}

// parse accepts exactly what append makes.
func (a *content) parse(body []byte, o op) error {
	c := codec{reads: true, rest: body}
	a.fields(&c, o)
	return c.end()
}

// fields writes or reads all.
func (a *content) fields(c *codec, o op) {
	switch o {
	case opBytes:
		list(c, &a.bytes, 0, maxKeys, c.bytes)
	case opTrace:
		a.traced(c)
	default:
		c.errno(&a.failed)
	}
	switch o {
	case opFiles:
		num(c, 2, &a.files, 0, maxOpenFiles)
		list(c, &a.open, 0, maxOpenFiles, c.openFile)
	case opSame:
		c.flags(&a.yes)
	case opModels:
		num(c, 2, &a.models.Listening, 0, maxListening)
		list(c, &a.models.List, 0, process.MaxFiles, c.modelFile)
	case opDevice:
		c.flags(&a.yes)
		num(c, 2, &a.files, 0, maxOpenFiles)
		c.require(!a.yes || a.failed == 0)
	}
}

func (a *content) traced(c *codec) {
	num(c, 4, &a.handle, 0, math.MaxUint32)
	num(c, 4, &a.eventBytes, 0, maxMap)
	c.flags(&a.disks)
	if a.handle == 0 {
		c.require(a.eventBytes == 0 && !a.disks)
		c.text(&a.reason, maxReason)
		return
	}
	list(c, (*[]bpf.Refusal)(&a.lacks), 0, maxRefusals, func(one *bpf.Refusal) {
		why := ""
		if !c.reads {
			why = one.Why.Error()
		}
		c.text(&one.What, maxReason)
		c.text(&why, maxReason)
		if c.reads {
			one.Why = errors.New(why)
		}
	})
}

// maps is how many descriptors go with the answer.
func (a *content) maps() (n int) {
	if a.eventBytes > 0 {
		n += 2
	}
	if a.disks {
		n += 2
	}
	return n
}

// ofModels returns the files of models among others, as many as an answer holds. A helper gives away no other name.
func ofModels(all []process.File) (list []process.File) {
	size := headerBytes + 4
	for _, f := range all {
		if f.Path == "" || len(f.Path) > process.MaxFilePath || !process.OfModel(f.Path) ||
			size+modelFileBytes+len(f.Path) > maxAnswer {
			continue
		}
		size += modelFileBytes + len(f.Path)
		list = append(list, f)
	}
	return list[:min(len(list), process.MaxFiles)]
}

// codec writes what its methods are given, or reads it into that: so a frame is described once. After the first fault
// it reads zeros.
type codec struct {
	reads bool
	rest  []byte // written, or not read yet
	bad   bool
}

func (c *codec) fail() { c.bad, c.rest = true, nil }

func (c *codec) require(ok bool) {
	if c.reads && !ok {
		c.fail()
	}
}

// end returns an error for a frame that was too short, too long or wrong.
func (c *codec) end() error {
	if c.bad || len(c.rest) > 0 {
		return errFrame
	}
	return nil
}

// num is a number of so many bytes. It is read only within bounds.
func num[T ~int | ~int64 | ~uint8 | ~uint32 | ~uint64 | ~uintptr](c *codec, size int, v *T, least, most uint64) {
	var whole [8]byte
	if !c.reads {
		binary.LittleEndian.PutUint64(whole[:], uint64(*v))
		c.rest = append(c.rest, whole[:size]...)
		return
	}
	if *v = 0; len(c.rest) < size {
		c.fail()
		return
	}
	copy(whole[:size], c.rest)
	n := binary.LittleEndian.Uint64(whole[:])
	if c.rest = c.rest[size:]; n < least || n > most {
		c.fail()
		return
	}
	*v = T(n)
}

// list is the rest of a frame: from least to most values.
func list[T any](c *codec, all *[]T, least, most int, each func(*T)) {
	if !c.reads {
		for i := range *all {
			each(&(*all)[i])
		}
		return
	}
	for len(c.rest) > 0 && len(*all) < most {
		*all = append(*all, *new(T))
		each(&(*all)[len(*all)-1]) // in its place: a value of its own would be allocated
	}
	c.require(len(*all) >= least)
}

// flags is a byte with a bit for each truth, the lowest first.
func (c *codec) flags(all ...*bool) {
	var bits uint8
	for i, is := range all {
		if *is {
			bits |= 1 << i
		}
	}
	num(c, 1, &bits, 0, 1<<len(all)-1)
	for i, is := range all {
		*is = bits&(1<<i) != 0
	}
}

// text is one that is not empty. A longer one is cut.
func (c *codec) text(s *string, most int) {
	n := min(len(*s), most)
	num(c, 2, &n, 1, uint64(most))
	switch {
	case !c.reads:
		c.rest = append(c.rest, (*s)[:n]...)
	case n > len(c.rest):
		c.fail()
	default:
		*s, c.rest = string(c.rest[:n]), c.rest[n:]
	}
}

func (c *codec) pid(pid *int) { num(c, 4, pid, 1, maxPID) }

func (c *codec) errno(number *syscall.Errno) { num(c, 2, number, 0, maxErrno) }

func (c *codec) key(key *process.Key) {
	c.pid(&key.PID)
	num(c, 8, &key.Start, 0, math.MaxUint64)
}

func (c *codec) bytes(b *process.Bytes) {
	c.errno(&b.Err)
	for _, n := range [...]*uint64{&b.Read, &b.Chars, &b.Write} {
		num(c, 8, n, 0, math.MaxUint64)
	}
}

func (c *codec) openFile(f *process.OpenFile) {
	num(c, 4, &f.Mount, 0, math.MaxInt32)
	num(c, 4, &f.Inode, 0, math.MaxUint32)
	num(c, 8, &f.Pipe, 0, math.MaxUint64)
	c.flags(&f.Reads, &f.Writes, &f.Stays, &f.Direct)
}

func (c *codec) modelFile(f *process.File) {
	fd := f.FD + 1
	num(c, 4, &fd, 0, maxPID)
	f.FD = fd - 1
	for _, n := range [...]*int64{&f.Size, &f.Offset, &f.Mapped} {
		num(c, 8, n, 0, maxFile)
	}
	c.flags(&f.Write)
	c.text(&f.Path, process.MaxFilePath)
	c.require(strings.HasPrefix(f.Path, "/") && !strings.ContainsRune(f.Path, 0) && process.OfModel(f.Path))
}

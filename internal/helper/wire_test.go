package helper

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"syscall"
	"testing"

	"github.com/stallspan/stallspan/internal/source/process"
)

var questions = []question{
	{op: opBytes, number: 1, keys: []process.Key{{PID: 1}, {PID: maxPID, Start: math.MaxUint64}}},
	{op: opBytes, number: 2, keys: slices.Repeat([]process.Key{{PID: 7, Start: 8}}, maxKeys)},
	{op: opFiles, number: math.MaxUint32, keys: []process.Key{{PID: 20, Start: 30}}, from: 65535, limit: 1},
	{op: opSame, number: 6, keys: []process.Key{{PID: 20, Start: 30}, {PID: 21, Start: 31}}},
	{op: opModels, number: 7, keys: []process.Key{{PID: 20, Start: 30}}, models: process.FilesWanted{Maps: true}},
	{op: opModels, number: 8, keys: []process.Key{{PID: 20}}, models: process.FilesWanted{Maps: true, Sockets: true}},
	{op: opDevice, number: 9, keys: []process.Key{{PID: 20, Start: 30}}, device: 0x1fd00},
}

func TestQuestions(t *testing.T) {
	for i := range questions {
		want := &questions[i]
		frame := want.append(nil)
		if len(frame) > maxQuestion {
			t.Errorf("%d: got %d bytes, want at most %d", want.op, len(frame), maxQuestion)
		}
		var got question
		if err := got.parse(frame); err != nil {
			t.Errorf("%d: got %v", want.op, err)
			continue
		}
		if !bytes.Equal(got.append(nil), frame) {
			t.Errorf("%d: got %+v, want %+v", want.op, got, want)
		}
		for cut := range len(frame) { // shorter, and with a whole item less it may be right again
			err := got.parse(frame[:cut])
			if err == nil && !bytes.Equal(got.append(nil), frame[:cut]) {
				t.Errorf("%d: cut to %d bytes it is accepted as %+v", want.op, cut, got)
			}
		}
		if err := got.parse(append(slices.Clone(frame), 0)); err == nil {
			t.Errorf("%d: with a byte more it is accepted", want.op)
		}
	}
}

// What is wrong about a frame ends the helper.
func TestWrongQuestions(t *testing.T) {
	key := func(pid uint32) []byte {
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(nil, pid), 5)
	}
	frame := func(o op, parts ...[]byte) []byte { return append(header(nil, o, 1), bytes.Join(parts, nil)...) }
	for name, wrong := range map[string][]byte{
		"nothing":                {},
		"half a header":          {Version, byte(opBytes), 0},
		"another version":        append([]byte{Version + 1}, frame(opBytes, key(1))[1:]...),
		"no operation":           frame(0, key(1)),
		"unknown operation":      frame(opEnd, key(1)),
		"hello":                  hello(1, 2),
		"ended":                  ended("x"),
		"bytes of nothing":       frame(opBytes),
		"bytes of too many":      frame(opBytes, bytes.Repeat(key(1), maxKeys+1)),
		"process 0":              frame(opBytes, key(0)),
		"process beyond all":     frame(opBytes, key(maxPID+1)),
		"negative process":       frame(opBytes, key(math.MaxUint32)),
		"half a key":             frame(opBytes, key(1), key(1)[:5]),
		"a path":                 frame(opSame, []byte("/etc/shadow/////////////")),
		"files without a limit":  frame(opFiles, key(1), []byte{0, 0, 0, 0}),
		"unknown files":          frame(opModels, key(1), []byte{4}),
		"a device of no process": frame(opDevice, []byte{1, 0, 0, 0, 0, 0, 0, 0}),
		"half a device":          frame(opDevice, key(1), []byte{1, 0, 0, 0}),
		"files of a path":        frame(opModels, key(1), []byte{0}, []byte("/etc")),
	} {
		s := &server{reader: noReader{t}}
		if got, err := s.answer(wrong); err == nil {
			t.Errorf("%s: got the answer %x, want an error", name, got)
		}
	}
}

// noReader must not be asked.
type noReader struct{ testing.TB }

func (r noReader) Bytes([]process.Key, []process.Bytes) error {
	r.Error("it asks for bytes")
	return nil
}

func (r noReader) Files(process.Key, int, int) ([]process.OpenFile, int, error) {
	r.Error("it asks for files")
	return nil, 0, nil
}

func (r noReader) SameProgram(process.Key, process.Key) (bool, error) {
	r.Error("it asks for programs")
	return false, nil
}

func (r noReader) HasDevice(process.Key, uint64) (bool, int, error) {
	r.Error("it asks for a device")
	return false, 0, nil
}

func (r noReader) ModelFiles(process.Key, process.FilesWanted) (process.Files, error) {
	r.Error("it asks for files")
	return process.Files{}, nil
}

// models are files of models: one that is open, and one that is mapped.
var models = process.Files{Listening: 2, List: []process.File{
	{FD: 7, Path: "/m/a.gguf", Size: 3 << 30, Offset: 4, Write: true},
	{FD: -1, Path: "/m/b.safetensors", Size: 1 << 40, Mapped: 1 << 40},
}}

// A helper says of no file but a model's that it is open, and an agent believes no other thing.
func TestAnswersAboutFiles(t *testing.T) {
	with := process.Files{Listening: 2}
	with.List = append(append(with.List, process.File{FD: 3, Path: "/home/u/diary.txt"}), models.List...)
	got, failed, err := parseModels(appendModels(nil, with, syscall.ESRCH))
	if err != nil || failed != syscall.ESRCH || !reflect.DeepEqual(got, models) {
		t.Errorf("got %+v, %v, %v; want %+v", got, failed, err, models)
	}
	long := process.Files{List: slices.Repeat(models.List, 2*process.MaxFiles)}
	if frame := appendModels(header(nil, opModels, 1), long, 0); len(frame) > maxAnswer {
		t.Errorf("many files: got %d bytes, want %d at most", len(frame), maxAnswer)
	}
	good := appendModels(nil, models, 0)
	for name, bad := range map[string][]byte{
		"another file":     bytes.Replace(good, []byte("a.gguf"), []byte("passwd"), 1),
		"a relative path":  bytes.Replace(good, []byte("/m/a.gguf"), []byte("m//a.gguf"), 1),
		"a zero in a path": bytes.Replace(good, []byte("/m/a.gguf"), []byte("/m\x00a.gguf"), 1),
		"cut":              good[:len(good)-1],
	} {
		if got, _, err := parseModels(bad); err == nil {
			t.Errorf("%s: got %+v, want an error", name, got)
		}
	}
}

func TestAnswers(t *testing.T) {
	list := []process.Bytes{{Read: 1, Chars: 2, Write: math.MaxUint64}, {Err: syscall.EACCES}}
	got := make([]process.Bytes, 2)
	if err := parseBytes(appendBytes(nil, list), got); err != nil || !slices.Equal(got, list) {
		t.Errorf("bytes: got %v, %v; want %v", got, err, list)
	}
	if err := parseBytes(appendBytes(nil, list), got[:1]); err == nil {
		t.Error("bytes of two processes for one: got no error")
	}
	open := []process.OpenFile{{Mount: 3, Inode: 1<<32 - 1},
		{Mount: 4, Pipe: math.MaxUint64, Ends: process.Ends{Reads: true, Stays: true}},
		{Mount: 4, Pipe: 5, Ends: process.Ends{Writes: true}}}
	gotOpen, files, failed, err := parseFiles(appendFiles(nil, open, 9, 0))
	if err != nil || files != 9 || failed != 0 || !slices.Equal(gotOpen, open) {
		t.Errorf("files: got %v, %d, %v, %v; want %v", gotOpen, files, failed, err, open)
	}
	if got, _, _, err := parseFiles(appendFiles(nil, slices.Repeat(open, maxOpenFiles), maxOpenFiles, 0)); err != nil ||
		len(got) != maxOpenFiles {
		t.Errorf("many files: got %d, %v; want %d", len(got), err, maxOpenFiles)
	}
	for _, want := range []bool{true, false} {
		if got, failed, err := parseSame(appendSame(nil, want, 0)); err != nil || failed != 0 || got != want {
			t.Errorf("same: got %v, %v, %v; want %v", got, failed, err, want)
		}
	}
}

// FuzzQuestion has the helper accept exactly what the agent sends.
func FuzzQuestion(f *testing.F) {
	for i := range questions {
		f.Add(questions[i].append(nil))
	}
	f.Add(hello(1, 2))
	f.Fuzz(func(t *testing.T, frame []byte) {
		var q question
		if q.parse(frame) != nil {
			return
		}
		if got := q.append(nil); !bytes.Equal(got, frame) {
			t.Errorf("%x is accepted as %+v, which is %x", frame, q, got)
		}
	})
}

// FuzzAnswer has the agent accept exactly what the helper sends.
func FuzzAnswer(f *testing.F) {
	f.Add(uint8(opBytes), appendBytes(nil, []process.Bytes{{Read: 1, Chars: 2, Write: 3}, {Err: syscall.EACCES}}))
	f.Add(uint8(opFiles), appendFiles(nil, []process.OpenFile{{Mount: 1}, {Mount: 2, Pipe: 7,
		Ends: process.Ends{Writes: true, Stays: true}}}, 3, 0))
	f.Add(uint8(opSame), appendSame(nil, true, 0))
	f.Add(uint8(opModels), appendModels(nil, models, 0))
	f.Add(uint8(opDevice), appendDevice(nil, true, 7, 0))
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		var got []byte
		var err error
		switch op(kind) {
		case opBytes:
			list := make([]process.Bytes, len(body)/bytesBytes)
			err = parseBytes(body, list)
			got = appendBytes(nil, list)
		case opFiles:
			var list []process.OpenFile
			var files int
			var failed syscall.Errno
			list, files, failed, err = parseFiles(body)
			got = appendFiles(nil, list, files, failed)
		case opSame:
			var same bool
			var failed syscall.Errno
			same, failed, err = parseSame(body)
			got = appendSame(nil, same, failed)
		case opDevice:
			var open bool
			var files int
			var failed syscall.Errno
			open, files, failed, err = parseDevice(body)
			got = appendDevice(nil, open, files, failed)
		case opModels:
			var all process.Files
			var failed syscall.Errno
			all, failed, err = parseModels(body)
			got = appendModels(nil, all, failed)
		default:
			return
		}
		if err == nil && !bytes.Equal(got, body) {
			t.Errorf("%d: %x is accepted as %x", kind, body, got)
		}
	})
}

func TestSplit(t *testing.T) {
	o, number, body, err := split(append(header(nil, opSame, 77), 1, 2))
	if err != nil || o != opSame || number != 77 || !reflect.DeepEqual(body, []byte{1, 2}) {
		t.Errorf("got %v, %d, %v, %v", o, number, body, err)
	}
}

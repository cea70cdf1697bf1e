package helper

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"slices"
	"syscall"
	"testing"

	"github.com/stallspan/stallspan/internal/source/bpf"
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
		"a question to a tracer": (&question{op: opFlush, handle: 1}).append(nil),
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
	var got content
	sent := content{failed: syscall.ESRCH, models: process.Files{Listening: 2, List: ofModels(with.List)}}
	err := got.parse(sent.append(nil, opModels), opModels)
	if err != nil || got.failed != syscall.ESRCH || !reflect.DeepEqual(got.models, models) {
		t.Errorf("got %+v, %v; want %+v", got, err, models)
	}
	long := content{models: process.Files{List: ofModels(slices.Repeat(models.List, 2*process.MaxFiles))}}
	if frame := long.append(header(nil, opModels, 1), opModels); len(frame) > maxAnswer {
		t.Errorf("many files: got %d bytes, want %d at most", len(frame), maxAnswer)
	}
	if err := got.parse((&content{models: with}).append(nil, opModels), opModels); err == nil {
		t.Errorf("a file of no model: got %+v, want an error", got.models)
	}
	good := (&content{models: models}).append(nil, opModels)
	for name, bad := range map[string][]byte{
		"another file":     bytes.Replace(good, []byte("a.gguf"), []byte("passwd"), 1),
		"a relative path":  bytes.Replace(good, []byte("/m/a.gguf"), []byte("m//a.gguf"), 1),
		"a zero in a path": bytes.Replace(good, []byte("/m/a.gguf"), []byte("/m\x00a.gguf"), 1),
		"cut":              good[:len(good)-1],
	} {
		if err := got.parse(bad, opModels); err == nil {
			t.Errorf("%s: got %+v, want an error", name, got.models)
		}
	}
}

func TestAnswers(t *testing.T) {
	again := func(o op, a content) (got content) {
		t.Helper()
		if err := got.parse(a.append(nil, o), o); err != nil {
			t.Errorf("%d: got %v, want %+v", o, err, a)
		}
		return got
	}
	list := []process.Bytes{{Read: 1, Chars: 2, Write: math.MaxUint64}, {Err: syscall.EACCES}}
	if got := again(opBytes, content{bytes: list}); !slices.Equal(got.bytes, list) {
		t.Errorf("bytes: got %v, want %v", got.bytes, list)
	}
	open := []process.OpenFile{{Mount: 3, Inode: 1<<32 - 1},
		{Mount: 4, Pipe: math.MaxUint64, Ends: process.Ends{Reads: true, Stays: true}},
		{Mount: 4, Pipe: 5, Ends: process.Ends{Writes: true}}}
	if got := again(opFiles, content{open: open, files: 9}); got.files != 9 || got.failed != 0 ||
		!slices.Equal(got.open, open) {
		t.Errorf("files: got %+v, want %v", got, open)
	}
	many := content{open: slices.Repeat(open, maxOpenFiles), files: 2 * maxOpenFiles}
	if got := again(opFiles, many); len(got.open) != maxOpenFiles || got.files != maxOpenFiles {
		t.Errorf("many files: got %d of %d, want %d", len(got.open), got.files, maxOpenFiles)
	}
	for _, want := range []bool{true, false} {
		if got := again(opSame, content{yes: want}); got.failed != 0 || got.yes != want {
			t.Errorf("same: got %+v, want %v", got, want)
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
	for o, a := range map[op]*content{
		opBytes: {bytes: []process.Bytes{{Read: 1, Chars: 2, Write: 3}, {Err: syscall.EACCES}}},
		opFiles: {files: 3, open: []process.OpenFile{{Mount: 1}, {Mount: 2, Pipe: 7,
			Ends: process.Ends{Writes: true, Stays: true}}}},
		opSame: {yes: true}, opModels: {models: models}, opDevice: {yes: true, files: 7},
		opTrace: {handle: 1, lacks: bpf.Refusals{{What: "one", Why: errors.New("needs more")}}},
	} {
		f.Add(uint8(o), a.append(nil, o))
	}
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		var a content
		if a.parse(body, op(kind)) != nil {
			return
		}
		if got := a.append(nil, op(kind)); !bytes.Equal(got, body) {
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

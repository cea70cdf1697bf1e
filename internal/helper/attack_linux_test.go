//go:build amd64 || arm64

package helper

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/trust"
)

// frames are what an attacker got: what came for each of its frames.
type frames [][]byte

// actAsAttacker is an agent that is not itself any more: it sends each argument, in hexadecimal, as a frame, and reads
// until an answer, or until the next helper runs.
func actAsAttacker() error {
	if err := Separate(trust.None); err != nil {
		return err
	}
	s, err := left()
	if err != nil {
		return err
	}
	fd := s.Sockets["read"]
	limit := unix.NsecToTimeval(int64(startWait))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return err
	}
	var got frames
	buf := make([]byte, 1<<16)
	if n, _, err := unix.Recvfrom(fd, buf, 0); err != nil || n == 0 || buf[1] != byte(opHello) {
		return fmt.Errorf("got %x, %w; want a hello", buf[:max(n, 0)], err)
	}
	for _, arg := range os.Args[1:] {
		var frame []byte
		if _, err := fmt.Sscanf(arg, "%x", &frame); err != nil {
			return err
		}
		if err := unix.Sendto(fd, frame, 0, nil); err != nil {
			return err
		}
		for {
			n, _, err := unix.Recvfrom(fd, buf, 0)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				return err
			}
			got = append(got, bytes.Clone(buf[:n]))
			if n == 0 || buf[1] != byte(opEnded) {
				break
			}
		}
	}
	return json.NewEncoder(os.Stdout).Encode(got)
}

// A damaged frame ends the helper. The agent hears of it, and the next helper answers on the same socket.
func TestDamagedFrames(t *testing.T) {
	pid := victim(t, "sleep", "600")
	right := question{op: opBytes, number: 9, keys: []process.Key{{PID: pid}}}
	good := fmt.Sprintf("%x", right.append(nil))
	var got frames
	long := fmt.Sprintf("%x", bytes.Repeat([]byte{Version, 3}, 8<<10))
	separated(t, "attacker", []string{good, "ffff", good, long, good}, &got)
	want := []op{opBytes, opEnded, opHello, opBytes, opEnded, opHello, opBytes}
	if len(got) != len(want) {
		t.Fatalf("got %d frames, want %d", len(got), len(want))
	}
	for i, frame := range got {
		if op(frame[1]) != want[i] {
			t.Errorf("frame %d: got %d, want %d", i, frame[1], want[i])
		}
		switch want[i] {
		case opEnded:
			if !bytes.Equal(frame, ended("")) {
				t.Errorf("frame %d: got %x, want %x", i, frame, ended(""))
			}
		case opBytes:
			var a content
			if err := a.parse(frame[headerBytes:], opBytes); err != nil || len(a.bytes) != 1 || a.bytes[0].Chars == 0 {
				t.Errorf("frame %d: got %+v, %v; want bytes of the victim", i, a.bytes, err)
			}
		}
	}
}

// Whatever an agent asks, the answers have numbers of the fixed form, names of models' files, and no other text of the
// victim's.
func TestAnswersAreNumbers(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "hunter2")
	if err := os.WriteFile(secret, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(secret)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	weights, err := os.Create(filepath.Join(t.TempDir(), "a.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = weights.Close() }()
	device, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = device.Close() }()
	const null = 1<<8 | 3
	pid := os.Getpid()
	of, _ := process.StatOf("/", pid)
	key := process.Key{PID: pid, Start: of.Start}
	d := process.NewDirect("/proc")
	s := &server{reader: d}
	for _, q := range []question{
		{op: opBytes, keys: []process.Key{key, {PID: pid}, {PID: 1}}},
		{op: opFiles, keys: []process.Key{key}, limit: maxOpenFiles},
		{op: opSame, keys: []process.Key{key, key}},
		{op: opModels, keys: []process.Key{key}, models: process.FilesWanted{Maps: true, Sockets: true}},
		{op: opDevice, keys: []process.Key{key}, device: null},
	} {
		frame, err := s.answer(q.append(nil))
		if err != nil {
			t.Fatalf("%d: got %v", q.op, err)
		}
		if len(frame) > maxAnswer || bytes.Contains(frame, []byte("hunter2")) ||
			bytes.Contains(frame, []byte("helper")) {
			t.Errorf("%d: got %q, want numbers", q.op, frame)
		}
		_, _, body, _ := split(frame)
		var a content
		ok := a.parse(body, q.op) == nil && a.failed == 0
		switch q.op {
		case opBytes:
			ok = ok && len(a.bytes) == 3 && a.bytes[0].Chars > 0 && a.bytes[0].Err == 0
		case opFiles:
			ok = ok && a.files >= len(a.open) && len(a.open) > 0
		case opSame:
			ok = ok && a.yes
		case opDevice:
			ok = ok && a.yes && a.files > 0
		case opModels:
			all := a.models
			ok = ok && len(all.List) == 1 && all.List[0].Path == weights.Name() && all.List[0].Write
		}
		if !ok {
			t.Errorf("%d: got %x, want the form of its answer", q.op, frame)
		}
	}
	other := process.Key{PID: pid, Start: of.Start + 1}
	frame, err := s.answer((&question{op: opBytes, keys: []process.Key{other}}).append(nil))
	var a content
	if err != nil || a.parse(frame[headerBytes:], opBytes) != nil || len(a.bytes) != 1 || a.bytes[0].Err != syscall.ESRCH {
		t.Errorf("another process with the PID: got %+v, %v; want %v", a.bytes, err, syscall.ESRCH)
	}
}

// FuzzServe gives the helper any frame. It ends, or sends the fixed form about this process.
func FuzzServe(f *testing.F) {
	for i := range questions {
		f.Add(questions[i].append(nil))
	}
	d := process.NewDirect("/proc")
	s := &server{reader: d}
	f.Fuzz(func(t *testing.T, frame []byte) {
		answer, err := s.answer(frame)
		if err != nil {
			return
		}
		if len(answer) > maxAnswer || !bytes.Equal(answer[:headerBytes], frame[:headerBytes]) {
			t.Errorf("%x: got %d bytes, %x; want the question's header", frame, len(answer), answer[:headerBytes])
		}
	})
}

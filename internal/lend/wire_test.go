package lend

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stallspan/stallspan/internal/sample"
)

// full sets every field of an event to another value.
func full(t testing.TB, at time.Duration) sample.ThreadEvent {
	t.Helper()
	var e sample.ThreadEvent
	v := reflect.ValueOf(&e).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(1000 + i))
		case reflect.Uint8, reflect.Uint64:
			f.SetUint(uint64(1 + i))
		case reflect.Bool:
			f.SetBool(true)
		case reflect.String:
			f.SetString(v.Type().Field(i).Name)
		default:
			t.Fatalf("field %s has a type without an encoding: add it to fields", v.Type().Field(i).Name)
		}
	}
	e.At = at
	return e
}

// A new field of the contract that is not encoded fails here.
func TestFrameHasAllFields(t *testing.T) {
	const sender, here = 90 * time.Second, 20 * time.Second // the clocks' origins
	one := full(t, 5*time.Second)
	bare := sample.ThreadEvent{At: 6 * time.Second, Kind: sample.ThreadIn, TID: 8, PID: 7}
	fault := sample.ThreadEvent{At: 7 * time.Second, Kind: sample.ThreadOut, TID: 8, PID: 7, Syscall: sample.NoSyscall}
	sent := &sample.Schedule{Until: 8 * time.Second, Lost: 3, Events: []sample.ThreadEvent{one, bare, fault}}
	e := encoder{origin: sender}
	frame, err := readFrame(bytes.NewReader(e.encode(sent)), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := decode(frame, here)
	if err != nil {
		t.Fatal(err)
	}
	want := &sample.Schedule{Until: sent.Until + sender - here, Lost: 3}
	for _, event := range sent.Events {
		event.At += sender - here
		if event.Woken != 0 {
			event.Woken += sender - here
			event.From += sender - here
		}
		want.Events = append(want.Events, event)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("got another reading than was sent (-want +got):\n%s", diff)
	}
	if n := reflect.TypeFor[sample.ThreadEvent]().NumField(); n != len(fields)+len(texts)+4 {
		t.Errorf("got %d fields of ThreadEvent, want the %d that are encoded: add the new one to fields, and raise Version",
			n, len(fields)+len(texts)+4)
	}
}

// A frame is never longer than its bound. The events without room are lost, and counted.
func TestFrameIsBounded(t *testing.T) {
	s := &sample.Schedule{Until: time.Hour, Lost: 1}
	for i := range 300_000 {
		s.Events = append(s.Events, sample.ThreadEvent{At: time.Duration(i), Kind: sample.ThreadIn, TID: 70000, PID: 70000,
			Peer: strings.Repeat("x", 2*maxText)})
	}
	var e encoder
	b := e.encode(s)
	if len(b) > maxFrame+lengthBytes {
		t.Errorf("got %d bytes, want at most %d", len(b), maxFrame+lengthBytes)
	}
	got, _, err := decode(b[lengthBytes:], 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(got.Events); n == 0 || got.Lost != uint64(len(s.Events)-n)+1 {
		t.Errorf("got %d events and %d lost, want all of %d and one", n, got.Lost, len(s.Events))
	}
	if n := len(got.Events[0].Peer); n != maxText {
		t.Errorf("got a text of %d bytes, want %d", n, maxText)
	}
}

func TestDamagedFrames(t *testing.T) {
	var e encoder
	s := &sample.Schedule{Until: time.Second, Events: []sample.ThreadEvent{full(t, time.Second)}}
	whole := bytes.Clone(e.encode(s))
	for n := range len(whole) - lengthBytes {
		if _, _, err := decode(whole[lengthBytes:lengthBytes+n], 0); !errors.Is(err, errFrame) {
			t.Errorf("the first %d bytes: got %v, want %v", n, err, errFrame)
		}
	}
	if _, err := readFrame(bytes.NewReader([]byte{0xff, 0xff, 0xff, 0xff}), nil); !errors.Is(err, errFrame) {
		t.Errorf("a frame of 4 GiB: got %v, want %v", err, errFrame)
	}
	if _, err := readFrame(bytes.NewReader(whole[:len(whole)-1]), nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a frame that ends early: got %v, want %v", err, io.ErrUnexpectedEOF)
	}
	many := binary.AppendUvarint([]byte{0, 0}, 1<<40) // a count that would take all memory
	if _, _, err := decode(many, 0); !errors.Is(err, errFrame) {
		t.Errorf("2^40 events: got %v, want %v", err, errFrame)
	}
}

func FuzzDecode(f *testing.F) {
	var e encoder
	f.Add(bytes.Clone(e.encode(&sample.Schedule{Until: 1, Events: []sample.ThreadEvent{full(f, 9)}}))[lengthBytes:])
	f.Add([]byte{0, 0, 1, 1, 2, 3, 4, 0})
	f.Fuzz(func(t *testing.T, frame []byte) {
		s, _, err := decode(frame, 0)
		if err != nil {
			return
		}
		var again encoder
		b := again.encode(s)
		back, _, err := decode(b[lengthBytes:], 0)
		if err != nil || len(back.Events) != len(s.Events) || back.Until != s.Until {
			t.Errorf("got %v, %v; want what was decoded: %v", back, err, s)
		}
	})
}

func BenchmarkFrame(b *testing.B) {
	s := &sample.Schedule{Until: time.Second}
	for i := range 1000 {
		s.Events = append(s.Events,
			sample.ThreadEvent{At: time.Duration(i) * 50 * time.Microsecond, Kind: sample.ThreadOut, TID: 70001, PID: 70000,
				State: sample.StateAsleep, Syscall: 202, Detail: 0x7f0012345678},
			sample.ThreadEvent{At: time.Duration(i)*50*time.Microsecond + 20000, Kind: sample.ThreadIn, TID: 70001, PID: 70000,
				Woken: time.Duration(i)*50*time.Microsecond + 10000, Waker: 70002, WakerPID: 70000, WakerKind: sample.UserThread})
	}
	var e encoder
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e.encode(s)
		}
		b.ReportMetric(float64(len(e.frame))/float64(len(s.Events)), "B/event")
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(s.Events)), "ns/event")
	})
	frame := e.encode(s)[lengthBytes:]
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := decode(frame, 0); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(s.Events)), "ns/event")
	})
}

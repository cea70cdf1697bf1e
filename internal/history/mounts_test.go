package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

func mountsAt(at time.Duration, count int, done uint64) *sample.Sample {
	s := &sample.Sample{At: sample.Stamp{Mono: at}, MountsRead: true}
	for i := range count {
		s.MountCounters = append(s.MountCounters, sample.MountCounters{
			ID: fmt.Sprint("server:/ /", i), Read: sample.MountOperations{Operations: done, Bytes: done << 20},
			WaitingTime: time.Duration(done) * time.Second, Has: sample.HasMountOperations | sample.HasMountWaiting,
		})
	}
	return s
}

// Mounts have bounded room, which nothing takes without one.
func TestRoomOfMounts(t *testing.T) {
	h, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	before := h.Bytes()
	for i := range 3 {
		if err := h.Append(mountsAt(time.Duration(i+1)*time.Second, 100, uint64(i))); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(h.Known(MountReads)); got != sample.MaxMounts {
		t.Errorf("got %d mounts, want %d", got, sample.MaxMounts)
	}
	perMount := (h.Bytes() - before - 8*DefaultTiers()[0].Rows) / sample.MaxMounts
	if want := 18 * 600 * 8; perMount != want {
		t.Errorf("got %d bytes a mount, want %d", perMount, want)
	}
}

// Readings are kept for ten minutes. A time before that is not known, and never taken for a later one.
func TestMountsOfOldWindows(t *testing.T) {
	h, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1200 {
		if err := h.Append(mountsAt(time.Duration(i)*time.Second, 1, uint64(i))); err != nil {
			t.Fatal(err)
		}
	}
	at := func(seconds int) Point { return Point{At: time.Duration(seconds) * time.Second} }
	key := Key{MountReads, "server:/ /0"}
	if d, ok := h.Between(key, at(700), at(1100)); !ok || d.Value != 400 {
		t.Errorf("the last minutes: got %+v, %v, want 400", d, ok)
	}
	if d, ok := h.Between(key, at(300), at(1100)); ok {
		t.Errorf("from 15 minutes ago: got %+v, want nothing", d)
	}
}

// A mount that was unmounted and mounted again counts from zero.
func TestMountAgain(t *testing.T) {
	h, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i, done := range []uint64{100, 150, 10, 20} {
		if err := h.Append(mountsAt(time.Duration(i+1)*time.Second, 1, done)); err != nil {
			t.Fatal(err)
		}
	}
	d, ok := h.Between(Key{MountReads, "server:/ /0"}, Point{At: time.Second}, Point{At: 4 * time.Second})
	if !ok || d.Value != 70 || !d.Reset {
		t.Errorf("got %+v, %v, want 70 and a reset", d, ok)
	}
}

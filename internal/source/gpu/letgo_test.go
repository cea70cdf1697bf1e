package gpu

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// sleeper is the root of a machine whose kernel may suspend its NVIDIA GPU.
type sleeper struct {
	t    *testing.T
	root string
}

func newSleeper(t *testing.T, control, status string) *sleeper {
	t.Helper()
	s := &sleeper{t, t.TempDir()}
	s.write("vendor", "0x10de")
	s.write("class", "0x030200")
	s.write("power/control", control)
	s.write("power/runtime_status", status)
	return s
}

func (s *sleeper) write(file, text string) {
	s.t.Helper()
	s.put(filepath.Join("sys/bus/pci/devices/0000:01:00.0", file), text+"\n")
}

func (s *sleeper) put(path, text string) {
	s.t.Helper()
	path = filepath.Join(s.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// A GPU that sleeps is not woken. A session ends after a minute without a process, and another begins when a program
// opens a device, or wakes the GPU.
func TestSleepingGPU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, d := newSleeper(t, "auto", "suspended"), &fakeDriver{}
		m.put("dev/nvidia0", "")
		g := d.gpu("a", 0.3)
		p := startRunOn(t.Context(), d, &machine{root: m.root})
		defer p.stop()
		want := func(when string, opens, closes int) {
			t.Helper()
			synctest.Wait()
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.opens != opens || d.closes != closes {
				t.Fatalf("%s: got %d sessions and %d ends, want %d and %d", when, d.opens, d.closes, opens, closes)
			}
		}
		time.Sleep(time.Hour)
		want("asleep", 0, 0)
		m.write("power/runtime_status", "active")
		time.Sleep(10 * time.Minute)
		want("in use", 1, 0)
		d.set(func() { g.unused = true })
		time.Sleep(restAfter - time.Second)
		want("unused for less than a minute", 1, 0)
		time.Sleep(30 * time.Second)
		want("unused for a minute", 1, 1)
		if got := p.last().GPUs[0].Status; got != sample.GPUAsleep {
			t.Errorf("got status %q, want %q", got, sample.GPUAsleep)
		}
		time.Sleep(time.Hour)
		want("no program has opened it", 1, 1)
		if _, err := os.ReadFile(filepath.Join(m.root, "dev/nvidia0")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		want("a program has opened it", 2, 1)
		if got := p.last().GPUs[0].Status; got != sample.GPUWorks {
			t.Errorf("got status %q, want that it works", got)
		}
		time.Sleep(2 * restAfter)
		want("that program uses no GPU", 2, 2)
		m.write("power/runtime_status", "suspended")
		time.Sleep(time.Hour)
		want("asleep again", 2, 2)
		m.write("power/runtime_status", "active")
		time.Sleep(5 * time.Second)
		want("woken", 3, 2)
	})
}

// A GPU that the kernel keeps awake is read without an end.
func TestGPUKeptAwake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		d.gpu("a", 0.3).unused = true
		p := startRunOn(t.Context(), d, &machine{root: newSleeper(t, "on", "active").root})
		time.Sleep(time.Hour)
		p.stop()
		if d.opens != 1 || d.closes != 1 {
			t.Errorf("got %d sessions and %d ends, want 1 and its end", d.opens, d.closes)
		}
	})
}

// No session begins while GPUs are released. It ends although a GPU hangs, once that call has returned.
func TestRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		g := d.gpu("a", 0.3)
		p := startRun(t.Context(), d)
		defer p.stop()
		time.Sleep(5 * time.Second)
		if err := p.Release(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		if d.sessionsEnded() != 1 {
			t.Errorf("got %d ends of sessions, want 1", d.sessionsEnded())
		}
		time.Sleep(50 * time.Second)
		if got := p.last().GPUs[0].Status; got != sample.GPUReleased || d.sessionsBegun() != 1 {
			t.Errorf("got status %q and %d sessions, want it released and 1", got, d.sessionsBegun())
		}
		time.Sleep(15 * time.Second)
		if got := p.last().GPUs[0].Status; got != sample.GPUWorks || d.sessionsBegun() != 2 {
			t.Errorf("after a minute: got status %q and %d sessions, want it working and 2", got, d.sessionsBegun())
		}

		hang := make(chan struct{})
		d.set(func() { g.wait = hang })
		time.Sleep(5 * time.Second)
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Release(soon, time.Hour); !errors.Is(err, errNotClosed) || d.sessionsEnded() != 1 {
			t.Errorf("got %v and %d ends, want %v and 1", err, d.sessionsEnded(), errNotClosed)
		}
		d.set(func() { g.wait = nil })
		close(hang)
		if err := p.Release(t.Context(), time.Hour); err != nil || d.sessionsEnded() != 2 {
			t.Errorf("got %v and %d ends, want none and 2", err, d.sessionsEnded())
		}
		if err := p.Release(t.Context(), 0); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Second)
		if got := p.last().GPUs[0].Status; got != sample.GPUWorks || d.sessionsBegun() != 3 {
			t.Errorf("got status %q and %d sessions, want it working and 3", got, d.sessionsBegun())
		}
	})
}

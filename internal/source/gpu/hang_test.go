//go:build linux && cgo

package gpu

import (
	"errors"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// promptly fails where f takes longer than the driver may hold anybody up.
func within5s(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatalf("not within 5 s: %s", what)
	}
}

// A session may hang where it begins and where it ends. Neither holds up those who want one after it, and when the driver
// answers again all sessions are ended that began meanwhile.
func TestHangingSession(t *testing.T) {
	for _, call := range []string{"nvmlInit_v2", "nvmlShutdown"} {
		t.Run(call, func(t *testing.T) {
			library := fakeLibrary(t)
			w := playText(t, "gpu 0\n")
			d, err := newDriver(library)
			if err != nil {
				t.Fatal(err)
			}
			lib := mustLoad(t, d)
			for lib.Shutdown() == nvml.SUCCESS { // sessions that other tests left, whose driver refused to end them
			}
			if call == "nvmlInit_v2" {
				w.Write("gpu 0\nhang call=" + call + "\n")
			}
			_, k, stop := runFake(t)
			if call == "nvmlShutdown" {
				until(t, "a row", func() bool { _, ok := k.last(); return ok })
				w.Write("gpu 0\nhang call=" + call + "\n")
			}
			time.Sleep(200 * time.Millisecond) // the call is made, or the file is seen
			within5s(t, "the first ends", stop)
			for range 2 {
				var stop func()
				within5s(t, "another begins", func() { _, _, stop = runFake(t) })
				time.Sleep(200 * time.Millisecond)
				within5s(t, "it ends", stop)
			}
			w.Write("gpu 0\n")
			_, k, stop = runFake(t)
			until(t, "a row, once the driver answers", func() bool { _, ok := k.last(); return ok })
			within5s(t, "the last ends", stop)
			until(t, "no session is left", func() bool {
				_, err := lib.count()
				return errors.Is(err, codeUninitialized)
			})
		})
	}
}

// mustLoad loads the library without a session.
func mustLoad(t *testing.T, d driver) *library {
	t.Helper()
	l := d.(*library)
	if err := l.load(); err != nil {
		t.Fatal(err)
	}
	return l
}

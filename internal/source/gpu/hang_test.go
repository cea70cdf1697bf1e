//go:build linux && cgo

package gpu

import (
	"errors"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// within5s fails if f takes longer than 5 s.
func within5s(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatalf("got no return within 5 s, want %s", what)
	}
}

// A session may hang at its begin and at its end. Neither blocks later sessions. When the driver responds again, all
// sessions that began meanwhile end.
func TestHangingSession(t *testing.T) {
	for _, call := range []string{"nvmlInit_v2", "nvmlShutdown"} {
		t.Run(call, func(t *testing.T) {
			library := fakeLibrary(t)
			w := playText(t, "gpu 0\n")
			d := newDriver(library)
			lib := mustLoad(t, d)
			for lib.Shutdown() == nvml.SUCCESS { // ends sessions that other tests left because the driver refused
			}
			if call == "nvmlInit_v2" {
				w.Write("gpu 0\nhang call=" + call + "\n")
			}
			_, k, stop := runFake(t)
			if call == "nvmlShutdown" {
				until(t, "a row", func() bool { _, ok := k.last(); return ok })
				w.Write("gpu 0\nhang call=" + call + "\n")
			}
			time.Sleep(200 * time.Millisecond) // until the call is made, or the file is read
			within5s(t, "the end of the first run", stop)
			for range 2 {
				var stop func()
				within5s(t, "the start of another run", func() { _, _, stop = runFake(t) })
				time.Sleep(200 * time.Millisecond)
				within5s(t, "its end", stop)
			}
			w.Write("gpu 0\n")
			_, k, stop = runFake(t)
			until(t, "a row once the driver responds", func() bool { _, ok := k.last(); return ok })
			within5s(t, "the end of the last run", stop)
			until(t, "the end of all sessions", func() bool {
				_, err := lib.count()
				return errors.Is(err, codeUninitialized)
			})
		})
	}
}

// mustLoad loads the library without opening a session.
func mustLoad(t *testing.T, d driver) *library {
	t.Helper()
	l := d.(*library)
	if err := l.load(); err != nil {
		t.Fatal(err)
	}
	return l
}

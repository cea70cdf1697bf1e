//go:build linux && cgo

package monitor

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/test/fixture"
)

// A Collector that reloads its config stops its components and starts others, also with a driver that hangs.
func TestShareWithADriverThatHangs(t *testing.T) {
	config := Config{NVML: fixture.NVML(t)}
	w := fixture.PlayGPU(t, "gpu 0\nhang call=nvmlInit_v2\n")
	t.Setenv("FAKENVML_FILE", w.Path)
	promptly := func(what string, f func()) {
		t.Helper()
		done := make(chan struct{})
		go func() { defer close(done); f() }()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s did not return within 10 s", what)
		}
	}
	for range 2 {
		s := Claim("it", config)
		promptly("Start", func() {
			if _, err := s.Start(); err != nil {
				t.Error(err)
			}
		})
		promptly("Stop", s.Stop)
	}
	w.Write("gpu 0\n")
	s := Claim("it", config)
	m, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	found := func() int { return len(m.readings.History().IDs(history.GPUBusyTime)) }
	for end := time.Now().Add(10 * time.Second); found() != 1; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("once the driver answers the GPUs are %v", m.readings.History().IDs(history.GPUBusyTime))
		}
	}
	s.Stop()
}

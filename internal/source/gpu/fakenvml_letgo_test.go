//go:build linux && cgo

package gpu

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// While GPUs are released, this process has no file of the driver open.
func TestReleasedFiles(t *testing.T) {
	node := filepath.Join(t.TempDir(), "nvidia0")
	t.Setenv("FAKENVML_NODE", node)
	playText(t, "gpu 0 utilization=50\n")
	s, k, _ := runFake(t)
	isOpen := func() bool {
		files, err := filepath.Glob("/proc/self/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(files, func(file string) bool {
			to, _ := os.Readlink(file)
			return to == node
		})
	}
	status := func(want sample.GPUStatus) func() bool {
		return func() bool {
			row, ok := k.last()
			return ok && row.GPUs[0].Status == want
		}
	}
	for range 2 {
		until(t, "the GPU is read", status(sample.GPUWorks))
		if !isOpen() {
			t.Fatal("got no open file of the driver, want one while it is read")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := s.Release(ctx, time.Hour)
		cancel()
		if err != nil || isOpen() {
			t.Fatalf("got %v and open %v, want neither", err, isOpen())
		}
		until(t, "the GPU is released", status(sample.GPUReleased))
		if err := s.Release(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// Probe does not wake a GPU.
func TestProbeOfASleepingGPU(t *testing.T) {
	m := newSleeper(t, "auto", "suspended")
	if _, err := Probe(t.Context(), Options{Library: fakeLibrary(t), Root: m.root}); !errors.Is(err, ErrAsleep) {
		t.Errorf("got %v, want %v", err, ErrAsleep)
	}
}

//go:build linux && cgo

package gpu

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// While GPUs are released, this process has no file of the driver open.
func TestReleasedFiles(t *testing.T) {
	node := os.Getenv("FAKENVML_NODE")
	if node == "" { // sessions of other tests in this process may still be ending
		self := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestReleasedFiles$")
		self.Env = append(os.Environ(), "FAKENVML_NODE="+filepath.Join(t.TempDir(), "nvidia0"))
		if out, err := self.CombinedOutput(); err != nil {
			t.Fatalf("got %v, want no error: %s", err, out)
		}
		return
	}
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

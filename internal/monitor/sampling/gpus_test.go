package sampling

import (
	"context"
	"testing"

	"github.com/stallspan/stallspan/internal/source/gpu"
)

// A missing NVIDIA driver is no problem on a machine without one.
func TestWithoutGPU(t *testing.T) {
	c := &SourceConfig{Root: t.TempDir()}
	for err, want := range map[error]bool{gpu.ErrNoDriver: true, gpu.ErrNotBuilt: true, context.Canceled: false} {
		if got := withoutGPU(c, err); got != want {
			t.Errorf("%v: got %v, want %v", err, got, want)
		}
	}
}

package emulate

import (
	"context"
	"errors"
	"testing"
)

func TestLoadReadsTheWholeModel(t *testing.T) {
	f := prepare(t)
	if err := f.Cold(); err != nil {
		t.Skip(err)
	}
	if err := Load(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if found, of, err := f.cachedOf(f.Model()); err != nil || of != f.ModelBytes() || found < of*95/100 {
		t.Errorf("got %d of %d bytes in the page cache, %v; want the whole model", found, of, err)
	}
}

func TestLoadStopsWhenCancelled(t *testing.T) {
	f := prepare(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Load(ctx, f); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled Load: got %v, want the context's error", err)
	}
}

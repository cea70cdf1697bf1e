package emulate

import (
	"context"
	"errors"
	"hash/crc32"
	"os"
	"testing"
)

func TestLoadReadsTheWholeModel(t *testing.T) {
	f := prepare(t)
	model, err := os.ReadFile(f.Model())
	if err != nil {
		t.Fatal(err)
	}
	want := crc32.Checksum(model, castagnoli)
	done, err := Load(t.Context(), f)
	if err != nil || done.Bytes != f.ModelBytes() || done.Checksum != want {
		t.Errorf("got %+v, %v, want checksum %d", done, err, want)
	}
	if done.Waited <= 0 || done.Waited > done.Total {
		t.Errorf("waited for %v of %v", done.Waited, done.Total)
	}
}

func TestLoadStopsWhenCancelled(t *testing.T) {
	f := prepare(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if done, err := Load(ctx, f); !errors.Is(err, context.Canceled) || done.Bytes != 0 {
		t.Errorf("cancelled Load: got %+v, %v; want no bytes and the context's error", done, err)
	}
}

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
	for _, chunk := range []int{0, -1, 4096, 1<<20 + 1, 64*mib + 1} {
		done, err := Load(t.Context(), f, LoadOptions{Chunk: chunk})
		if err != nil || done.Bytes != f.ModelBytes() || done.Checksum != want {
			t.Errorf("in reads of %d: %+v, want checksum %d, %v", chunk, done, want, err)
		}
		if done.Waited <= 0 || done.Waited > done.Total {
			t.Errorf("waited for %v of %v", done.Waited, done.Total)
		}
	}
}

func TestLoadStopsWhenCancelled(t *testing.T) {
	f := prepare(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if done, err := Load(ctx, f, LoadOptions{}); !errors.Is(err, context.Canceled) || done.Bytes != 0 {
		t.Errorf("cancelled Load: got %+v, %v; want no bytes and the context's error", done, err)
	}
}

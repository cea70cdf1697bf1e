//go:build linux

package pipeline

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model")
	const size = 5<<20 + 4321
	if err := Model(path, size, 3); err != nil {
		t.Fatal(err)
	}
	p := start(t)
	for _, record := range []int{0, 10_000, 1 << 30} {
		var want uint32
		for _, reading := range []Reading{Buffered, Mapped, Direct, Uring} {
			for _, workers := range []int{1, 4} {
				t.Run(fmt.Sprintf("%d/%s/%d", record, reading, workers), func(t *testing.T) {
					if record == 1<<30 && (workers > 1 || reading != Mapped) {
						t.Skip("memory for a large record")
					}
					plan := Plan{Load: path, Reading: reading, Record: record, Workers: workers, Depth: 4}
					skipUnlessOffered(t, p, plan)
					if err := Forget(path); err != nil {
						t.Fatal(err)
					}
					truth := run(t, p, plan)
					if want == 0 {
						want = truth.Checksum
					}
					if truth.Bytes != size || truth.Checksum != want || truth.Read <= 0 || truth.Busy != 0 {
						t.Errorf("checksum %08x wanted: %+v", want, truth)
					}
				})
			}
		}
	}
	truth := run(t, p, Plan{Load: path, Record: 1 << 20, Decode: 5 * time.Millisecond})
	if truth.Decode <= truth.Read {
		t.Errorf("mostly dequantising: %+v", truth)
	}
}

func TestLoadOfAnEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model")
	if err := Model(path, 0, 0); err != nil {
		t.Fatal(err)
	}
	p := start(t)
	for _, reading := range []Reading{Buffered, Mapped} {
		if truth := run(t, p, Plan{Load: path, Reading: reading, Workers: 2}); truth.Bytes != 0 || truth.Records != 0 {
			t.Errorf("load of an empty file: got %+v, want no bytes and no records", truth)
		}
	}
}

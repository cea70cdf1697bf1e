package emulate

import (
	"context"
	"errors"
	"os"
	"testing"
)

func TestColdIsColdAndWarmIsWarm(t *testing.T) {
	f := prepare(t)
	if err := f.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, of, err := f.Cached(); err != nil || of != f.Bytes() || found < of*95/100 {
		t.Errorf("warm: %d of %d bytes cached, %v", found, of, err)
	}
	var still *StillCachedError
	if err := f.Cold(); errors.As(err, &still) {
		t.Skip("needs a file system that lets go of its cache: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	before, _, err := f.Cached()
	if err != nil || before > f.Bytes()/20 {
		t.Errorf("cold: %d bytes cached, %v", before, err)
	}
	r, err := f.openRecords(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	if err := r.read(7); err != nil {
		t.Fatal(err)
	}
	after, _, err := f.Cached()
	if err != nil || after-before < recordBytes || after-before > f.stride() {
		t.Errorf("one record read: %d bytes more cached, %v", after-before, err)
	}
}

func TestWarmStopsWhenCancelled(t *testing.T) {
	f := prepare(t)
	if err := f.Cold(); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Warm(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if found, _, err := f.Cached(); err != nil || found > f.Bytes()/20 {
		t.Errorf("%d bytes cached, %v", found, err)
	}
}

func TestClosedFilesAreAnError(t *testing.T) {
	f := prepare(t)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, cachedErr := f.Cached()
	loadErr := Load(t.Context(), f)
	epochErr := Epoch(t.Context(), f, NewAccelerator("a"), Plan{Steps: 1, RecordsPerStep: 1})
	_, planErr := Calibrate(t.Context(), f, NewAccelerator("a"), 0)
	for name, err := range map[string]error{
		"Cold": f.Cold(), "Warm": f.Warm(t.Context()), "Cached": cachedErr, "Load": loadErr, "Epoch": epochErr, "Calibrate": planErr,
	} {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s of closed files: got error %v, want %v", name, err, os.ErrNotExist)
		}
	}
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// makeFile stops at madeSize or after makeTime.
const (
	madeSize = 1 << 30
	makeTime = 10 * time.Second
)

// makeFile writes a file of random bytes into a folder, and returns it open and without a name, so that it disappears
// when it is closed.
func makeFile(ctx context.Context, folder string, seed uint64) (*os.File, error) {
	if err := room(folder); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(folder, ".stallspan-bench-*")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Remove(file.Name()), fill(ctx, file, seed)); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("no file can be made in %s: %w", folder, err)
	}
	return file, nil
}

// room returns an error if the file would take more than half of the free space.
func room(folder string) error {
	var system unix.Statfs_t
	if err := unix.Statfs(folder, &system); err != nil {
		return &os.PathError{Op: "statfs", Path: folder, Err: err}
	}
	if free := system.Bavail * uint64(system.Bsize); free < 2*madeSize {
		return fmt.Errorf("%s has %d MiB free, but making a file needs %d: give an existing file",
			filepath.Clean(folder), free>>20, 2*madeSize>>20)
	}
	return nil
}

func fill(ctx context.Context, file *os.File, seed uint64) error {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	random := rand.NewChaCha8(key)
	text := make([]byte, 8*large)
	until := time.Now().Add(makeTime)
	for size := 0; size < madeSize && (size < minFile || time.Now().Before(until)); size += len(text) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		_, _ = random.Read(text) // it never fails
		if _, err := file.Write(text); err != nil {
			return err
		}
		if err := unix.Fdatasync(int(file.Fd())); err != nil {
			return err
		}
	}
	return unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED)
}

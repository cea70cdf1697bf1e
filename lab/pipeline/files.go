//go:build linux

package pipeline

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stallspan/stallspan/internal/source/pagecache"
)

// Layout writes n files of size bytes each into dir, "shard-0000" and so on, and returns their paths. Their content is
// pseudo-random and depends on seed. On return they are on the disk and in the page cache.
func Layout(dir string, n int, size int64, seed uint64) ([]string, error) {
	var paths []string
	for i := range n {
		path := filepath.Join(dir, fmt.Sprintf("shard-%04d", i))
		if err := Model(path, size, seed+uint64(i)<<32); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// Model writes one such file.
func Model(path string, size int64, seed uint64) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	buffer := make([]byte, 1<<20)
	for done := int64(0); done < size; {
		fillBlock(buffer, seed+uint64(done))
		n, err := file.Write(buffer[:min(size-done, int64(len(buffer)))])
		if err != nil {
			return errors.Join(err, file.Close())
		}
		done += int64(n)
	}
	return errors.Join(file.Sync(), file.Close())
}

// fillBlock writes pseudo-random numbers (SplitMix64). len(b) is a multiple of 8.
func fillBlock(b []byte, seed uint64) {
	for i := 0; i < len(b); i += 8 {
		seed += 0x9e3779b97f4a7c15
		x := seed
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		binary.LittleEndian.PutUint64(b[i:], x^x>>31)
	}
}

// Forget drops the files from the page cache if the kernel takes the advice. Their data must be on the disk, as after
// Layout and Model.
func Forget(paths ...string) error {
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		if err := errors.Join(pagecache.Forget(file), file.Close()); err != nil {
			return err
		}
	}
	return nil
}

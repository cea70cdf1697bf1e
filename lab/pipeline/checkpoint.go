//go:build linux

package pipeline

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// checkpoint writes the training thread's state to two files in turn, as trainers keep the previous one.
type checkpoint struct {
	paths  [2]string
	turn   int
	bytes  int64
	buffer []byte
}

func newCheckpoint(dir string, bytes int64, seed uint64) (*checkpoint, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	c := &checkpoint{bytes: bytes, buffer: make([]byte, 1<<20)}
	for i := range c.paths {
		c.paths[i] = filepath.Join(dir, "checkpoint-"+string(rune('0'+i)))
	}
	fillBlock(c.buffer, seed)
	return c, nil
}

// write writes and flushes a checkpoint.
func (c *checkpoint) write() error {
	file, err := os.Create(c.paths[c.turn])
	if err != nil {
		return err
	}
	c.turn = (c.turn + 1) % len(c.paths)
	for left := c.bytes; left > 0; {
		n, err := file.Write(c.buffer[:min(left, int64(len(c.buffer)))])
		if err != nil {
			return errors.Join(err, file.Close())
		}
		left -= int64(n)
	}
	return errors.Join(file.Sync(), file.Close())
}

func (c *checkpoint) remove() error {
	var errs []error
	for _, path := range c.paths {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

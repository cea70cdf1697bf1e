package emulate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const (
	mib = 1 << 20

	// Files grow together, in rounds: a disk that is too slow for all of them gets fewer rounds, not fewer files.
	roundModel = 8 * mib
	roundShard = 3 * mib
	shards     = 8
	roundBytes = roundModel + shards*roundShard // 32 MiB, the least that Prepare writes

	defaultBytes = 16 * roundBytes // a model of 128 MiB and 8 shards of 48 MiB
	largestBytes = 29 * roundBytes // 928 MiB, still under 10^9 bytes

	defaultBudget = 10 * time.Second
)

// Options says how much Prepare writes. The zero value is fit for use.
type Options struct {
	Bytes  int64         // in all, a quarter of it the model; rounded down to a multiple of 32 MiB; default 512 MiB, most 928 MiB
	Budget time.Duration // how long writing and syncing may take; default 10 s
}

// Files are a model and data shards of incompressible bytes in a folder of their own. The methods must not be called
// at the same time as Close.
type Files struct {
	dir    string
	system FileSystem
	rounds int64
}

// Prepare makes the files in a fresh folder below dir and leaves them cold. It writes as much as the budget allows,
// and fails if that is less than 32 MiB. dir must exist, on a file system that is not in memory and has twice
// Options.Bytes free; the empty dir stands for the first folder that fits of the system's two for temporary files and
// the working directory. When Prepare fails or ctx ends, nothing stays behind; otherwise the caller owes a Close.
func Prepare(ctx context.Context, dir string, o Options) (*Files, error) {
	if o.Bytes == 0 {
		o.Bytes = defaultBytes
	}
	if o.Budget <= 0 {
		o.Budget = defaultBudget
	}
	if o.Bytes < roundBytes || o.Bytes > largestBytes {
		return nil, fmt.Errorf("cannot prepare files of %s: pass a size from %s to %s", size(o.Bytes), size(roundBytes), size(largestBytes))
	}
	if dir == "" {
		dir = anywhere(o.Bytes)
	}
	system, err := suitable(dir, o.Bytes)
	if err != nil {
		return nil, err
	}
	fresh, err := os.MkdirTemp(dir, "stallspan-") // mode 0700
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder in %s (%w): pass --dir with a folder that you may write to", dir, errors.Unwrap(err))
	}
	f := &Files{dir: fresh, system: system}
	f.rounds, err = fill(ctx, f.paths(), o.Bytes/roundBytes, o.Budget)
	if err != nil {
		err = explain(err, dir, o.Budget)
		if left := f.Close(); left != nil {
			err = fmt.Errorf("%w; and %w", err, left)
		}
		return nil, err
	}
	return f, nil
}

// anywhere looks for a folder that is suitable. The one for temporary files is in memory on many machines.
func anywhere(bytes int64) string {
	for _, dir := range []string{os.TempDir(), "/var/tmp", "."} {
		if _, err := suitable(dir, bytes); err == nil {
			return dir
		}
	}
	return os.TempDir() // and let it be said what is wrong with it
}

// suitable says in words why files in dir could not do, before a byte of them is written.
func suitable(dir string, bytes int64) (FileSystem, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return FileSystem{}, fmt.Errorf("there is no folder %s: make it, or pass --dir with one that exists", dir)
	case err != nil:
		return FileSystem{}, fmt.Errorf("cannot look at %s (%w): pass --dir with a folder on a real disk", dir, errors.Unwrap(err))
	case !info.IsDir():
		return FileSystem{}, fmt.Errorf("%s is no folder: pass --dir with a folder on a real disk", dir)
	}
	system, err := examine(dir)
	if err != nil {
		return FileSystem{}, err
	}
	if system.InMemory {
		return FileSystem{}, fmt.Errorf("%s lies in memory (%s), where no read waits for a disk: pass --dir with a path on a real disk", dir, system.Name)
	}
	if system.Free >= 0 && system.Free < 2*bytes {
		return FileSystem{}, fmt.Errorf("%s has %s free, and files of %s are only written where twice as much is: free some space, or pass --dir with a path on another disk",
			dir, size(system.Free), size(bytes))
	}
	return system, nil
}

// Close removes the files and their folder. It may be called again.
func (f *Files) Close() error {
	if err := os.RemoveAll(f.dir); err != nil {
		return fmt.Errorf("could not remove everything below %s, please remove it by hand: %w", f.dir, err)
	}
	return nil
}

// Dir is the folder that holds the files and nothing else.
func (f *Files) Dir() string { return f.dir }

// FileSystem is what the files lie on. Where it is Remote the reads will show on no disk.
func (f *Files) FileSystem() FileSystem { return f.system }

// Model is the model file's path.
func (f *Files) Model() string { return filepath.Join(f.dir, "model.bin") }

// ModelBytes is the model file's size.
func (f *Files) ModelBytes() int64 { return f.rounds * roundModel }

// Bytes is the size of all files together, which may be less than was asked for.
func (f *Files) Bytes() int64 { return f.rounds * roundBytes }

func (f *Files) shard(i int) string { return filepath.Join(f.dir, "shard-"+strconv.Itoa(i)+".bin") }

func (f *Files) shardBytes() int64 { return f.rounds * roundShard }

// paths are all files, the model first.
func (f *Files) paths() []string {
	paths := []string{f.Model()}
	for i := range shards {
		paths = append(paths, f.shard(i))
	}
	return paths
}

// size is a number of bytes for people.
func size(bytes int64) string { return fmt.Sprintf("%d MiB", bytes/mib) }

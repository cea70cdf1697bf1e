package emulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/source/pagecache"
)

const (
	mib = 1 << 20

	// Files grow together in rounds: a slow disk gets fewer rounds instead of fewer files.
	roundModel = 8 * mib
	roundShard = 3 * mib
	shards     = 8
	roundBytes = roundModel + shards*roundShard // 32 MiB, the minimum of Prepare

	defaultBytes = 16 * roundBytes // a model of 128 MiB and 8 shards of 48 MiB
	largestBytes = 29 * roundBytes // 928 MiB, still under 10^9 bytes

	defaultBudget = 10 * time.Second
)

// Options are the amount that Prepare writes. The zero value is valid.
type Options struct {
	// in total, a quarter of it the model; rounded down to a multiple of 32 MiB; default 512 MiB, maximum 928 MiB
	Bytes  int64
	Budget time.Duration // time for writing and syncing more than 32 MiB; default 10 s

	Writing func(dir string, on FileSystem) // called before the first byte is written; nil for nothing
}

// Files are a model and data shards of incompressible bytes in a folder of their own. Close must not run concurrently
// with other methods.
type Files struct {
	dir    string
	system FileSystem
	rounds int64
}

// Prepare writes the files to a new folder below dir and leaves them cold. It writes as much as the budget allows, and
// at least 32 MiB. dir must exist on a file system that is not in memory and has twice Options.Bytes
// free. An empty dir stands for the first suitable folder of the system's two for temporary files and the working
// directory. If Prepare fails or ctx ends, no file stays; otherwise the caller must call Close.
func Prepare(ctx context.Context, dir string, o Options) (*Files, error) {
	if o.Bytes == 0 {
		o.Bytes = defaultBytes
	}
	if o.Budget <= 0 {
		o.Budget = defaultBudget
	}
	if o.Bytes < roundBytes || o.Bytes > largestBytes {
		return nil, fmt.Errorf("cannot prepare files of %s: pass a size from %s to %s", size(o.Bytes), size(roundBytes),
			size(largestBytes))
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
		return nil, fmt.Errorf("cannot make a folder in %s (%w): pass --dir with a folder that you may write to", dir,
			errors.Unwrap(err))
	}
	f := &Files{dir: fresh, system: system}
	if o.Writing != nil {
		o.Writing(fresh, system)
	}
	f.rounds, err = fill(ctx, f.paths(), o.Bytes/roundBytes, o.Budget)
	if err != nil {
		err = explain(err, dir)
		if left := f.Close(); left != nil {
			err = fmt.Errorf("%w; and %w", err, left)
		}
		return nil, err
	}
	return f, nil
}

// anywhere returns the first suitable folder. The folder for temporary files is in memory on many machines.
func anywhere(bytes int64) string {
	for _, dir := range []string{os.TempDir(), "/var/tmp", "."} {
		if _, err := suitable(dir, bytes); err == nil {
			return dir
		}
	}
	return os.TempDir() // report what is wrong with it
}

// suitable returns why files cannot be in dir, before any byte is written.
func suitable(dir string, bytes int64) (FileSystem, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return FileSystem{}, fmt.Errorf("there is no folder %s: make it, or pass --dir with one that exists", dir)
	case err != nil:
		return FileSystem{}, fmt.Errorf("cannot look at %s (%w): pass --dir with a folder on a real disk", dir,
			errors.Unwrap(err))
	case !info.IsDir():
		return FileSystem{}, fmt.Errorf("%s is no folder: pass --dir with a folder on a real disk", dir)
	}
	system, err := examine(dir)
	if err != nil {
		return FileSystem{}, err
	}
	if system.InMemory {
		return FileSystem{}, fmt.Errorf("%s lies in memory (%s), where no read waits for a disk: pass --dir with a path on "+
			"a real disk", dir, system.Name)
	}
	if system.Free >= 0 && system.Free < 2*bytes {
		return FileSystem{}, fmt.Errorf("%s has %s free, and files of %s are only written where twice as much is: free "+
			"some space, or pass --dir with a path on another disk",
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

// FileSystem returns the file system of the files. If it is Remote, the reads appear on no disk.
func (f *Files) FileSystem() FileSystem { return f.system }

// Model returns the model file's path.
func (f *Files) Model() string { return filepath.Join(f.dir, "model.bin") }

// ModelBytes returns the model file's size.
func (f *Files) ModelBytes() int64 { return f.rounds * roundModel }

func (f *Files) shard(i int) string { return filepath.Join(f.dir, "shard-"+strconv.Itoa(i)+".bin") }

func (f *Files) shardBytes() int64 { return f.rounds * roundShard }

// paths returns all files, the model first.
func (f *Files) paths() []string {
	paths := []string{f.Model()}
	for i := range shards {
		paths = append(paths, f.shard(i))
	}
	return paths
}

// size formats a number of bytes.
func size(bytes int64) string { return fmt.Sprintf("%d MiB", bytes/mib) }

// stillWarm is the maximum share of cached bytes at which files still count as cold.
const stillWarm = 0.05

// StillCachedError reports files that stayed in the page cache although they should have been dropped.
type StillCachedError struct {
	System string // the file system's name
	Cached int64  // bytes
	Of     int64  // bytes
}

func (e *StillCachedError) Error() string {
	return fmt.Sprintf("%s of %s stay in the page cache of this %s, so reading them is not cold: pass --dir with a path "+
		"on another file system",
		size(e.Cached), size(e.Of), e.System)
}

// Cold drops all files from the page cache. The error is a *StillCachedError if more than 5 % of their bytes stay.
// Caches below the kernel's (ZFS, the hypervisor's host, a server) are invisible here; Calibrate detects them by the
// time of a read.
func (f *Files) Cold() error {
	for _, path := range f.paths() {
		if err := with(path, forget); err != nil {
			return err
		}
	}
	return f.checkCold(f.paths()...)
}

func (f *Files) checkCold(paths ...string) error {
	found, of, err := f.cachedOf(paths...)
	if err != nil {
		return err
	}
	if float64(found) > stillWarm*float64(of) {
		return &StillCachedError{System: f.system.Name, Cached: found, Of: of}
	}
	return nil
}

func (f *Files) cachedOf(paths ...string) (found, of int64, err error) {
	for _, path := range paths {
		err := with(path, func(file *os.File) error {
			n, size, err := pagecache.Resident(file)
			found += n
			of += size
			return err
		})
		if err != nil {
			return 0, 0, err
		}
	}
	return found, of, nil
}

// Warm reads all files into the page cache, which keeps what it has room for; Cached returns how much.
func (f *Files) Warm(ctx context.Context) error {
	for _, path := range f.paths() {
		if err := readThrough(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// readThrough reads a file from its begin to its end.
func readThrough(ctx context.Context, path string) error {
	buffer := make([]byte, mib)
	return with(path, func(file *os.File) error {
		for {
			if err := ctx.Err(); err != nil {
				return err
			}
			if _, err := file.Read(buffer); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
		}
	})
}

// with opens a file for reading, uses it and closes it.
func with(path string, use func(*os.File) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return use(file)
}

// fill writes the files at paths, the model first, in at most rounds rounds. At the end of a round all bytes are on the
// disk and out of the page cache. So its time is the disk's own, and shows whether another round fits the budget. fill
// returns the number of rounds, at least one.
func fill(ctx context.Context, paths []string, rounds int64, budget time.Duration) (done int64, err error) {
	files := make([]*os.File, 0, len(paths))
	defer func() {
		for _, file := range files {
			err = errors.Join(err, file.Close())
		}
	}()
	for _, path := range paths {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return 0, err
		}
		files = append(files, file)
	}

	var seed [32]byte // a new one each time, for storage with deduplication
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	noise := rand.NewChaCha8(seed)
	begin := time.Now()
	for last := time.Duration(0); done < rounds && (done == 0 || time.Since(begin)+last <= budget); done++ {
		started := time.Now()
		if err := addRound(ctx, files, noise); err != nil {
			return done, err
		}
		last = time.Since(started)
	}
	return done, nil
}

// addRound appends one round to each file.
func addRound(ctx context.Context, files []*os.File, noise *rand.ChaCha8) error {
	buffer := make([]byte, mib)
	for i, file := range files {
		for range roundPart(i) / mib {
			if err := ctx.Err(); err != nil {
				return err
			}
			_, _ = noise.Read(buffer) // never fails
			if _, err := file.Write(buffer); err != nil {
				return err
			}
		}
	}
	for _, file := range files {
		if err := cmp.Or(ctx.Err(), forget(file)); err != nil {
			return err
		}
	}
	return nil
}

// roundPart returns how many bytes one round adds to the file at paths[i].
func roundPart(i int) int64 {
	if i == 0 {
		return roundModel
	}
	return roundShard
}

// explain adds to an error of fill in dir what to do about it.
func explain(err error, dir string) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("no room left in %s (%w): free some space, or pass --dir with a path on another disk", dir, err)
	}
	return fmt.Errorf("cannot write files in %s (%w): pass --dir with a path on another disk", dir, err)
}

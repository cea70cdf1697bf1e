package bench

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// brief is the length of a step in tests.
const brief = 100 * time.Millisecond

// written makes a file of random bytes in a folder.
func written(t *testing.T, folder string, size int) string {
	t.Helper()
	file, err := os.CreateTemp(folder, "bench-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(file.Name()) })
	text := make([]byte, large)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(text)
	for range size / large {
		if _, err := file.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

func measured(t *testing.T, o Options) *Result {
	t.Helper()
	o.Step = max(o.Step, brief)
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// whole checks that every step was measured.
func whole(t *testing.T, r *Result) {
	t.Helper()
	if r.Cached <= 0 || r.Sequential <= 0 || len(r.Random) != len(depths) || r.Interrupted {
		t.Fatalf("got %+v, want all steps", r)
	}
	for i, at := range r.Random {
		if at.Depth != depths[i] || at.IOPS <= 0 || at.Rate != at.IOPS*small || at.AwaitP50 <= 0 ||
			at.AwaitP99 < at.AwaitP50 || at.Reads == 0 {
			t.Errorf("got %+v, want depth %d with IOPS, bytes and ordered quantiles", at, depths[i])
		}
	}
	if r.Ceiling() < r.Sequential || r.Await() != r.Random[0].AwaitP50 {
		t.Errorf("ceiling %v, await %v of %+v", r.Ceiling(), r.Await(), r)
	}
}

func TestFile(t *testing.T) {
	path := written(t, t.TempDir(), minSize)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	r := measured(t, Options{Path: path, Seed: 7})
	whole(t, r)
	if r.Size != minSize || r.Path != path || r.Seed != 7 {
		t.Errorf("got %+v, want the path, its size and the seed 7", r)
	}
	if r.OfDisk && (r.Device == "" || !r.Direct) {
		t.Errorf("of a disk, and of none: %+v", r)
	}
	after, err := os.Stat(path)
	if err != nil || !after.ModTime().Equal(before.ModTime()) || after.Size() != before.Size() {
		t.Error("the file was written")
	}
}

// A file system in memory is measured, but it is not a disk.
func TestMemory(t *testing.T) {
	var system unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &system); err != nil || system.Type != unix.TMPFS_MAGIC ||
		system.Bavail*uint64(system.Bsize) < 2*minSize {
		t.Skip("needs a tmpfs with room at /dev/shm")
	}
	r := measured(t, Options{Path: written(t, "/dev/shm", minSize)})
	whole(t, r)
	if r.OfDisk || r.Device != "" || !strings.Contains(strings.Join(r.Notes, " "), "in memory") {
		t.Errorf("got %+v, want a note on memory, and no disk", r)
	}
}

// Readers that get a CPU when the step is over have read once each, so that no step is without a result.
func TestLateReaders(t *testing.T) {
	file, err := os.Open(written(t, t.TempDir(), large))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	s := step{read: from(file), readers: 4, length: small, lasts: 1, offsets: anywhere(large, 1)}
	all, err := s.run(t.Context())
	if err != nil || all.times.N != 4 || all.rate(s.lasts) <= 0 {
		t.Errorf("got %d reads, %v a second, %v; want 4", all.times.N, all.rate(s.lasts), err)
	}
}

// A file system without direct reads, such as ramfs, is read through the page cache, with a note.
func TestWithoutDirectReads(t *testing.T) {
	folder := t.TempDir()
	if err := unix.Mount("none", folder, "ramfs", 0, ""); err != nil {
		t.Skip("needs root to mount a ramfs: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, 0); err != nil {
			t.Error(err)
		}
	})
	path := written(t, folder, minSize)
	if file, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECT, 0); err == nil {
		_ = file.Close()
		t.Skip("this kernel's ramfs has direct reads")
	}
	r := measured(t, Options{Path: path})
	whole(t, r)
	if r.Direct || r.OfDisk || !strings.Contains(strings.Join(r.Notes, " "), "O_DIRECT") {
		t.Errorf("got %+v, want buffered reads with a note", r)
	}
}

// The largest file of a folder is read. Holes, links and small files do not count.
func TestFolder(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "small"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(written(t, folder, large), 1<<40); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(folder, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Run(t.Context(), Options{Path: folder})
	if err == nil || !strings.Contains(err.Error(), "--make-file") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one line with --make-file", err)
	}
	below := filepath.Join(folder, "a", "b")
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	path := written(t, below, minFile)
	if got, err := choose(t.Context(), folder); err != nil || got != path {
		t.Errorf("got %s, %v, want %s", got, err, path)
	}
}

// A file that was made is removed at the end.
func TestMakeFile(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 1 GiB")
	}
	folder := t.TempDir()
	if err := room(folder); err != nil {
		t.Skip(err)
	}
	r := measured(t, Options{Path: folder, MakeFile: true})
	whole(t, r)
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 || r.Size < minFile {
		t.Errorf("left: %v, %v; %d bytes", left, err, r.Size)
	}
}

func TestRefusals(t *testing.T) {
	small := filepath.Join(t.TempDir(), "small")
	if err := os.WriteFile(small, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	holes := filepath.Join(t.TempDir(), "holes")
	if err := os.WriteFile(holes, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(holes, 1<<30); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]Options{
		"no disk, file or folder nosuchdisk": {Device: "nosuchdisk"},
		"neither a block device nor a file":  {Device: "/dev/null"},
		"no such file":                       {Path: "/nosuchfile"},
		"minimum is 64 MiB":                  {Path: small},
		"has holes":                          {Path: holes},
		"needs the folder":                   {Device: "sda", MakeFile: true},
		"is not a folder":                    {Path: small, MakeFile: true},
		"a step of 1h0m0s":                   {Path: small, Step: time.Hour},
	} {
		r, err := Run(t.Context(), o)
		if r != nil || err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}

// An early end returns the results so far.
func TestInterrupted(t *testing.T) {
	path := written(t, t.TempDir(), minSize)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	r, err := Run(ctx, Options{Path: path, Step: time.Second})
	if err != nil || r == nil {
		t.Fatalf("got %+v, %v, want a result", r, err)
	}
	if !r.Interrupted || len(r.Random) == len(depths) {
		t.Errorf("got %+v, want an interrupted result without all depths", r)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Run(done, Options{Path: path}); r != nil && (!r.Interrupted || len(r.Random) > 0) || r == nil &&
		err == nil {
		t.Errorf("got %+v, %v, want an error, or an interrupted result without random reads", r, err)
	}
}

// Random reads are whole blocks within the file, and the same for the same seed.
func TestOffsets(t *testing.T) {
	for _, size := range []int64{minSize, minSize + 1, minSize + small - 1} {
		a, b := anywhere(size, 3)(5), anywhere(size, 3)(5)
		other, same := anywhere(size, 3)(6), 0
		for range 1000 {
			at := a()
			if at != b() || at < 0 || at%small != 0 || at+small > size {
				t.Fatalf("%d of %d", at, size)
			}
			if other() == at {
				same++
			}
		}
		if same > 10 {
			t.Error("two readers read the same")
		}
	}
	next, n := inOrder(3*large, true)(0), 0
	for next() >= 0 {
		n++
	}
	if n != 3 {
		t.Errorf("%d reads of 3 MiB", n)
	}
}

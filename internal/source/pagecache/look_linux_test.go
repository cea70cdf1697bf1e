package pagecache

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const mib = 1 << 20

// taken bounds the pages of a file that the kernel may have reclaimed since the read.
const taken = 64 << 10

// file writes a file to a disk. Afterwards none of it is in the page cache.
func file(t testing.TB, path string, size int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, size), 0o644); err != nil {
		t.Fatal(err)
	}
	cold(t, path)
}

func cold(t testing.TB, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	if found, _, err := Resident(f); err != nil || found > 0 {
		t.Skipf(
			"%d bytes of a file stay in the page cache of the folder for temporary files (%v): set TMPDIR to one on a disk",
			found,
			err,
		)
	}
}

// warm reads the first bytes of a file without read-ahead.
func warm(t testing.TB, path string, bytes int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(make([]byte, bytes)); err != nil {
		t.Fatal(err)
	}
}

// patiently calls Look, again while a busy machine makes it take too long.
func patiently(root, path string) (held Held, err error) {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if held, err = Look(root, path); !errors.Is(err, errSlow) {
			break
		}
	}
	return held, err
}

// cached calls Look for a path of this machine, and skips if the kernel has no cachestat.
func cached(t testing.TB, path string) Held {
	t.Helper()
	held, err := patiently("", path)
	if err != nil {
		t.Fatal(err)
	}
	if !held.Known {
		t.Skip("no cachestat, which needs Linux 6.5")
	}
	return held
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model")
	file(t, path, 8*mib+1)
	if held := cached(t, path); held.Size != 8*mib+1 || held.Cached != 0 {
		t.Errorf("cold: got %+v, want none cached", held)
	}
	warm(t, path, 2*mib)
	if held := cached(t, path); held.Cached < 2*mib-taken || held.Cached > 3*mib {
		t.Errorf("got %+v, want 2 MiB cached", held)
	}
	if _, err := os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	if held := cached(t, path); held.Cached < held.Size-taken || held.Cached > held.Size {
		t.Errorf("warm: got %+v, want all cached", held)
	}
}

// A model cache has links to files in other folders, and two links to one of them.
func TestFolder(t *testing.T) {
	root := t.TempDir()
	for i := range 3 {
		file(t, filepath.Join(root, "blobs", fmt.Sprint(i)), mib)
	}
	folder := filepath.Join(root, "snapshots", "abc")
	file(t, filepath.Join(folder, "onnx", "config"), mib)
	link := func(to, from string) {
		if err := os.Symlink(to, filepath.Join(folder, from)); err != nil {
			t.Fatal(err)
		}
	}
	link("../../blobs/0", "0")
	link("../../blobs/1", "1")
	link("/blobs/1", "again") // as seen below root
	link("../..", "back")
	link("gone", "dangling")
	warm(t, filepath.Join(root, "blobs", "1"), mib)
	if err := syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	cached(t, filepath.Join(root, "blobs", "1"))
	held, err := patiently(root, "/snapshots/abc")
	if err != nil || held.Size != 3*mib || !held.Known || held.Cached < mib-taken || held.Cached > mib {
		t.Errorf("got %+v, %v; want each file once", held, err)
	}
}

func TestRefused(t *testing.T) {
	root := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	file(t, secret, 1)
	for name, to := range map[string]string{
		"out": secret, "proc": "/proc/self/fd/0", "up": "../../../../../../../.." + secret,
	} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range maxFiles + 1 {
		if err := os.MkdirAll(filepath.Join(root, "many"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "many", fmt.Sprint(i)), []byte{1}, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	deep := filepath.Join(root, "deep", strings.Repeat("x/", maxDepth+1))
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "relative", "/nothing", "/out", "/proc", "/up", "/pipe", "/many", "/deep"} {
		if held, err := Look(root, path); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %+v, %v; want an error", path, held, err)
		}
	}
	if _, err := Look(filepath.Join(root, "nothing"), "/x"); err == nil {
		t.Error("missing root: got no error, want one")
	}
}

// unprivileged makes TestUnprivileged the process without privileges.
const unprivileged = "STALLSPAN_TEST_UNPRIVILEGED"

// For a file of another user the size is known, and not its part in the page cache.
func TestUnprivileged(t *testing.T) {
	if path := os.Getenv(unprivileged); path != "" {
		held, err := Look("", path)
		fmt.Printf("size %d, known %v, %v\n", held.Size, held.Known, err)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root to run as another user")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "stallspan-unprivileged-") // accessible to others, unlike t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	copied := filepath.Join(folder, "test")
	if err := os.WriteFile(copied, text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		mode os.FileMode
		want string
	}{"readable": {0o644, "size 1048576, known false, <nil>"}, "closed": {0o600, "size 1048576, known false, <nil>"}} {
		path := filepath.Join(folder, name)
		file(t, path, mib)
		cached(t, path)
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(copied, "-test.run", "^TestUnprivileged$")
		cmd.Env = append(os.Environ(), unprivileged+"="+path)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: got %v: %s", name, err, out)
		}
	}
}

// For a file on an overlay, the pages of the file below count.
func TestOverlay(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "lower", "model")
	file(t, path, 4*mib)
	for _, name := range []string{"upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	merged := filepath.Join(root, "merged")
	options := fmt.Sprintf("lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work", root, root, root)
	if err := unix.Mount("overlay", merged, "overlay", 0, options); err != nil {
		t.Skipf("no overlay can be mounted here, as root alone may: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(merged, 0) })
	above := filepath.Join(merged, "model")
	if held := cached(t, above); held.Size != 4*mib || held.Cached != 0 || !held.Known {
		t.Errorf("cold: got %+v, want none cached", held)
	}
	warm(t, above, mib)
	if held := cached(t, above); held.Cached < mib-taken || held.Cached > 2*mib {
		t.Errorf("got %+v, want 1 MiB cached", held)
	}
}

// After the deadline a file is sampled, with and without the mapping of an overlay.
func TestPieces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large")
	file(t, path, 0)
	const size = 10*piece + 5
	if err := os.Truncate(path, size); err != nil { // a hole: nothing is written
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(8*piece, 0); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, mib)
	for range piece / mib * 3 / 2 {
		if _, err := f.Read(buffer); err != nil {
			t.Fatal(err)
		}
	}
	mapping, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mapping) }()
	cached(t, path)
	const lost = 8 * mib // the kernel may drop some pages meanwhile
	never := time.Now().Add(time.Hour)
	for name, ask := range map[string]func(from, length int64) (uint64, error){
		"cachestat": func(from, length int64) (uint64, error) { return cachestat(f, from, length) },
		"mincore":   func(from, length int64) (uint64, error) { return mincore(mapping[from : from+length]) },
	} {
		if found, err := count(size, never, never, ask); err != nil || found < piece*3/2-lost ||
			found > piece*3/2+16*mib {
			t.Errorf("%s, in full: got %d MiB, %v", name, found/mib, err)
		}
		if found, err := count(size, time.Time{}, never, ask); err != nil || found < 2*piece-lost || found > 2*piece+16*mib {
			t.Errorf("%s, sampled: got %d MiB, %v", name, found/mib, err)
		}
	}
}

// A file may claim to be of any size. Looking at it costs a bounded time of CPU, and sizes do not overflow.
func TestHostileFiles(t *testing.T) {
	folder, err := os.MkdirTemp("/dev/shm", "stallspan") // whose files may be larger than those of a disk
	if err != nil {
		t.Skipf("no file system in memory: %v", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	const huge = 1<<63 - 4096
	for i := range 4 {
		path := filepath.Join(folder, "sparse", fmt.Sprint(i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, 2*mib), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, huge); err != nil {
			t.Skipf("no file of 8 EiB can be made here: %v", err)
		}
	}
	deep := filepath.Join(folder, strings.Repeat("x/", 1900))
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path string
		want uint64
	}{
		"a file of 8 EiB":       {"sparse/0", huge},
		"four files of 8 EiB":   {"sparse", 1<<64 - 1},
		"a folder 1,900 deep":   {strings.Repeat("x/", 1900), 0},
		"the top of that":       {"x", 0},
		"more folders than are": {strings.Repeat("x/", 2000), 0},
	} {
		start := cpuTime(t)
		held, err := Look("", filepath.Join(folder, c.path))
		if took := cpuTime(t) - start; took > 250*time.Millisecond {
			t.Errorf("%s: got %v of CPU time, want under 250 ms", name, took)
		}
		if errors.Is(err, errSlow) { // the CPUs were busy
			held, err = patiently("", filepath.Join(folder, c.path))
		}
		if held.Size != c.want {
			t.Errorf("%s: got %+v, %v, want the size %d", name, held, err, c.want)
		}
	}
}

// cpuTime returns the CPU time of this thread, to which it ties the test.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		t.Fatal(err)
	}
	return time.Duration(now.Nano())
}

// The number of pieces of a file is bounded, and none is counted after the last moment.
func FuzzCount(f *testing.F) {
	f.Add(int64(5), uint64(1), false)
	f.Add(int64(1<<63-1), uint64(256), true)
	f.Add(int64(piece*maxPieces), uint64(1<<63), false)
	f.Fuzz(func(t *testing.T, size int64, found uint64, late bool) {
		now, calls, next := time.Now(), 0, int64(0)
		latest := now.Add(time.Hour)
		if late {
			latest = now.Add(-1)
		}
		n, err := count(size, now, latest, func(from, length int64) (uint64, error) {
			if calls++; from < next || length <= 0 || from > size-length || from%piece != 0 {
				t.Fatalf("size %d: got a request for %d bytes from %d on, after %d", size, length, from, next)
			}
			next = from + length
			return found, nil
		})
		if calls > maxPieces || late && calls > 0 {
			t.Errorf("size %d: got %d calls", size, calls)
		}
		if err == nil && size > 0 && float64(n) > float64(size)*1.0001 {
			t.Errorf("size %d: got %d bytes", size, n)
		}
	})
}

func BenchmarkLook(b *testing.B) {
	path := filepath.Join(b.TempDir(), "model")
	file(b, path, 200*mib)
	warm(b, path, 200*mib)
	folder := filepath.Join(b.TempDir(), "folder")
	for i := range maxFiles {
		file(b, filepath.Join(folder, fmt.Sprint(i)), 4096)
	}
	for _, path := range []string{path, folder} {
		b.Run(filepath.Base(path), func(b *testing.B) {
			for b.Loop() {
				cached(b, path)
			}
		})
	}
	b.Run("mincore", func(b *testing.B) {
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		for b.Loop() {
			if _, _, err := Resident(f); err != nil {
				b.Fatal(err)
			}
		}
	})
}

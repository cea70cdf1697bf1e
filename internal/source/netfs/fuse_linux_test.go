package netfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

// hanging is a file whose reads have no answer until it is released.
type hanging struct {
	fs.Inode
	released chan struct{}
}

var (
	_ fs.NodeOpener    = (*hanging)(nil)
	_ fs.NodeReader    = (*hanging)(nil)
	_ fs.NodeGetattrer = (*hanging)(nil)
)

func (h *hanging) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

func (h *hanging) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size = 0o444, 1<<20
	return 0
}

func (h *hanging) Read(_ context.Context, _ fs.FileHandle, into []byte, _ int64) (fuse.ReadResult, syscall.Errno) {
	<-h.released
	return fuse.ReadResultData(into), 0
}

// hangingMount mounts a file system with one such file, and returns its folder and what releases it.
func hangingMount(t *testing.T) (dir string, release func()) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount a FUSE file system")
	}
	dir = t.TempDir()
	file := &hanging{released: make(chan struct{})}
	root := &fs.Inode{}
	server, err := fs.Mount(dir, root, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "server:/data", Name: "hanging"},
		OnAdd: func(ctx context.Context) {
			root.AddChild("data", root.NewPersistentInode(ctx, file, fs.StableAttr{}), false)
		},
	})
	if err != nil {
		t.Skipf("needs FUSE: %v", err)
	}
	release = sync.OnceFunc(func() { close(file.released) })
	t.Cleanup(func() {
		release()
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
		server.Wait()
	})
	return dir, release
}

// machineRoot returns a folder that stands for "/", with the kernel's own files.
func machineRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	connections := filepath.Join(root, "sys/fs/fuse/connections")
	if err := errors.Join(os.MkdirAll(connections, 0o700), os.Symlink("/proc", filepath.Join(root, "proc"))); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("fusectl", connections, "fusectl", 0, ""); err != nil {
		t.Skipf("needs root and fusectl: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(connections, 0); err != nil {
			t.Error(err)
		}
	})
	return root
}

func find(s *sample.Sample, point string) *sample.MountCounters {
	for i := range s.MountCounters {
		if s.MountCounters[i].Point == point {
			return &s.MountCounters[i]
		}
	}
	return nil
}

// TestHangingServer reads a real FUSE file system whose server does not answer: the source counts the requests that
// wait, and does not wait itself.
func TestHangingServer(t *testing.T) {
	dir, release := hangingMount(t)
	s := New(machineRoot(t))
	t.Cleanup(s.Close)
	c := find(read(t, s, true), dir)
	for end := time.Now().Add(10 * time.Second); c != nil && c.Waiting != 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond) // the requests of the mount itself may still wait: a new source counts from 0
		s = New(machineRoot(t))
		t.Cleanup(s.Close)
		c = find(read(t, s, true), dir)
	}
	if c == nil {
		t.Fatalf("got no reading of %s", dir)
	}
	if c.Waiting != 0 || c.WaitingTime != 0 || c.Type != "fuse.hanging" || c.Source != "server:/data" ||
		c.Has&sample.HasMountLimits == 0 {
		t.Errorf("got %+v, want no request that waits", c)
	}

	const readers = 4
	var all sync.WaitGroup
	for i := range readers {
		all.Go(func() {
			file, err := os.Open(filepath.Join(dir, "data"))
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = file.Close() }()
			if _, err := file.ReadAt(make([]byte, 4096), int64(i)*4096); err != nil {
				t.Error(err)
			}
		})
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		if c = find(read(t, s, true), dir); c.Waiting == readers || time.Now().After(deadline) {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	began, before := time.Now(), c.WaitingTime
	var longest time.Duration
	for time.Since(began) < time.Second {
		time.Sleep(50 * time.Millisecond)
		at := time.Now()
		read(t, s, false)
		longest = max(longest, time.Since(at))
	}
	c = find(read(t, s, true), dir)
	want := readers * time.Since(began).Seconds()
	if got := (c.WaitingTime - before).Seconds(); c.Waiting != readers || got < 0.95*want || got > 1.05*want {
		t.Errorf("got %d waiting and %.3f s, want %d and about %.3f s", c.Waiting, got, readers, want)
	}
	if longest > 500*time.Millisecond {
		t.Errorf("a reading took %v while the server did not answer", longest)
	}
	release()
	all.Wait()
	for deadline = time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) { // the files are released later
		if c = find(read(t, s, true), dir); c.Waiting == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %d waiting after all answers, want 0", c.Waiting)
		}
	}
}

// A mount that goes is no longer read, and one that comes is.
func TestMountsComeAndGo(t *testing.T) {
	s := New(machineRoot(t))
	t.Cleanup(s.Close)
	read(t, s, true)
	var dir string
	t.Run("mounted", func(t *testing.T) {
		dir, _ = hangingMount(t)
		time.Sleep(1100 * time.Millisecond) // the list is read once a second
		if find(read(t, s, true), dir) == nil {
			t.Errorf("got no reading of %s after it was mounted", dir)
		}
	})
	gone := read(t, s, true)
	if c := find(gone, dir); c != nil || !gone.MountsRead {
		t.Errorf("got %+v after the end of its connection, want a reading without it", gone)
	}
}

// withoutFiles calls f while this process can open no file.
func withoutFiles(t *testing.T, f func()) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
	}()
	if _, err := os.Open("/dev/null"); !errors.Is(err, unix.EMFILE) {
		t.Fatalf("got %v, want %v", err, unix.EMFILE)
	}
	f()
}

// A connection that cannot be read for a time is read again afterwards. One that has ended is not.
func TestFailingReads(t *testing.T) {
	root := machine(t)
	s := New(root)
	t.Cleanup(s.Close)
	now := time.Hour
	s.find()
	s.mounts = slices.DeleteFunc(s.mounts, func(m *mounted) bool { return m.Point != "/gcs" })
	m := s.mounts[0]
	tick := func(after time.Duration) {
		t.Helper()
		now += after
		s.sample(m, now)
		if err := s.readAll(now); err != nil {
			t.Error(err)
		}
	}
	withoutFiles(t, func() { tick(0) })
	if m.found {
		t.Error("got a mount that was never read")
	}
	tick(time.Second)
	if !m.found || m.Waiting != 7 || m.WaitingTime != 0 || m.Has != sample.HasMountWaiting|sample.HasMountLimits {
		t.Errorf("after a failure at the begin: got %+v, want it with 7 requests", m)
	}
	withoutFiles(t, func() { tick(time.Second) })
	if !m.found {
		t.Error("got no mount after a failure of a second")
	}
	tick(time.Second)
	if !m.found || m.WaitingTime != 2*7*time.Second {
		t.Errorf("after a failure of a second: got %+v, want 14 s of waiting", m)
	}
	withoutFiles(t, func() { tick(3 * time.Second) })
	if m.found {
		t.Error("got a mount that was not read for three seconds")
	}
	tick(time.Second)
	if !m.found || m.WaitingTime != 2*7*time.Second {
		t.Errorf("after a failure of three seconds: got %+v, want the 14 s of before", m)
	}

	path := filepath.Join(root, "sys/fs/fuse/connections/53/waiting")
	fixture.Write(t, root, "sys/fs/fuse/connections/53/waiting", nil) // as where it ends just then
	if tick(time.Second); m.found || m.waiting != "" {
		t.Errorf("got %+v, want no mount after its connection has ended", m)
	}
	s.openFUSE(m)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if tick(time.Second); m.found || m.waiting != "" {
		t.Errorf("got %+v, want no mount without a connection", m)
	}
}

// A connection that was aborted is read until it is unmounted. Then there is no such file.
func TestAbortedConnection(t *testing.T) {
	root := machineRoot(t)
	s := New(root)
	t.Cleanup(s.Close)
	var folder string
	t.Run("mounted", func(t *testing.T) {
		dir, _ := hangingMount(t)
		c := find(read(t, s, true), dir)
		if c == nil {
			t.Fatalf("got no reading of %s", dir)
		}
		folder = filepath.Join(root, "sys/fs/fuse/connections", strconv.FormatUint(uint64(c.Minor), 10))
		if err := os.WriteFile(filepath.Join(folder, "abort"), []byte("1"), 0); err != nil {
			t.Fatal(err)
		}
		if c := find(read(t, s, true), dir); c == nil {
			t.Error("got no reading after the connection was aborted")
		}
	})
	if folder == "" {
		t.Skip("needs a FUSE file system")
	}
	if _, err := s.number(filepath.Join(folder, "waiting")); !gone(err) {
		t.Errorf("got %v after it was unmounted, want that it has ended", err)
	}
}

// BenchmarkRead measures a reading of a machine with all kinds of mounts, as once a second.
func BenchmarkRead(b *testing.B) {
	s := New(machine(b))
	defer s.Close()
	out := &sample.Sample{}
	for b.Loop() {
		out.Reset()
		out.Edge = true
		if err := s.Read(out); err != nil || len(out.MountCounters) == 0 {
			b.Fatal(err)
		}
	}
}

// BenchmarkTickOfThisMachine measures a tick of this machine.
func BenchmarkTickOfThisMachine(b *testing.B) {
	s := New("/")
	defer s.Close()
	out := &sample.Sample{}
	for b.Loop() {
		out.Reset()
		if err := s.Read(out); err != nil {
			b.Fatal(err)
		}
	}
}

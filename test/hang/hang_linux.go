// Package hang makes real processes for which the kernel does not answer, for tests: while they wait for a file system
// that hangs, what reads some of their files in /proc waits, too. So does ps for the whole machine. So each hang ends
// after a few seconds, whatever the test does, and with the test's process, which serves the file system.
//
// It needs root and FUSE.
package hang

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// How a process hangs: one of its threads waits for a page of a file while it holds the lock of the memory map, or it
// closes a file in execve(2).
const (
	Memory = "memory" // cmdline, environ, smaps and mem wait
	Exec   = "exec"   // io, syscall, environ and mem wait
)

const (
	variable = "STALLSPAN_TEST_HANG" // how this copy of a test binary hangs
	inherits = 3                     // its descriptor of the file
	size     = 16 << 20
	page     = 4096
	// Limit is how long a hang lasts at most. Everything that lists the processes of this machine waits that long.
	Limit = 8 * time.Second
)

// Options are for Start.
type Options struct {
	How   string
	User  uint32        // 0 for root
	Spins bool          // a thread of it computes
	Limit time.Duration // 0 for Limit
}

// Process is one that hangs, unless it was released.
type Process struct {
	PID      int
	Release  func()          // ends the hang
	Released <-chan struct{} // closed when it has ended
}

// Start starts a process, a copy of this test binary, and returns when the kernel does not answer for it. The end of
// the test ends it.
func Start(t testing.TB, o Options) *Process {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount a FUSE file system")
	}
	if o.Limit == 0 {
		o.Limit = Limit
	}
	dir := t.TempDir()
	file := &file{released: make(chan struct{}), seen: map[int64]int{}}
	root := &fs.Inode{}
	server, err := fs.Mount(dir, root, &fs.Options{
		MountOptions: fuse.MountOptions{AllowOther: true, DirectMountStrict: true, MaxReadAhead: page, Name: "hang"},
		OnAdd: func(ctx context.Context) {
			root.AddChild("file", root.NewPersistentInode(ctx, file, fs.StableAttr{}), false)
		},
	})
	if err != nil {
		t.Skipf("needs FUSE: %v", err)
	}
	release := sync.OnceFunc(func() { close(file.released) })
	end := time.AfterFunc(o.Limit, release)
	t.Cleanup(func() {
		end.Stop()
		release()
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
		server.Wait()
	})
	given, err := os.Open(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe") // other users may start this path, and not that of the binary
	cmd.Env = append(os.Environ(), variable+"="+o.How, "STALLSPAN_TEST_SPIN="+strconv.FormatBool(o.Spins))
	cmd.ExtraFiles, cmd.Stderr = []*os.File{given}, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: o.User, Gid: o.User}, Pdeathsig: unix.SIGKILL,
	}
	begin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	file.holds.Store(true) // not before: to start a program closes files, too
	_ = begin.Close()
	p := &Process{PID: cmd.Process.Pid, Release: release, Released: file.released}
	waits := map[string]string{Memory: "cmdline", Exec: "io"}[o.How]
	var reads sync.WaitGroup
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		release()
		_ = cmd.Wait()
		_ = given.Close()
		reads.Wait()
	})
	for late := false; !late; {
		answer := make(chan struct{})
		reads.Go(func() {
			_, _ = os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), waits))
			close(answer)
		})
		select {
		case <-answer:
			time.Sleep(20 * time.Millisecond)
		case <-time.After(200 * time.Millisecond):
			late = true
		case <-file.released:
			t.Fatal("the process does not hang")
		}
	}
	return p
}

// file is a file whose first page can be read. The reads of others fail at first, so that the kernel tries again with
// the lock of the memory map; then they have no answer until it is released.
type file struct {
	fs.Inode
	released chan struct{}
	holds    atomic.Bool // the ends of its descriptors

	mu   sync.Mutex
	seen map[int64]int // reads, by position
}

var (
	_ fs.NodeOpener    = (*file)(nil)
	_ fs.NodeReader    = (*file)(nil)
	_ fs.NodeFlusher   = (*file)(nil)
	_ fs.NodeGetattrer = (*file)(nil)
)

func (f *file) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) { return nil, 0, 0 }

func (f *file) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Size, out.Mode = size, 0o444
	return 0
}

func (f *file) Flush(context.Context, fs.FileHandle) syscall.Errno {
	if f.holds.Load() {
		<-f.released
	}
	return 0
}

func (f *file) Read(_ context.Context, _ fs.FileHandle, into []byte, at int64) (fuse.ReadResult, syscall.Errno) {
	const failures = 2
	f.mu.Lock()
	f.seen[at]++
	hangs := f.seen[at] > failures
	f.mu.Unlock()
	if !hangs {
		return nil, syscall.EIO
	}
	<-f.released
	return fuse.ReadResultData(into), 0
}

// init makes a copy of the test binary the process that hangs.
func init() {
	how := os.Getenv(variable)
	if how == "" {
		return
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
	debug.SetGCPercent(-1) // it would wait for the lock, too
	if os.Getenv("STALLSPAN_TEST_SPIN") == "true" {
		go func() {
			for spins := 0; ; spins++ { // to no end
			}
		}()
	}
	switch how {
	case Memory:
		holdMemory()
	case Exec:
		unix.CloseOnExec(inherits)
		_ = unix.Exec("/bin/sleep", []string{"sleep", "600"}, os.Environ())
	}
	os.Exit(1)
}

// holdMemory waits for a page with the lock of the memory map: what changes the map waits behind it, and all that come
// after that.
func holdMemory() {
	data, err := unix.Mmap(inherits, 0, size, unix.PROT_READ, unix.MAP_SHARED)
	var ends [2]int
	if err != nil || unix.Pipe(ends[:]) != nil {
		os.Exit(1)
	}
	go func() {
		runtime.LockOSThread()
		for {
			// The kernel reads the page for the call.
			_, _ = unix.Write(ends[1], data[size/2:size/2+1])
			time.Sleep(time.Millisecond)
		}
	}()
	runtime.LockOSThread()
	for {
		if some, err := unix.Mmap(-1, 0, page, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON); err == nil {
			_ = unix.Munmap(some)
		}
		time.Sleep(time.Millisecond)
	}
}

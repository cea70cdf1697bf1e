package monitor

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/stallspan/stallspan/internal/window"
)

// lateFile is a file of 1 MiB whose attributes have no answer until it is released.
type lateFile struct {
	fs.Inode
	released chan struct{}
}

var (
	_ fs.NodeGetattrer = (*lateFile)(nil)
	_ fs.NodeOpener    = (*lateFile)(nil)
)

func (f *lateFile) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, 0, 0
}

func (f *lateFile) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	<-f.released
	out.Mode, out.Size = 0o444, mib
	return 0
}

// What a busy file system says of a load's path only after the load has begun is in its report, and in a replay. A busy
// machine may be late again at the end, so there are a few tries.
func TestLoadOfALatePath(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount a FUSE file system")
	}
	p := newTape(t)
	m := p.ofThisProcess()
	var r *window.Report
	for try := 0; try == 0 || r.Load.Size == 0 && try < 4; try++ {
		folder, file := t.TempDir(), &lateFile{released: make(chan struct{})}
		root := &fs.Inode{}
		server, err := fs.Mount(folder, root, &fs.Options{
			MountOptions: fuse.MountOptions{DirectMountStrict: true},
			OnAdd: func(ctx context.Context) {
				root.AddChild("model", root.NewPersistentInode(ctx, file, fs.StableAttr{}), false)
			},
		})
		if err != nil {
			t.Skipf("needs FUSE: %v", err)
		}
		id, err := m.Windows.Begin(window.Window{Kind: window.ModelLoad, Path: filepath.Join(folder, "model"),
			PID: os.Getpid(), Job: "job"}, m.Now())
		close(file.released)
		if err != nil {
			t.Fatal(err)
		}
		m.Tick()
		if r, err = m.Windows.End(id, m.Now()); err != nil {
			t.Fatal(err)
		}
		if err := server.Unmount(); err != nil {
			t.Fatal(err)
		}
		server.Wait()
	}
	if r.Load.Size != mib || r.Load.HasHit {
		t.Errorf("got %+v, want 1 MiB, and no share of the page cache", r.Load)
	}
	m.Jobs.Unfollow("job")
	m.Stop()
	p.replaysTheSame()
}

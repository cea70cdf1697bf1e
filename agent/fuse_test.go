package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// slowFile is a file on a file system like a network's: every read takes 5 ms, without a block device.
type slowFile struct {
	fs.Inode
}

const slowFileSize = 4 << 20

var (
	_ fs.NodeOpener    = (*slowFile)(nil)
	_ fs.NodeReader    = (*slowFile)(nil)
	_ fs.NodeGetattrer = (*slowFile)(nil)
)

func (f *slowFile) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, 0, 0
}

func (f *slowFile) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size = 0o444, slowFileSize
	return 0
}

func (f *slowFile) Read(_ context.Context, _ fs.FileHandle, dest []byte, _ int64) (fuse.ReadResult, syscall.Errno) {
	time.Sleep(5 * time.Millisecond)
	clear(dest)
	return fuse.ReadResultData(dest), 0
}

// slowMount mounts a FUSE file system with one slow file in it.
func slowMount(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount a FUSE file system")
	}
	dir := t.TempDir()
	root := &fs.Inode{}
	server, err := fs.Mount(dir, root, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "server:/data", Name: "slow", MaxReadAhead: 4096},
		OnAdd: func(ctx context.Context) {
			root.AddChild("data", root.NewPersistentInode(ctx, &slowFile{}, fs.StableAttr{}), false)
		},
	})
	if err != nil {
		t.Skipf("needs FUSE: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestStorageWithoutABlockDevice reads from a file system without a disk: the verdict names the mount and no disk.
// Disks that others use meanwhile may be listed.
func TestStorageWithoutABlockDevice(t *testing.T) {
	if _, err := os.Stat("/proc/pressure/io"); err != nil {
		t.Skipf("needs PSI: %v", err)
	}
	dir := slowMount(t)
	file := filepath.Join(t.TempDir(), "report.json")
	v := stallspan(t, "run", "--report", file, "--", python(t), "-c", `
import sys
print("Epoch 1/1")
with open(sys.argv[1], "rb", buffering=0) as data:
    while data.read(4096):
        pass
`, filepath.Join(dir, "data"))
	if code := v.run(); code != 0 {
		t.Fatalf("exit code %d: %s", code, v.err.String())
	}
	d := readReport(t, file)
	if len(d.Windows) != 1 {
		t.Fatalf("got %+v, want 1 window", d)
	}
	w := d.Windows[0]
	if w.Verdict != "storage_bound" || w.SlowDevice != nil || !strings.Contains(w.Finding, dir) || len(w.Mounts) != 1 ||
		w.Mounts[0].Point != dir || w.Mounts[0].Type != "fuse.slow" {
		t.Errorf("got %+v, want storage_bound by the mount", w)
	}
}

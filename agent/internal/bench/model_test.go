package bench

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

	"github.com/stallspan/stallspan/test/slowdisk"
)

// modelIn makes a model of files in a folder, of 96 MiB and some bytes together.
func modelIn(t *testing.T, folder string) (size uint64) {
	t.Helper()
	for _, name := range []string{"a.safetensors", "b.safetensors"} {
		path := written(t, folder, 48<<20)
		file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString("the end"); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
		size += 48<<20 + 7
	}
	return size
}

func modelOf(t *testing.T, o ModelOptions) *ModelResult {
	t.Helper()
	o.Step = max(o.Step, brief)
	r, err := Model(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range r.Ways {
		if w.Bytes < large || w.Bytes%large != 0 || w.Rate <= 0 || w.Load <= 0 {
			t.Errorf("got %+v, want whole MiB, a rate and a time", w)
		}
	}
	return r
}

func TestModel(t *testing.T) {
	folder := t.TempDir()
	size := modelIn(t, folder)
	r := modelOf(t, ModelOptions{Path: folder, Readers: 3})
	if r.Size != size || r.Files != 2 || r.Path != folder || r.Interrupted || r.FileSystem == "" {
		t.Errorf("got %+v, want two files of %d bytes", r, size)
	}
	if r.InCache != nil && *r.InCache > size+2*4096 {
		t.Errorf("got %d bytes in the page cache, want at most %d", *r.InCache, size)
	}
	direct := r.Of(Direct, false, false) != nil
	for _, cached := range []bool{false, true} {
		for _, how := range []How{Read, Mapped, Direct} {
			for _, several := range []bool{false, true} {
				way, want := r.Of(how, cached, several), how != Direct || direct && !cached
				if want != (way != nil) {
					t.Errorf("%s, cached %v, several %v: got %+v, want one: %v", how, cached, several, way, want)
				}
				if way != nil && several && way.Readers != 3 {
					t.Errorf("got %d readers, want 3", way.Readers)
				}
			}
		}
	}
	if best := r.Reachable(); best == nil || best.Cached {
		t.Errorf("got %+v, want the fastest way from storage", best)
	}
}

// With --keep-cache, what is in the page cache stays there.
func TestModelKeepsTheCache(t *testing.T) {
	folder := t.TempDir()
	size := modelIn(t, folder)
	r := modelOf(t, ModelOptions{Path: folder, KeepCache: true})
	if r.InCache == nil || *r.InCache < size {
		t.Skipf("needs a kernel that reports what is in the page cache: %+v", r)
	}
	for _, w := range r.Ways {
		if !w.Cached && w.How != Direct {
			t.Errorf("got %+v, want O_DIRECT only", w)
		}
	}
	if r.Of(Read, true, false) == nil {
		t.Errorf("got %+v, want a way that reads the page cache", r.Ways)
	}
	if again := modelOf(t, ModelOptions{Path: folder}); *again.InCache < size {
		t.Errorf("got %d bytes in the page cache afterwards, want %d", *again.InCache, size)
	}
}

func TestModelInMemory(t *testing.T) {
	folder, err := os.MkdirTemp("/dev/shm", "stallspan-*")
	if err != nil {
		t.Skip("needs /dev/shm: ", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	modelIn(t, folder)
	r := modelOf(t, ModelOptions{Path: folder})
	if r.Reachable() != nil || len(r.Ways) != 4 || !strings.Contains(strings.Join(r.Notes, ""), "in memory") {
		t.Errorf("got %+v, want only ways from memory", r)
	}
}

func TestModelErrors(t *testing.T) {
	small := filepath.Join(t.TempDir(), "small.gguf")
	if err := os.WriteFile(small, make([]byte, large), 0o600); err != nil {
		t.Fatal(err)
	}
	holes := filepath.Join(t.TempDir(), "holes.gguf")
	if err := os.WriteFile(holes, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(holes, 2*minSize); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]ModelOptions{
		"no model given":                 {},
		"1 readers":                      {Path: small, Readers: 1},
		"a step of 1h":                   {Path: small, Step: time.Hour},
		"the minimum is 64 MiB":          {Path: small},
		"has holes":                      {Path: holes},
		"there is no file or folder":     {Path: small + ".not"},
		"there is no model below":        {Path: "/sys/kernel"},
		"is neither a file nor a folder": {Path: "/dev/null"},
	} {
		if r, err := Model(t.Context(), o); r != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, %v, want %q", o, r, err, want)
		}
	}
}

func TestModelInterrupted(t *testing.T) {
	folder := t.TempDir()
	modelIn(t, folder)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	r, err := Model(ctx, ModelOptions{Path: folder, Step: time.Second, Readers: 2})
	if err != nil || r == nil || !r.Interrupted || len(r.Ways) > 9 {
		t.Errorf("got %+v, %v, want what was measured until then", r, err)
	}
}

// A device that does not answer ends it in time.
func TestModelHangs(t *testing.T) {
	d, path := slow(t, slowdisk.Parallel, 6*time.Second)
	r, err := Model(t.Context(), ModelOptions{Path: path, Step: brief})
	if err == nil || r == nil || !strings.Contains(err.Error(), "has not answered") {
		t.Errorf("got %+v, %v, want that it does not answer", r, err)
	}
	if err := d.Fast(); err != nil {
		t.Error(err)
	}
}

// far is a file on a file system like a network's: each read of up to 128 KiB takes a while, many at once are served.
type far struct{ fs.Inode }

const (
	farSize  = 96 << 20
	farDelay = 30 * time.Millisecond // long, so that the page cache is faster on the busiest machine, too
)

var (
	_ fs.NodeOpener    = (*far)(nil)
	_ fs.NodeReader    = (*far)(nil)
	_ fs.NodeGetattrer = (*far)(nil)
)

func (f *far) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_KEEP_CACHE, 0
}

func (f *far) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size, out.Blocks = 0o444, farSize, farSize/512
	return 0
}

func (f *far) Read(_ context.Context, _ fs.FileHandle, dest []byte, _ int64) (fuse.ReadResult, syscall.Errno) {
	time.Sleep(farDelay)
	clear(dest)
	return fuse.ReadResultData(dest), 0
}

// Storage behind a network serves many readers at once: several are much faster than one.
func TestModelBehindANetwork(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount a FUSE file system")
	}
	dir := t.TempDir()
	root := &fs.Inode{}
	server, err := fs.Mount(dir, root, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "server:/models", Name: "far", MaxBackground: 64},
		OnAdd: func(ctx context.Context) {
			root.AddChild("model.gguf", root.NewPersistentInode(ctx, &far{}, fs.StableAttr{}), false)
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
	options := ModelOptions{Path: filepath.Join(dir, "model.gguf"), Readers: 16, Step: 500 * time.Millisecond}
	r := modelOf(t, options)
	isSlower := func() bool { // the page cache
		best, cached := r.Reachable(), r.Of(Read, true, false)
		return best == nil || cached == nil || cached.Rate < best.Rate
	}
	for again := 0; again < 3 && isSlower(); again++ { // other programs took the cores: measure again
		r = modelOf(t, options)
	}
	for _, how := range []How{Read, Mapped} {
		one, many := r.Of(how, false, false), r.Of(how, false, true)
		if one == nil || many == nil || many.Rate < 1.3*one.Rate { // two cores that are busy
			t.Errorf("%s: got %+v and %+v, want several readers faster by a third", how, one, many)
		}
	}
	if isSlower() {
		t.Errorf("got %+v from storage and %+v from the page cache, want the latter faster", r.Reachable(),
			r.Of(Read, true, false))
	}
	if !strings.Contains(r.FileSystem, "server:/models") || r.Device != "" {
		t.Errorf("got %q, disk %q, want the server and no disk", r.FileSystem, r.Device)
	}
}

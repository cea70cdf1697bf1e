package slowdisk

import (
	"context"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// largest is the maximum size of a FUSE request, in bytes (256 pages).
const largest = 1 * mib

// node is a file or folder of the server. It passes requests to the backing folder; reads, writes and flushes take as
// long as the pacer requires. Lookup, open and list take no time.
type node struct {
	*fs.LoopbackNode
	pacer *pacer
	flags uint32 // of fuse.OpenOut, for every file
}

var (
	_ fs.NodeWrapChilder = (*node)(nil)
	_ fs.NodeOpener      = (*node)(nil)
	_ fs.NodeCreater     = (*node)(nil)
)

// WrapChild makes every file and folder below a node a node.
func (n *node) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	if plain, ok := child.(*fs.LoopbackNode); ok {
		return &node{plain, n.pacer, n.flags}
	}
	return child
}

// Open opens a file.
func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	handle, _, errno := n.LoopbackNode.Open(ctx, flags&^syscall.O_DIRECT) // the backing file system may not support it
	return n.wrap(handle), n.flags, errno
}

// Create makes a file and opens it.
func (n *node) Create(
	ctx context.Context,
	name string,
	flags, mode uint32,
	out *fuse.EntryOut,
) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	child, handle, _, errno := n.LoopbackNode.Create(ctx, name, flags&^syscall.O_DIRECT, mode, out)
	return child, n.wrap(handle), n.flags, errno
}

func (n *node) wrap(handle fs.FileHandle) fs.FileHandle {
	if plain, ok := handle.(*fs.LoopbackFile); ok {
		return &file{plain, n.pacer}
	}
	return handle
}

// file is an open file that answers late.
type file struct {
	*fs.LoopbackFile
	pacer *pacer
}

var (
	_ fs.FileReader  = (*file)(nil)
	_ fs.FileWriter  = (*file)(nil)
	_ fs.FileFsyncer = (*file)(nil)
)

// Read is one request. It gets the bytes before it waits, so that little work is left afterwards.
func (f *file) Read(ctx context.Context, into []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	end := f.pacer.done(monotonic(), len(into))
	found, errno := f.LoopbackFile.Read(ctx, into, offset)
	if errno != fs.OK {
		return nil, errno
	}
	data, status := found.Bytes(into)
	sleep(end)
	return fuse.ReadResultData(data), syscall.Errno(status)
}

// Write is one request.
func (f *file) Write(ctx context.Context, data []byte, offset int64) (uint32, syscall.Errno) {
	end := f.pacer.done(monotonic(), len(data))
	written, errno := f.LoopbackFile.Write(ctx, data, offset)
	sleep(end)
	return written, errno
}

// Fsync is one request without data. It flushes nothing, because the backing file is lost with the process anyway.
func (f *file) Fsync(context.Context, uint32) syscall.Errno {
	sleep(f.pacer.done(monotonic(), 0))
	return fs.OK
}

// show mounts the folder backing at the folder point. The file of a device is never cached above the server. The files
// of a network are cached, also after they are closed, until they change.
func show(o order, p *pacer) (*fuse.Server, error) {
	root, err := fs.NewLoopbackRoot(o.Backing)
	if err != nil {
		return nil, err
	}
	plain, _ := root.(*fs.LoopbackNode)
	top := &node{LoopbackNode: plain, pacer: p, flags: fuse.FOPEN_KEEP_CACHE}
	if o.Uncached {
		top.flags = fuse.FOPEN_DIRECT_IO | fuse.FOPEN_PARALLEL_DIRECT_WRITES
	}
	options := &fs.Options{MountOptions: fuse.MountOptions{
		Name:                 "slow",
		FsName:               "slow",
		AllowOther:           true,
		Options:              []string{"default_permissions"},
		DirectMountStrict:    true,
		MaxBackground:        1024, // the pacer limits requests in flight
		MaxWrite:             largest,
		DisableSplice:        true, // pipes cannot be that large
		ExtraCapabilities:    fuse.CAP_ASYNC_DIO,
		DisabledCapabilities: fuse.CAP_PASSTHROUGH, // reads would bypass the server
	}}
	return fs.Mount(o.Point, top, options)
}

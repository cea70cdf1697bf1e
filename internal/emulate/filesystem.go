package emulate

// FileSystem describes the file system of a folder, for a program that wants to wait for a disk.
type FileSystem struct {
	Name     string // "ext4", "nfs", or the kernel's magic number if it has no name here
	InMemory bool   // no read ever reaches a disk
	Remote   bool   // a server, the host or a FUSE program holds the data: reads appear on no local disk
	Free     int64  // bytes free for an unprivileged user; -1 if unknown
	Block    int64  // minimum bytes that a read fetches
}

package emulate

// FileSystem is what a folder lies on, as far as it matters to somebody who wants to wait for a disk.
type FileSystem struct {
	Name     string // "ext4", "nfs", or the kernel's magic number where that is all there is
	InMemory bool   // nothing in it is ever read from a disk
	Remote   bool   // a server, the host or a FUSE program holds the data: the reads show on no disk of this machine
	Free     int64  // bytes an unprivileged user may still write; -1 where the file system does not say
	Block    int64  // bytes that a read fetches at least
}

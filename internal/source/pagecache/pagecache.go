// Package pagecache reports how much of a file, or of the files of a folder, is in the page cache.
package pagecache

import "errors"

// Bounds of Look for a folder.
const (
	maxFiles   = 256
	maxEntries = 1024
	maxDepth   = 4
)

// Held is the result of Look.
type Held struct {
	Size   uint64 // bytes of the file, or of all regular files of the folder
	Cached uint64 // bytes of them in the page cache, in whole pages, if Known
	// Sampled is true if Cached may be extrapolated from the beginning of each 256 MiB of a file.
	Sampled bool
	Known   bool // the kernel reported every file, which needs ownership, write permission or privileges
}

var (
	errSlow     = errors.New("it takes too long")
	errMany     = errors.New("the folder has too many files")
	errKind     = errors.New("it is neither a regular file nor a folder")
	errRelative = errors.New("the path is not absolute")
)

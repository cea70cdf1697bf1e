// Package pagecache says how much of a file, or of the files of a folder, the page cache holds.
package pagecache

import "errors"

// Bounds of a look at a folder.
const (
	mostFiles   = 256
	mostEntries = 1024
	mostDepth   = 4
)

// Held is what Look found.
type Held struct {
	Size   uint64 // bytes of the file, or of all regular files of the folder
	Cached uint64 // bytes of them in the page cache, to the page, where Known
	Known  bool   // whether the kernel told of every file: it does so to those who may write it, own it or are privileged
}

var (
	errMany     = errors.New("the folder holds more files than are looked at")
	errKind     = errors.New("it is neither a regular file nor a folder")
	errRelative = errors.New("the path does not begin with a /")
)

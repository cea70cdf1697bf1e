//go:build !linux || !(amd64 || arm64)

package kernfile

import (
	"os"
	"path/filepath"
)

// Brief is a folder of /proc that is open for one look at it.
type Brief struct{ Folder }

// OpenFolderBrief opens a folder, until Close.
func OpenFolderBrief(path string) (Brief, error) {
	f, err := OpenFolder(path)
	return Brief{f}, err
}

// EachName calls yield for up to limit names in the folder. A name is valid during the call. Call it once.
func (f Brief) EachName(limit int, yield func(name []byte)) error {
	names, err := f.Names(limit)
	for _, name := range names {
		yield([]byte(name))
	}
	return err
}

// Link returns what a link in the folder points to, up to len(buf) bytes. It is in buf.
func (f Brief) Link(name, buf []byte) ([]byte, error) {
	to, err := os.Readlink(filepath.Join(f.path, string(name)))
	return buf[:copy(buf, to)], err
}

// FD is the folder's descriptor, for other calls.
func (f Brief) FD() int { return f.fd }

// ReadPieceBrief is ReadPiece for a file whose text the kernel makes at once.
func ReadPieceBrief(path string, buf []byte) ([]byte, error) { return ReadPiece(path, buf) }

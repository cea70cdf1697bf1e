package check

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// maxFile bounds a file of a bundle, in bytes. The end of a longer one is left out.
const maxFile = 4 << 20

// bundle is a tar archive that gzip compresses. Its user alone may read it.
type bundle struct {
	file *os.File
	gzip *gzip.Writer
	tar  *tar.Writer
	made time.Time
}

// createBundle makes a bundle. It never replaces a file, and follows no link.
func createBundle(path string) (*bundle, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	b := &bundle{file: file, gzip: gzip.NewWriter(file), made: time.Now()}
	b.tar = tar.NewWriter(b.gzip)
	return b, nil
}

// add adds a file.
func (b *bundle) add(name, text string) error {
	if len(text) > maxFile {
		text = text[:maxFile]
	}
	header := &tar.Header{Name: "stallspan-support/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: b.made}
	if err := b.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if _, err := b.tar.Write([]byte(text)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// close ends the bundle.
func (b *bundle) close() error {
	for _, end := range []func() error{b.tar.Close, b.gzip.Close, b.file.Close} {
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}

package trust

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxSecret is the limit of a secret, in bytes.
const maxSecret = 4 << 10

// Secret reads a key from a file that is not open to all users. setting is what the user calls the file, for errors.
func Secret(setting, path string) ([]byte, error) {
	if !filepath.IsAbs(path) {
		return nil, errors.New(setting + " needs an absolute path")
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // opening a pipe would block
		return nil, fmt.Errorf("%s %s is not a regular file", setting, path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the secret: %w", err)
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o007 != 0 {
		return nil, fmt.Errorf("%s %s is open to all users: run chmod o= on it", setting, path)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the secret: %w", err)
	}
	if len(text) > maxSecret {
		return nil, fmt.Errorf("%s %s is larger than %d KiB: is it the right file?", setting, path, maxSecret>>10)
	}
	return bytes.TrimRight(text, "\r\n"), nil
}

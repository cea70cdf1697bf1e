// Package state reads and writes the small JSON files that a program leaves for later ones. Several processes may
// share a file. A file is replaced as a whole, so that a killed program leaves the old text or the new one. Nothing is
// overwritten that cannot be read: it is renamed, and a new file begins.
//
// A file has the form {"version":1,"checksum":"9ae3c2d1","NAME":...}. The checksum is the CRC-32C of the value in
// compact form. It is optional.
package state

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/trust"
)

const (
	defaultMaxSize = 16 << 20 // bytes
	defaultWait    = 5 * time.Second
	folderMode     = 0o700
)

// File is a state file that holds a T. It is not safe for concurrent use within a process.
type File[T any] struct {
	Path    string
	Name    string        // key of the value in the file
	Version int           // of the value's form
	MaxSize int           // bytes; 16 MiB if 0
	Wait    time.Duration // for the lock of other processes; 5 s if 0

	// Owned is set if any unusable file at Path may be renamed. Otherwise a file of unknown content stays where it is,
	// because the path may be a mistake of the user.
	Owned bool
	// Check refuses a value that no version could have written. It may be nil.
	Check func(T) error
	// Report receives one line for each file that was quarantined. If Report is nil, an unusable file stays and is an
	// error.
	Report func(error)

	seen os.FileInfo // of the file at the last Load or Update; nil if it did not exist
}

// Damage is the error of a file that cannot be used.
type Damage struct {
	Kind string // part of the name under which the file is renamed: "corrupt", "newer-2"
	Err  error
}

func (d *Damage) Error() string { return d.Err.Error() }
func (d *Damage) Unwrap() error { return d.Err }

// ErrForeign is the error of a file that this package has not written.
var ErrForeign = errors.New("it is not a state file of stallspan and stays as it is: choose another path")

// Load returns the value of the file, or the zero value if the file does not exist. It quarantines a file that cannot
// be used if Report is set.
func (f *File[T]) Load() (T, error) {
	info, _ := os.Stat(f.Path)
	f.seen = nil // if it cannot be read, it counts as changed
	value, err := f.read()
	if err == nil {
		f.seen = info
	}
	if f.Report == nil || !errors.As(err, new(*Damage)) {
		return value, err
	}
	unlock, err := f.lock()
	if err != nil {
		return value, err
	}
	defer unlock()
	return f.readOrQuarantine()
}

// Update applies change to the value of the file, writes the result and returns it. Other processes wait meanwhile. The
// file and its folder are created if needed. If change returns an error, the file stays as it is.
func (f *File[T]) Update(change func(*T) error) (T, error) {
	var zero T
	if err := os.MkdirAll(filepath.Dir(f.Path), folderMode); err != nil {
		return zero, reason(err)
	}
	unlock, err := f.lock()
	if err != nil {
		return zero, err
	}
	defer unlock()
	value, err := f.readOrQuarantine()
	if err != nil {
		return zero, err
	}
	if err := change(&value); err != nil {
		return zero, err
	}
	text, err := f.format(value)
	if err != nil {
		return zero, err
	}
	if err := Replace(f.Path, text); err != nil {
		return zero, reason(err)
	}
	f.seen, _ = os.Stat(f.Path)
	return value, nil
}

// Changed reports whether the file was written or replaced since the last Load or Update.
func (f *File[T]) Changed() bool {
	info, err := os.Stat(f.Path)
	if err != nil || f.seen == nil {
		return err == nil
	}
	return !os.SameFile(info, f.seen) || !info.ModTime().Equal(f.seen.ModTime()) || info.Size() != f.seen.Size()
}

// lock waits for the lock file next to the file. It is another file because the file itself is replaced.
func (f *File[T]) lock() (unlock func(), err error) {
	path, err := trust.Follow(f.Path)
	if err != nil {
		return nil, reason(err)
	}
	folder, base := filepath.Split(path)
	file, err := openLock(filepath.Join(folder, "."+base+".lock"))
	if err != nil {
		return nil, reason(err)
	}
	if err := Lock(file, cmp.Or(f.Wait, defaultWait)); err != nil {
		_ = file.Close()
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}

func (f *File[T]) readOrQuarantine() (T, error) {
	value, err := f.read()
	var damage *Damage
	if f.Report == nil || !errors.As(err, &damage) {
		return value, err
	}
	name, moved := Quarantine(f.Path, damage.Kind)
	if moved != nil {
		return value, fmt.Errorf("%w; it cannot be renamed (%w): move it away", err, reason(moved))
	}
	f.Report(fmt.Errorf("%s cannot be used: %w; it is now %s, and a new file begins", f.Path, err, name))
	return value, nil
}

func (f *File[T]) maxSize() int { return cmp.Or(f.MaxSize, defaultMaxSize) }

func (f *File[T]) read() (value T, err error) {
	info, err := os.Stat(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return value, nil
	case err != nil:
		return value, reason(err)
	case !info.Mode().IsRegular(): // opening a pipe would block
		return value, errors.New("it is not a regular file: choose another path")
	}
	file, err := os.Open(f.Path)
	if err != nil {
		return value, reason(err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, int64(f.maxSize())+1))
	if err != nil {
		return value, reason(err)
	}
	return f.parse(text)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// beginning is the start of every file, if white space is left out.
const beginning = `{"version":`

func (f *File[T]) parse(text []byte) (value T, err error) {
	if len(text) == 0 { // as from mktemp
		return value, nil
	}
	begins := bytes.HasPrefix(bytes.Join(bytes.Fields(text[:min(len(text), 64)]), nil), []byte(beginning))
	switch {
	case !begins && !f.Owned:
		return value, ErrForeign
	case len(text) > f.maxSize():
		return value, corrupt("it has more than %d bytes", f.maxSize())
	}
	var document map[string]json.RawMessage
	if err := json.Unmarshal(text, &document); err != nil {
		return value, corrupt("it is cut or damaged: %w", err)
	}
	version, err := strconv.Atoi(string(document["version"]))
	switch {
	case err != nil || version < 1:
		return value, corrupt("its version is %.20q", document["version"])
	case version > f.Version:
		return value, &Damage{"newer-" + strconv.Itoa(version),
			fmt.Errorf("its version is %d, and this program reads up to %d", version, f.Version)}
	case document[f.Name] == nil:
		return value, corrupt("it holds no %q", f.Name)
	}
	if sum := document["checksum"]; sum != nil && string(sum) != strconv.Quote(checksum(document[f.Name])) {
		return value, corrupt("its checksum does not match")
	}
	if err := json.Unmarshal(document[f.Name], &value); err != nil {
		return *new(T), corrupt("%q cannot be read: %w", f.Name, err)
	}
	if f.Check != nil {
		if err := f.Check(value); err != nil {
			return *new(T), &Damage{"corrupt", err}
		}
	}
	return value, nil
}

func (f *File[T]) format(value T) ([]byte, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	text := fmt.Appendf(nil, `%s%d,"checksum":%q,%q:%s}`+"\n", beginning, f.Version, checksum(body), f.Name, body)
	if len(text) > f.maxSize() {
		return nil, fmt.Errorf("it would have %d bytes, more than %d", len(text), f.maxSize())
	}
	return text, nil
}

// checksum returns the CRC-32C of a JSON value in compact form, in hexadecimal digits.
func checksum(value []byte) string {
	var compact bytes.Buffer
	_ = json.Compact(&compact, value) // valid JSON: it was parsed or marshaled
	return fmt.Sprintf("%08x", crc32.Checksum(compact.Bytes(), castagnoli))
}

func corrupt(format string, args ...any) error {
	return &Damage{"corrupt", fmt.Errorf(format, args...)}
}

// reason removes the path from an error: callers name the file, and the path may be that of a temporary file.
func reason(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

package drives

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/statefile"
)

// The file is one line that says what it is, with a checksum of the rest, and then JSON. It is small and written every ten
// minutes as a whole, under another name that becomes its own when all is on the disk: a crash leaves the old one or the
// new one. One program writes it. That is why it is no bucket of the baselines' database: many programs share that one,
// and a change of either would touch the other.
const (
	version    = 1
	heading    = "stallspan drives"
	mostFile   = 16 << 20 // bytes; a shelf of 24 drives takes about 150 KiB
	folderMode = 0o700
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// damage is a file that cannot be used and has to make room for another.
type damage struct {
	kind string // with which it is set aside: "corrupt", "newer-2"
	why  error
}

func (d *damage) Error() string { return d.why.Error() }
func (d *damage) Unwrap() error { return d.why }

func corrupt(format string, args ...any) error {
	return &damage{"corrupt", fmt.Errorf(format, args...)}
}

// read gives what is in the file; nothing of one that is not there. The error is a *damage for one that cannot be used.
func read(path string) (map[string]*Record, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return map[string]*Record{}, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // to open a pipe would be to wait
		return nil, errors.New("it is no file")
	case info.Size() > mostFile:
		return nil, corrupt("it has %d bytes, more than can be in it", info.Size())
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, mostFile+1))
	if err != nil {
		return nil, err
	}
	return parse(text)
}

func parse(text []byte) (map[string]*Record, error) {
	line, body, found := bytes.Cut(text, []byte("\n"))
	rest, isOurs := strings.CutPrefix(string(line[:min(len(line), 80)]), heading+" ")
	v, sum, _ := strings.Cut(rest, " ")
	number, err := strconv.Atoi(v)
	switch {
	case !found || !isOurs || err != nil || number < 1:
		return nil, corrupt("it is no history of drives")
	case number > version:
		return nil, &damage{"newer-" + v, fmt.Errorf("its version is %d, and this program knows %d", number, version)}
	case fmt.Sprintf("%08x", crc32.Checksum(body, castagnoli)) != sum:
		return nil, corrupt("it is not what was written")
	}
	known := map[string]*Record{}
	if err := json.Unmarshal(body, &known); err != nil {
		return nil, corrupt("it is not what was written: %w", err)
	}
	for id, r := range known {
		if r == nil || id == "" || r.Drive.ID != id {
			return nil, corrupt("it is not what was written: %.80q is no drive's", id)
		}
	}
	return known, nil
}

func format(known map[string]*Record) ([]byte, error) {
	body, err := json.Marshal(known)
	if err != nil {
		return nil, err
	}
	return append(fmt.Appendf(nil, "%s %d %08x\n", heading, version, crc32.Checksum(body, castagnoli)), body...), nil
}

// write puts a new file into the place of the old one.
func write(path string, known map[string]*Record) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s cannot be written, so the growth of drives' errors is known since this start alone: %w", path, err)
		}
	}()
	text, err := format(known)
	if err != nil {
		return err
	}
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, folderMode); err != nil {
		return err
	}
	return statefile.Replace(path, text)
}

// setAside gives a file that cannot be used another name, and says so. One that only could not be read stays.
func setAside(path string, why error) error {
	var bad *damage
	if !errors.As(why, &bad) {
		return fmt.Errorf("%s cannot be read, so nothing is known of earlier days: %w", path, why)
	}
	name, err := statefile.Aside(path, bad.kind)
	if err != nil {
		return fmt.Errorf("%s cannot be used (%w) and cannot be set aside (%w): move it away", path, why, err)
	}
	return fmt.Errorf("%s cannot be used: %w. It is kept as %s, and the history of drives starts over", path, why, name)
}

// Forget takes drives out of the history at path: those with that ID, serial number or device. It gives them. Of several
// that had one device, that which has it now is no drive that was taken out: it stays.
func Forget(path, which string) ([]sample.Drive, error) {
	known, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("the history of drives in %s cannot be used: %w", path, err)
	}
	var named, at []*Record
	var newest time.Time
	for id, r := range known {
		switch {
		case id == which || r.Drive.Serial == which:
			named = append(named, r)
		case r.Drive.Device == strings.TrimPrefix(which, "/dev/"):
			at = append(at, r)
			if r.Seen.After(newest) {
				newest = r.Seen
			}
		}
	}
	if several := len(at); len(named) == 0 {
		named = slices.DeleteFunc(at, func(r *Record) bool { return several > 1 && r.Seen.Equal(newest) })
		if several > 0 && len(named) == 0 {
			return nil, fmt.Errorf("%d drives are at %s now: name the one to forget by its serial number", several, which)
		}
	}
	if len(named) == 0 {
		return nil, fmt.Errorf("nothing is known of a drive %q in %s", which, path)
	}
	var forgotten []sample.Drive
	for _, r := range named {
		forgotten = append(forgotten, r.Drive)
		delete(known, r.Drive.ID)
	}
	return forgotten, write(path, known)
}

package store

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/state"
	"github.com/stallspan/stallspan/internal/trust"
)

// A file has the name of its UTC day, and a number if the day has several.
var fileName = regexp.MustCompile(`^([0-9]{4}-[0-9]{2}-[0-9]{2})(?:\.([0-9]{1,4}))?\.history$`)

// File is one file of a folder.
type File struct {
	Path string
	Day  time.Time // its begin
	Part int       // from 1
	Size int64     // bytes
}

// folderName is that of the folder next to the file of baselines.
const folderName = "history"

// FolderNextTo returns the folder of an agent that has its baselines in a file.
func FolderNextTo(baselines string) string { return filepath.Join(filepath.Dir(baselines), folderName) }

func pathOf(folder string, day time.Time, part int) string {
	name := day.Format(time.DateOnly)
	if part > 1 {
		name += "." + strconv.Itoa(part)
	}
	return filepath.Join(folder, name+".history")
}

func dayOf(at time.Time) time.Time { return at.UTC().Truncate(24 * time.Hour) }

// Files lists the files of a folder, the oldest first. Other files do not count.
func Files(folder string) ([]File, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var all []File
	for _, e := range entries {
		parts := fileName.FindStringSubmatch(e.Name())
		if parts == nil || !e.Type().IsRegular() {
			continue
		}
		day, err := time.Parse(time.DateOnly, parts[1])
		info, gone := e.Info()
		if err != nil || gone != nil {
			continue
		}
		part, _ := strconv.Atoi(parts[2])
		all = append(all, File{filepath.Join(folder, e.Name()), day, max(1, part), info.Size()})
	}
	slices.SortFunc(all, func(a, b File) int { return cmp.Or(a.Day.Compare(b.Day), cmp.Compare(a.Part, b.Part)) })
	return all, nil
}

// late is how much later than its own time something may be written.
const late = 2 * time.Hour

// holds reports whether a file may have something between two times; zero for no limit.
func (f *File) holds(from, until time.Time) bool {
	return (from.IsZero() || f.Day.Add(24*time.Hour).After(from)) && (until.IsZero() || f.Day.Add(-late).Before(until))
}

// open opens a file of a folder, and no link to another one. A file to be written is not someone else's.
func open(path string, flags int) (*os.File, error) {
	if flags&os.O_RDWR != 0 {
		if target, err := trust.Follow(path); err != nil {
			return nil, err
		} else if target != path {
			return nil, fmt.Errorf("%s is a link: move it away", path)
		}
	}
	file, err := os.OpenFile(path, flags|syscall.O_NOFOLLOW|syscall.O_CLOEXEC|syscall.O_NONBLOCK, fileMode)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, fmt.Errorf("%s is not a regular file: move it away", path)
	}
	return file, nil
}

// create creates a file that does not exist.
func create(path string) (*os.File, error) {
	file, err := open(path, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err == nil {
		state.LikeFolder(file)
	}
	return file, err
}

// makeFolder creates a folder, and those above it.
func makeFolder(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.Mkdir(path, folderMode); err != nil {
		return err
	}
	folder, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	state.LikeFolder(folder)
	return folder.Close()
}

// Each calls take with each file that may have something between two times, the oldest first. A file that is removed
// meanwhile, because of its age, is left out.
func Each(folder string, from, until time.Time, take func(path string, file io.Reader) error) error {
	files, err := Files(folder)
	if err != nil {
		return err
	}
	for i := range files {
		if !files[i].holds(from, until) {
			continue
		}
		file, err := open(files[i].Path, os.O_RDONLY)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		err = take(files[i].Path, file)
		_ = file.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

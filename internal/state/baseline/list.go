package baseline

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stallspan/stallspan/internal/state"
)

// Entry is a record with its key.
type Entry struct {
	Key Key
	Record
}

// List returns all records of a file, sorted by key. A missing file has none. A file that cannot be used stays as it
// is.
func List(path string) ([]Entry, error) {
	all, err := newFile(path, nil).Load()
	if err != nil {
		return nil, fmt.Errorf("cannot read the baselines in %s: %w%s", path, err, advice(err))
	}
	return all.entries(), nil
}

// advice returns what to do about a file that cannot be used.
func advice(err error) string {
	var damage *state.Damage
	switch {
	case !errors.As(err, &damage):
		return ""
	case strings.HasPrefix(damage.Kind, "newer"):
		return ": update stallspan, or choose another file with --file"
	}
	return ": the next run renames it, and learning starts over"
}

func (all records) entries() []Entry {
	list := make([]Entry, 0, len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		list = append(list, Entry{key, *all[key]})
	}
	return list
}

// Reset deletes the records for which match returns true, and returns them.
func Reset(path string, match func(Entry) bool) (deleted []Entry, err error) {
	if listed, err := List(path); err != nil || !slices.ContainsFunc(listed, match) {
		return nil, err // no file is created or written for nothing
	}
	_, err = newFile(path, nil).Update(func(all *records) error {
		for _, e := range all.entries() {
			if match(e) {
				delete(*all, e.Key)
				deleted = append(deleted, e)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot change the baselines in %s: %w", path, err)
	}
	return deleted, nil
}

// Find returns the entries that match a text from the command line.
func Find(all []Entry, text string) []Entry {
	return slices.DeleteFunc(slices.Clone(all), func(e Entry) bool { return !e.Matches(text) })
}

// Matches reports whether a text is the entry's key or its name: the model, the run, or the path of a file.
func (e Entry) Matches(text string) bool {
	name := e.Key.Name()
	if string(e.Key) == text || name == text {
		return true
	}
	at := strings.LastIndex(name, " (")
	return at > 0 && strings.HasSuffix(name, " bytes)") && name[:at] == text
}

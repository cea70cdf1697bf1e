package baseline

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/state"
	"github.com/stallspan/stallspan/internal/trust"
)

const version = 1 // of the file

// observation is one window that ended.
type observation struct {
	key  Key
	took time.Duration
	slow bool
	at   time.Time
}

// records are all records of a file.
type records map[Key]*Record

// learn adds a window. A slow one alone creates no record, because there is nothing to compare it with.
func (all records) learn(o observation) {
	r := all[o.key]
	if r == nil {
		if o.slow {
			return
		}
		r = &Record{}
		all[o.key] = r
	}
	r.learn(o.took, o.slow, o.at)
}

// trim drops the keys beyond MaxEach of each client, and those beyond MaxKeys, that were seen longest ago. All users of
// a container are one there (trust.Sharer). The keys of the user of this program go last.
func (all records) trim() {
	own := func(k Key) int {
		if k.Client() == "" {
			return 1
		}
		return 0
	}
	keys := slices.SortedFunc(maps.Keys(all), func(a, b Key) int {
		return cmp.Or(cmp.Compare(own(a), own(b)), all[a].Last.Compare(all[b].Last), cmp.Compare(a, b))
	})
	each := map[string]int{}
	for _, key := range keys {
		each[trust.Sharer(key.Client())]++
	}
	for _, key := range keys {
		client := trust.Sharer(key.Client())
		if len(all) > MaxKeys || client != "" && each[client] > MaxEach {
			delete(all, key)
			each[client]--
		}
	}
}

// correct sets times that are ahead of the clock to the present time. They are from a clock that was wrong, and would
// never be the oldest.
func (all records) correct(now time.Time) {
	now = now.UTC().Truncate(time.Second)
	for _, r := range all {
		if r.Last.After(now) {
			r.Last = now
		}
	}
}

func check(all records) error {
	for key, r := range all {
		if err := r.check(key); err != nil {
			return err
		}
	}
	return nil
}

// newFile returns the state file at a path. A file of unknown content is quarantined only if its name shows that it is
// one of stallspan.
func newFile(path string, report func(error)) *state.File[records] {
	return &state.File[records]{
		Path: path, Name: "baselines", Version: version, Wait: maxWait, Report: report,
		Owned: filepath.Base(path) == fileName, Check: check,
	}
}

const fileName = "baseline.json"

// DefaultPath returns the path of the file if no other is configured. The folder is $XDG_STATE_HOME/stallspan if that
// variable is an absolute path, /var/lib/stallspan for root (because of sudo, where HOME may be of a user), and
// ~/.local/state/stallspan for other users.
func DefaultPath() (string, error) {
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "stallspan", fileName), nil
	}
	if os.Geteuid() == 0 {
		return filepath.Join("/var/lib/stallspan", fileName), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("there is no home folder for the baselines: set XDG_STATE_HOME")
	}
	return filepath.Join(home, ".local/state/stallspan", fileName), nil
}

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

// Matches reports whether a text is the entry's key or its name: the model, the run, or the path of a file.
func (e Entry) Matches(text string) bool {
	name := e.Key.Name()
	if string(e.Key) == text || name == text {
		return true
	}
	at := strings.LastIndex(name, " (")
	return at > 0 && strings.HasSuffix(name, " bytes)") && name[:at] == text
}

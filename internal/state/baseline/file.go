package baseline

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/state"
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

// trim drops the keys beyond MaxEach of each client, and those beyond MaxKeys, that were seen longest ago. Those of the
// user of this program go last.
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
		each[key.Client()]++
	}
	for _, key := range keys {
		client := key.Client()
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
		Owned: filepath.Base(path) == fileName || filepath.Ext(path) == filepath.Ext(databaseName),
		Check: check, Old: refuseDatabase,
	}
}

// refuseDatabase recognizes the bbolt database of earlier versions, which is not converted: it can be learned again.
func refuseDatabase(text []byte) (records, error) {
	const at, magic = 16, 0xED0CDAED // of the first meta page
	if len(text) >= at+4 && binary.NativeEndian.Uint32(text[at:]) == magic {
		return nil, &state.Damage{Kind: "old", Err: errors.New("it is the database of an earlier version")}
	}
	return nil, state.ErrForeign
}

// retireDatabase renames the database of earlier versions next to the file at path.
func retireDatabase(path string, report func(error)) {
	database := filepath.Join(filepath.Dir(path), databaseName)
	if filepath.Base(path) != fileName {
		return
	}
	if info, err := os.Lstat(database); err != nil || !info.Mode().IsRegular() {
		return
	}
	if name, err := state.Quarantine(database, "old"); err == nil { // else another process was first, or may not write
		report(fmt.Errorf("%s is the database of an earlier version: it is now %s, and learning starts over", database, name))
	}
}

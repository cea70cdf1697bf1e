package baseline

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

// observation is one window that ended.
type observation struct {
	key  Key
	took time.Duration
	slow bool
	at   time.Time
}

// records are all of a file's, by key.
type records map[Key]*Record

// learn adds a window. A slow one alone makes no record: nothing would be in it.
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

// excess lists the keys beyond MostKeys, those that were seen longest ago.
func (all records) excess() []Key {
	if len(all) <= MostKeys {
		return nil
	}
	keys := slices.SortedFunc(maps.Keys(all), func(a, b Key) int {
		return cmp.Or(all[a].Last.Compare(all[b].Last), cmp.Compare(a, b))
	})
	return keys[:len(keys)-MostKeys]
}

// readAll reads every record. One that is not what was written makes the whole file damaged.
func readAll(tx *bbolt.Tx) (records, error) {
	all := records{}
	bucket := tx.Bucket(recordBucket)
	if bucket == nil || tx.Bucket(aboutBucket) == nil {
		return all, nil
	}
	err := bucket.ForEach(func(key, value []byte) error {
		r, err := decode(key, value)
		if err != nil {
			return &damage{"corrupt", fmt.Errorf("%w: %.80q", err, key)}
		}
		all[Key(key)] = r
		return nil
	})
	if said := string(tx.Bucket(aboutBucket).Get(countKey)); err == nil && said != strconv.Itoa(len(all)) {
		err = &damage{"corrupt", fmt.Errorf("of %.20q records there are %d", said, len(all))}
	}
	return all, err
}

// apply writes what was observed into the file, on top of what other programs have written, and gives all that it holds
// then.
func apply(tx *bbolt.Tx, batch []observation) (records, error) {
	all, err := readAll(tx)
	if err != nil {
		return nil, err
	}
	bucket, err := tx.CreateBucketIfNotExists(recordBucket)
	if err != nil {
		return nil, err
	}
	changed := map[Key]bool{}
	for _, o := range batch {
		all.learn(o)
		changed[o.key] = true
	}
	for _, key := range all.excess() {
		delete(all, key)
		delete(changed, key)
		if err := bucket.Delete([]byte(key)); err != nil {
			return nil, err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(changed)) {
		if all[key] == nil {
			continue
		}
		if err := bucket.Put([]byte(key), all[key].encode(key)); err != nil {
			return nil, err
		}
	}
	return all, tx.Bucket(aboutBucket).Put(countKey, []byte(strconv.Itoa(len(all))))
}

// Entry is a record with its key.
type Entry struct {
	Key Key
	Record
}

// patience is for how long a command waits for other programs to give the lock back.
const patience = 5 * time.Second

// List reads all records of a file, in the order of their keys; none of a file that is not there. A file that cannot be
// used is left as it is, and the error says why.
func List(path string) ([]Entry, error) {
	var all records
	err := access{path: path, until: time.Now().Add(patience)}.do(func(tx *bbolt.Tx) (err error) {
		all, err = readAll(tx)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the baselines in %s cannot be read: %w%s", path, err, advice(err))
	}
	return all.entries(), nil
}

// advice is what to do about a file that cannot be used.
func advice(err error) string {
	var bad *damage
	switch {
	case !errors.As(err, &bad):
		return ""
	case bad.kind == "corrupt":
		return ": the next run sets it aside, and learning starts over"
	}
	return ": update stallspan, or name another file with --file"
}

func (all records) entries() []Entry {
	list := make([]Entry, 0, len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		list = append(list, Entry{key, *all[key]})
	}
	return list
}

// Reset forgets the records of a file that match says, and gives them.
func Reset(path string, match func(Entry) bool) (gone []Entry, err error) {
	if listed, err := List(path); err != nil || !slices.ContainsFunc(listed, match) {
		return nil, err // nothing is made or written for nothing
	}
	err = access{path: path, write: true, until: time.Now().Add(patience)}.do(func(tx *bbolt.Tx) error {
		gone = nil
		all, err := readAll(tx)
		if err != nil {
			return err
		}
		for _, e := range all.entries() {
			if !match(e) {
				continue
			}
			if err := tx.Bucket(recordBucket).Delete([]byte(e.Key)); err != nil {
				return err
			}
			gone = append(gone, e)
		}
		return tx.Bucket(aboutBucket).Put(countKey, []byte(strconv.Itoa(len(all)-len(gone))))
	})
	if err != nil {
		return nil, fmt.Errorf("the baselines in %s cannot be changed: %w", path, err)
	}
	return gone, nil
}

// Find is the entries that a person means by a text: that key, or all of that name.
func Find(all []Entry, text string) []Entry {
	return slices.DeleteFunc(slices.Clone(all), func(e Entry) bool { return !e.Means(text) })
}

// Means says whether a text is the entry's key or its name: the model, the run, or the path of a file.
func (e Entry) Means(text string) bool {
	name := e.Key.Name()
	if string(e.Key) == text || name == text {
		return true
	}
	at := strings.LastIndex(name, " (")
	return at > 0 && strings.HasSuffix(name, " bytes)") && name[:at] == text
}

package baseline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"go.etcd.io/bbolt"
)

const (
	version = 1 // of what is in the file

	folderMode, fileMode = 0o700, 0o600
)

var (
	aboutBucket  = []byte("stallspan")
	versionKey   = []byte("version")
	countKey     = []byte("records") // how many there are: a page may lose some of them and look whole
	recordBucket = []byte("baselines")
)

// damage is a file that cannot be used and has to make room for another.
type damage struct {
	kind string // with which it is set aside: "corrupt", "newer-2"
	why  error
}

func (d *damage) Error() string { return d.why.Error() }
func (d *damage) Unwrap() error { return d.why }

// errMoved says that the file was set aside or replaced while its lock was waited for.
var errMoved = errors.New("it was replaced again and again")

// access is one opening of the file, which is locked for as long as that lasts.
type access struct {
	path   string
	write  bool
	until  time.Time     // when the lock is no longer waited for
	broken func(*damage) // told of a file that cannot be used, while it is locked; may be nil
}

// do opens the file, has f look at or change it in one transaction, and closes it. A file that is not there is made where
// it is to be written, and fs.ErrNotExist otherwise. The error is a *damage for a file that cannot be used. Whatever the
// file holds, and whatever becomes of it meanwhile, do returns.
func (a access) do(f func(*bbolt.Tx) error) (err error) {
	for range 8 {
		switch err = a.once(f); {
		case errors.Is(err, errMoved):
		case errors.Is(err, fs.ErrNotExist) && a.write:
			if err := create(a.path); err != nil {
				return err
			}
		default:
			return err
		}
	}
	return err
}

func (a access) once(f func(*bbolt.Tx) error) (err error) {
	// bbolt reads the file through a mapping. Where a page of that cannot be had, because somebody cut the file or the
	// disk failed, the program would be ended by a signal; this turns it into a panic. It holds for this goroutine, and
	// bbolt starts none.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	var file *os.File
	defer func() {
		if cause := recover(); cause != nil {
			err = a.failed(cause, file)
			if file != nil {
				unlock(file)     // else the mapping would keep the lock
				_ = file.Close() // and not the DB, which may wait for what panicked; its mapping stays
			}
		}
	}()
	db, err := bbolt.Open(a.path, fileMode, &bbolt.Options{
		ReadOnly: !a.write,
		Timeout:  time.Millisecond, // it is locked already
		OpenFile: func(path string, _ int, _ os.FileMode) (_ *os.File, err error) {
			file, err = a.open(path)
			return file, err
		},
	})
	if err != nil {
		return err
	}
	run := db.View
	if a.write {
		run = db.Update
	}
	err = run(func(tx *bbolt.Tx) error {
		if err := known(tx); err != nil {
			return err
		}
		return f(tx)
	})
	var bad *damage
	switch {
	case errors.Is(err, errForeign):
		err = a.judge(err)
	case errors.As(err, &bad):
		_ = a.found(bad)
	}
	return errors.Join(err, db.Close())
}

// open gives the file locked and checked.
func (a access) open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // to open a pipe would be to wait
		return nil, errors.New("it is no file: name one, which need not exist yet")
	}
	how := os.O_RDONLY
	if a.write {
		how = os.O_RDWR
	}
	file, err := os.OpenFile(path, how, fileMode)
	if err != nil {
		return nil, err
	}
	if err := a.check(file); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

func (a access) check(file *os.File) error {
	if err := lock(file, a.write, a.until); err != nil {
		return err
	}
	own, err := file.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(a.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(own, there):
		return errMoved
	case err != nil:
		return err
	}
	return a.judge(verify(file, own.Size()))
}

// judge says what is to become of a file by what verify found.
func (a access) judge(err error) error {
	var later errFormat
	var unread *errUnread
	switch {
	case err == nil, errors.As(err, &unread): // another time it may be read
		return err
	case errors.Is(err, errEmpty) && a.write:
		return nil // bbolt makes it one
	case errors.Is(err, errEmpty):
		return fs.ErrNotExist
	case errors.Is(err, errForeign) && filepath.Ext(a.path) != ".db":
		return fmt.Errorf("%w, and stays as it is: name another", errForeign)
	case errors.As(err, &later) && later > format:
		return a.found(&damage{"newer-" + strconv.Itoa(int(later)), err})
	}
	return a.found(&damage{"corrupt", err})
}

// failed is what a panic within bbolt means: damage, unless a page of the mapping could not be had of a file in which nothing
// is wrong, as when its disk failed for a moment.
func (a access) failed(cause any, file *os.File) error {
	failed := fmt.Errorf("reading it failed: %v", cause)
	var page interface{ Addr() uintptr } // has a fault that SetPanicOnFault made a panic
	if fault, ok := cause.(error); ok && file != nil && errors.As(fault, &page) {
		if info, err := file.Stat(); err != nil {
			return &errUnread{failed}
		} else if verified := verify(file, info.Size()); verified == nil || errors.As(verified, new(*errUnread)) {
			return &errUnread{failed}
		}
	}
	return a.found(&damage{"corrupt", failed})
}

func (a access) found(d *damage) error {
	if a.broken != nil {
		a.broken(d)
	}
	return d
}

// known says whether what is in the file is of this version. An empty one is new. What a later version keeps beside its
// version is its own matter.
func known(tx *bbolt.Tx) error {
	about := tx.Bucket(aboutBucket)
	first, _ := tx.Cursor().First()
	switch {
	case first == nil && tx.Writable():
		return begin(tx)
	case first == nil:
		return nil
	case about == nil:
		return errForeign
	}
	text := string(about.Get(versionKey))
	v, err := strconv.Atoi(text)
	switch {
	case err != nil || v < 1:
		return &damage{"corrupt", fmt.Errorf("its version is %.20q", text)}
	case v > version:
		return &damage{"newer-" + strconv.Itoa(v), fmt.Errorf("its version is %d, and this program knows %d", v, version)}
	case tx.Bucket(recordBucket) == nil:
		return &damage{"corrupt", errors.New("a part of it is missing")}
	}
	return nil
}

func begin(tx *bbolt.Tx) error {
	about, err := tx.CreateBucketIfNotExists(aboutBucket)
	if err != nil {
		return err
	}
	if _, err := tx.CreateBucketIfNotExists(recordBucket); err != nil {
		return err
	}
	return errors.Join(about.Put(versionKey, []byte(strconv.Itoa(version))), about.Put(countKey, []byte("0")))
}

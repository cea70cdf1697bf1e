package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/state"
	"github.com/stallspan/stallspan/internal/trust"
)

const (
	fileMode   = 0o600
	folderMode = 0o700
)

// Defaults and limits of Options.
const (
	DefaultMaxSize = 200_000_000 // bytes
	DefaultMaxAge  = 7 * 24 * time.Hour
	MinMaxSize     = 1_000_000
)

// Parts of the size that all files may have.
const (
	fileShare  = 8 // one file: a day that needs more has several
	entryShare = 2 // of a file: windows and events must not drive curves out
	timesShare = 4 // of a file: so must jobs that come and go
)

// Bounds of what waits to be written.
const (
	maxRowsWaiting    = 360
	maxEntriesWaiting = 512
)

// Options bound the files of a Writer.
type Options struct {
	Folder  string
	MaxSize int64         // bytes of all files
	MaxAge  time.Duration // of a file, from the end of its day
}

// Writer writes the files of a folder. It is safe for concurrent use.
type Writer struct {
	options Options
	lock    *os.File     // held until Close
	oldest  atomic.Int64 // Unix seconds, the first time in the files; 0 without files

	mu      sync.Mutex // guards the fields below
	encoder encoder
	file    *os.File // nil before the first Flush
	day     time.Time
	part    int
	size    int64 // bytes of the file that are complete blocks
	entries int64 // part of size, for windows and events
	times   int64 // part of size, for times of jobs
	number  uint32
	written [groups]*numbered // in this file
	rows    []*Rows           // that wait
	list    [entryKinds][]Entry
	lost    uint64
}

// Open opens a folder for writing, and creates it. Only one writer may have it open.
func Open(o Options) (*Writer, error) {
	folder, err := trust.Follow(o.Folder)
	if err != nil {
		return nil, err
	}
	o.Folder = folder
	if err := os.MkdirAll(folder, folderMode); err != nil {
		return nil, err
	}
	lock, err := open(filepath.Join(folder, ".lock"), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := state.Lock(lock, 0); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("another agent writes the history in %s: stop one of them", folder)
	}
	w := &Writer{options: o, lock: lock}
	w.noteOldest()
	return w, nil
}

// Close writes what waits, and lets other writers open the folder.
func (w *Writer) Close(at time.Time) error {
	err := w.Flush(at)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file != nil {
		_ = w.file.Close()
	}
	_ = w.lock.Close()
	return err
}

// Add adds the values of an interval that begins at a time. They wait until Flush. Without values nothing is added. If
// too many wait, the oldest are lost. columns must not change later.
func (w *Writer) Add(g Group, columns []Column, start time.Time, length time.Duration, values []float64) {
	if len(columns) == 0 || len(columns) > maxColumns || len(values) != len(columns) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	second := start.Unix()
	r := w.open(g, columns, length, second)
	r.Starts = append(r.Starts, second)
	for c, v := range values {
		r.Values[c] = append(r.Values[c], v)
	}
	waiting := 0
	for _, r := range w.rows {
		waiting += len(r.Starts)
	}
	if waiting > maxRowsWaiting {
		w.lost += uint64(len(w.rows[0].Starts))
		w.rows = slices.Delete(w.rows, 0, 1)
	}
}

// rowsOfBlock bounds the rows that are lost at once.
const rowsOfBlock = 60

// open returns the rows that take an interval.
func (w *Writer) open(g Group, columns []Column, length time.Duration, start int64) *Rows {
	for _, r := range slices.Backward(w.rows) {
		if r.Group != g {
			continue
		}
		n := len(r.Starts)
		if r.Length == length && start > r.Starts[n-1] && n < rowsOfBlock && (n+1)*len(columns) <= maxValues &&
			slices.Equal(r.Columns, columns) {
			return r
		}
		break
	}
	r := &Rows{Group: g, Columns: columns, Length: length, Values: make([][]float64, len(columns))}
	w.rows = append(w.rows, r)
	return r
}

// AddEntry adds an entry. It waits until Flush. If too many wait, or if it is too large, it is not added, and the
// result is false. That counts as lost, except for times: the next growth has them.
func (w *Writer) AddEntry(e Entry) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.list[e.Kind]) >= maxEntriesWaiting || len(e.Text) > maxText {
		if e.Kind != Times {
			w.lost++
		}
		return false
	}
	w.list[e.Kind] = append(w.list[e.Kind], e)
	return true
}

// Lost returns how many intervals, windows and events were lost so far, because they could not be written in time or
// were too many.
func (w *Writer) Lost() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

// Flush appends what waits to the file of the day, and removes files that are too old or too large in sum. After an
// error, what waits goes on waiting.
func (w *Writer) Flush(at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting() == 0 {
		return nil
	}
	if err := w.choose(at); err != nil {
		return w.reason(err)
	}
	t, err := w.encode(w.written, w.number, w.size == 0)
	if err != nil { // it cannot be written, now or later
		w.lost += uint64(w.waiting())
		w.clear()
		return w.reason(err)
	}
	if w.entries+int64(len(t.entries)) > w.options.MaxSize/fileShare/entryShare {
		w.lost += uint64(len(w.list[Window]) + len(w.list[Event]))
		t.entries = nil
	}
	if w.times+int64(len(t.times)) > w.options.MaxSize/fileShare/timesShare {
		w.lost += uint64(len(w.list[Times]))
		t.times = nil
	}
	all := slices.Concat(t.curves, t.times, t.entries)
	if err := w.makeRoom(at, int64(len(all))); err != nil {
		return w.reason(err)
	}
	if _, err := w.file.WriteAt(all, w.size); err != nil {
		_ = w.file.Truncate(w.size) // a block that is cut would be skipped, too
		return w.reason(err)
	}
	w.size += int64(len(all))
	w.entries, w.times = w.entries+int64(len(t.entries)), w.times+int64(len(t.times))
	w.written, w.number = t.written, t.number
	w.clear()
	if w.oldest.Load() == 0 {
		w.noteOldest()
	}
	return nil
}

func (w *Writer) waiting() (n int) {
	for _, r := range w.rows {
		n += len(r.Starts)
	}
	for _, list := range w.list {
		n += len(list)
	}
	return n
}

func (w *Writer) clear() {
	w.rows, w.list = nil, [entryKinds][]Entry{}
}

// reason makes an error one that says what to do.
func (w *Writer) reason(err error) error {
	what := "check the folder"
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		what = "make room on its disk"
	case errors.Is(err, fs.ErrPermission):
		what = "give the folder to the agent's user"
	}
	return fmt.Errorf("the history in %s is not written, %s: %w", w.options.Folder, what, err)
}

// text is what Flush writes, in this order.
type text struct {
	curves  []byte
	times   []byte
	entries []byte // windows and events
	written [groups]*numbered
	number  uint32
}

// encode makes blocks of what waits, for a file that has these columns.
func (w *Writer) encode(written [groups]*numbered, number uint32, begin bool) (t text, err error) {
	t.written, t.number = written, number
	if begin {
		t.curves = header()
	}
	for _, r := range w.rows {
		known := t.written[r.Group]
		if known == nil || !slices.Equal(known.columns, r.Columns) {
			t.number++
			known = &numbered{t.number, r.Columns}
			if t.curves, err = w.encoder.columns(t.curves, r.Group, t.number, r.Columns); err != nil {
				return t, err
			}
			t.written[r.Group] = known
		}
		if t.curves, err = w.encoder.rows(t.curves, known.number, r); err != nil {
			return t, err
		}
	}
	for _, kind := range []EntryKind{Window, Event} {
		if t.entries, err = w.encoder.entries(t.entries, kind, w.list[kind]); err != nil {
			return t, err
		}
	}
	t.times, err = w.encoder.entries(t.times, Times, w.list[Times])
	return t, err
}

// View is what a Writer has at one moment: its files, and what waits to be written.
type View struct {
	folder  string
	waiting []byte
	newest  string // the file that grows; "" before the first Flush
	size    int64  // of that
}

// View returns what there is now. It waits for a disk on which a Flush hangs.
func (w *Writer) View() (*View, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting, err := w.encode([groups]*numbered{}, 0, true)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(waiting.curves, waiting.times, waiting.entries)
	v := &View{folder: w.options.Folder, waiting: all, size: w.size}
	if w.file != nil {
		v.newest = w.file.Name()
	}
	return v, nil
}

// Each calls take with each file that may have something between two times, and at last with what waits.
func (v *View) Each(from, until time.Time, take func(io.Reader) error) error {
	ended := false
	err := Each(v.folder, from, until, func(path string, file io.Reader) error {
		if ended {
			return nil
		}
		if ended = path == v.newest; ended {
			file = io.LimitReader(file, v.size)
		}
		return take(file)
	})
	if err != nil {
		return err
	}
	return take(bytes.NewReader(v.waiting))
}

// Copy writes what is between two times as a file: that of one moment, however long it takes. With shows, it leaves out
// what the function Copy does.
func (w *Writer) Copy(to io.Writer, from, until time.Time, shows func(Entry) bool) error {
	v, err := w.View()
	if err != nil {
		return err
	}
	return v.Each(from, until, func(file io.Reader) error { return Copy(to, file, from, until, shows) })
}

// Oldest returns the first time that may be in the files. It does not wait for a disk.
func (w *Writer) Oldest() (at time.Time, ok bool) {
	second := w.oldest.Load()
	return time.Unix(second, 0), second != 0
}

// noteOldest finds the start of the first interval in the oldest file. With damage there, it is the begin of its day.
func (w *Writer) noteOldest() {
	files, err := Files(w.options.Folder)
	if err != nil || len(files) == 0 {
		return
	}
	file, err := open(files[0].Path, os.O_RDONLY)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	r, first := NewReader(file), files[0].Day.Unix()
	for f, _, err := r.block(); err == nil; f, _, err = r.block() {
		if f.content == rowsBlock {
			first = f.first
			break
		}
	}
	w.oldest.Store(first)
}

// choose opens the file of the day: the newest one that has room, or a new one.
func (w *Writer) choose(at time.Time) error {
	day := dayOf(at)
	limit := w.options.MaxSize / fileShare
	if w.file != nil && w.day.Equal(day) && w.size < limit && w.exists() {
		return nil
	}
	if w.file != nil {
		_ = w.file.Close()
		w.file = nil
	}
	files, err := Files(w.options.Folder)
	if err != nil {
		return err
	}
	part := 0
	for _, f := range files {
		if f.Day.Equal(day) {
			part = max(part, f.Part)
		}
	}
	if part > 0 {
		if err := w.resume(day, part, limit); err == nil {
			return nil
		} else if !errors.Is(err, errNoRoom) {
			return err
		}
	}
	path := pathOf(w.options.Folder, day, part+1)
	file, err := open(path, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	state.LikeOld(file, filepath.Join(w.options.Folder, ".new")) // the owner of the folder
	w.file, w.day, w.part = file, day, part+1
	w.size, w.entries, w.times, w.number, w.written = 0, 0, 0, 0, [groups]*numbered{}
	return nil
}

// exists reports whether the file still has its name: a user may remove it.
func (w *Writer) exists() bool {
	own, err := w.file.Stat()
	named, gone := os.Lstat(pathOf(w.options.Folder, w.day, w.part))
	return err == nil && gone == nil && os.SameFile(own, named)
}

// errNoRoom is the error of a file that another one must follow.
var errNoRoom = errors.New("the file cannot be continued")

// resume opens the file that an earlier writer has begun, and removes a block at its end that is cut.
func (w *Writer) resume(day time.Time, part int, limit int64) error {
	file, err := open(pathOf(w.options.Folder, day, part), os.O_RDWR)
	if err != nil {
		return err
	}
	r := NewReader(file)
	var end, entries, times int64
	number := uint32(0)
	for err == nil {
		var f frame
		if f, _, err = r.block(); err == nil {
			end, number = r.read, max(number, f.schema)
			switch length := frameSize + int64(f.length); f.content {
			case windowsBlock, eventsBlock:
				entries += length
			case timesBlock:
				times += length
			}
		}
	}
	if !errors.Is(err, io.EOF) || end >= limit { // it is full, or another program's
		_ = file.Close()
		return errNoRoom
	}
	if err := file.Truncate(end); err != nil {
		_ = file.Close()
		return err
	}
	w.file, w.day, w.part = file, day, part
	w.size, w.entries, w.times, w.number, w.written = end, entries, times, number, [groups]*numbered{}
	return nil
}

// makeRoom removes files that are too old, and then the oldest until so many bytes more are allowed.
func (w *Writer) makeRoom(at time.Time, more int64) error {
	files, err := Files(w.options.Folder)
	if err != nil {
		return err
	}
	own := pathOf(w.options.Folder, w.day, w.part)
	total := more
	for i := range files {
		total += files[i].Size
	}
	for i := range files {
		f := &files[i]
		old := at.Sub(f.Day.Add(24*time.Hour)) > w.options.MaxAge
		if f.Path == own || !old && total <= w.options.MaxSize {
			continue
		}
		if err := os.Remove(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		total -= f.Size
		w.oldest.Store(0) // Flush finds the new one
	}
	return nil
}

package store

import (
	"bytes"
	"encoding/json"
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

	"github.com/stallspan/stallspan/internal/sample"
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
	fileShare  = 8  // one file: a day that needs more has several
	textShare  = 16 // the windows and events of clients in a day: they must not drive curves out
	timesShare = 32 // times of jobs in a day: nor must jobs that come and go
)

// Bounds of what waits to be written.
const (
	maxRowsWaiting  = 360
	maxTimesWaiting = 512
	maxTextsWaiting = 4 << 20 // bytes of windows and events
	minText         = 4 << 10 // bytes that each of them counts at least
)

// Bounds of the text in a block of entries, in bytes.
const (
	minBlockText = 4 << 10
	maxBlockText = 64 << 10
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
	opened  atomic.Bool
	oldest  atomic.Int64            // Unix seconds, the first time in the files; 0 without files
	rates   [entryKinds]*trust.Rate // bytes a day that lanes may take; windows and events have the same

	disk    sync.Mutex // guards the fields up to the next mutex; held while the disk is written, which may hang
	lock    *os.File   // held from Open to Close
	encoder encoder
	file    *os.File // nil before the first Flush
	day     time.Time
	part    int
	size    int64 // bytes of the file that are complete blocks
	number  uint32
	noted   bool              // rates have what earlier writers wrote
	written [groups]*numbered // in this file

	mu    sync.Mutex         // guards the fields below; taken after disk
	rows  []*Rows            // that wait
	texts trust.Queue[Entry] // windows and events that wait
	times []Entry            // that wait
	lost  uint64
}

// New returns a writer of a folder that is not open yet: what is added waits.
func New(o Options) *Writer {
	const day = 24 * time.Hour
	texts, times := trust.NewWholeRate(int(o.MaxSize/textShare), day), trust.NewWholeRate(int(o.MaxSize/timesShare), day)
	w := &Writer{options: o, rates: [entryKinds]*trust.Rate{Window: texts, Event: texts, Times: times}}
	w.texts.Size = maxTextsWaiting
	return w
}

// Open opens the folder, and creates it. Only one writer may have it open.
func (w *Writer) Open() error {
	w.disk.Lock()
	defer w.disk.Unlock()
	folder, err := trust.Follow(w.options.Folder)
	if err != nil {
		return err
	}
	w.options.Folder = folder
	if err := makeFolder(folder); err != nil {
		return err
	}
	lock, err := create(filepath.Join(folder, ".lock"))
	if errors.Is(err, fs.ErrExist) {
		lock, err = open(filepath.Join(folder, ".lock"), os.O_RDWR)
	}
	if err != nil {
		return err
	}
	if err := state.Lock(lock, 0); err != nil {
		_ = lock.Close()
		return fmt.Errorf("another agent writes the history in %s: stop one of them", folder)
	}
	w.lock = lock
	w.noteOldest()
	w.opened.Store(true)
	return nil
}

// Opened reports whether the folder is open.
func (w *Writer) Opened() bool { return w.opened.Load() }

// Close writes what waits, and lets other writers open the folder.
func (w *Writer) Close(now sample.Stamp) error {
	err := w.Flush(now)
	w.disk.Lock()
	defer w.disk.Unlock()
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

// AddEntry adds an entry, and waits for no disk. The entry waits until Flush. If too many wait, those of the lane that
// has most are lost, the oldest first. Times are not added then, nor is what is too large, and the result is false: the
// next growth has the times.
func (w *Writer) AddEntry(e Entry) bool {
	bad := len(e.Text) > maxText || e.Kind != Times && !json.Valid(e.Text)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case e.Kind == Times && (bad || len(w.times) >= maxTimesWaiting):
		return false
	case e.Kind == Times:
		w.times = append(w.times, e)
		return true
	case bad:
		w.lost++
		return false
	}
	w.lost += uint64(len(w.texts.Add(e.Lane, max(len(e.Text), minText), e)))
	return true
}

// Lost returns how many intervals, windows and events were lost so far, because they could not be written in time or
// were too many.
func (w *Writer) Lost() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

// Flush appends what waits to the file of the day, and removes files that are too old or too large in sum. What clients
// have too much of in a day is lost. After an error, what waits goes on waiting.
func (w *Writer) Flush(now sample.Stamp) error {
	w.disk.Lock()
	defer w.disk.Unlock()
	if w.waiting() == 0 {
		return nil
	}
	if err := w.choose(now); err != nil {
		return w.reason(err)
	}
	w.mu.Lock()
	t := w.encode(w.written, w.number, w.size == 0)
	rows, times, texts := w.rows, w.times, w.texts.Last(0)
	w.rows, w.times = nil, nil // what is added meanwhile waits for the next Flush
	w.mu.Unlock()
	err := w.write(&t, now)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.rows, w.times = append(rows, w.rows...), append(times, w.times...)
		return w.reason(err)
	}
	w.lost += uint64(t.lost)
	w.texts.Forget(texts)
	return nil
}

// write appends a text to the file. What clients have too much of in a day becomes lost.
func (w *Writer) write(t *text, now sample.Stamp) error {
	all := t.machine
	left, used := map[share]int{}, map[share]int{}
	for _, p := range t.pieces {
		if _, known := left[p.share]; !known {
			left[p.share] = w.rates[p.kind].Left(p.lane, now.Mono)
		}
		if used[p.share]+len(p.block) > left[p.share] {
			t.lost += p.entries
			continue
		}
		used[p.share] += len(p.block)
		all = append(all, p.block...)
	}
	if err := w.makeRoom(int64(len(all))); err != nil {
		return err
	}
	if _, err := w.file.WriteAt(all, w.size); err != nil {
		_ = w.file.Truncate(w.size) // a block that is cut would be skipped, too
		return err
	}
	for of, bytes := range used {
		w.rates[of.kind].Note(of.lane, bytes, now.Mono)
	}
	w.size += int64(len(all))
	w.written, w.number = t.written, t.number
	if w.oldest.Load() == 0 {
		w.noteOldest()
	}
	return nil
}

func (w *Writer) waiting() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.rows {
		n += len(r.Starts)
	}
	return n + w.texts.Len() + len(w.times)
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
	machine []byte // curves, and the events of the machine
	pieces  []piece
	lost    int // intervals and entries that cannot be written, now or later
	written [groups]*numbered
	number  uint32
}

// piece is a block of entries.
type piece struct {
	share
	block   []byte
	entries int
}

// share is entries of one kind of one lane.
type share struct {
	kind EntryKind
	lane string
}

// encode makes blocks of what waits, for a file that has these columns. The caller holds both mutexes.
func (w *Writer) encode(written [groups]*numbered, number uint32, begin bool) (t text) {
	t.written, t.number = written, number
	if begin {
		t.machine = header()
	}
	for _, r := range w.rows {
		var err error
		if known := t.written[r.Group]; known == nil || !slices.Equal(known.columns, r.Columns) {
			if t.machine, err = w.encoder.columns(t.machine, r.Group, t.number+1, r.Columns); err == nil {
				t.number++
				t.written[r.Group] = &numbered{t.number, r.Columns}
			}
		}
		if err == nil {
			t.machine, err = w.encoder.rows(t.machine, t.written[r.Group].number, r)
		}
		if err != nil {
			t.lost += len(r.Starts)
		}
	}
	texts, _ := w.texts.From(0, w.texts.Len())
	var order []share
	lists := map[share][]Entry{}
	for _, e := range slices.Concat(w.times, texts) {
		of := share{e.Kind, e.Lane}
		if lists[of] == nil {
			order = append(order, of)
		}
		lists[of] = append(lists[of], e)
	}
	most := int(max(minBlockText, min(maxBlockText, w.options.MaxSize/textShare/fileShare)))
	for _, of := range order {
		for list := lists[of]; len(list) > 0; {
			n := fitting(list, most)
			block, err := w.encoder.entries(nil, of.kind, list[:n])
			switch {
			case err != nil:
				t.lost += n
			case of.lane == "":
				t.machine = append(t.machine, block...)
			default:
				t.pieces = append(t.pieces, piece{of, block, n})
			}
			list = list[n:]
		}
	}
	return t
}

// fitting returns how many entries are put into one block: at least one, and with others not more than so many bytes.
func fitting(list []Entry, most int) int {
	n, sum := 1, len(list[0].Text)
	for n < min(len(list), maxEntries) && sum+len(list[n].Text) <= most {
		sum += len(list[n].Text)
		n++
	}
	return n
}

// View is what a Writer has at one moment: its files, and what waits to be written.
type View struct {
	folder  string
	waiting []byte
	newest  string // the file that grows; "" before the first Flush
	size    int64  // of that
}

// View returns what there is now. It waits for a disk on which a Flush hangs.
func (w *Writer) View() *View {
	w.disk.Lock()
	defer w.disk.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.encode([groups]*numbered{}, 0, true)
	v := &View{folder: w.options.Folder, waiting: t.machine, size: w.size}
	for _, p := range t.pieces {
		v.waiting = append(v.waiting, p.block...)
	}
	if w.file != nil {
		v.newest = w.file.Name()
	}
	return v
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
	return w.View().Each(from, until, func(file io.Reader) error { return Copy(to, file, from, until, shows) })
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
func (w *Writer) choose(now sample.Stamp) error {
	day := dayOf(now.Wall)
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
			if !w.noted {
				w.noteRates(f.Path, now.Mono)
			}
		}
	}
	w.noted = true
	if part > 0 {
		if err := w.resume(day, part, limit); err == nil {
			return nil
		} else if !errors.Is(err, errNoRoom) {
			return err
		}
	}
	file, err := create(pathOf(w.options.Folder, day, part+1))
	if err != nil {
		return err
	}
	w.file, w.day, w.part = file, day, part+1
	w.size, w.number, w.written = 0, 0, [groups]*numbered{}
	return nil
}

// noteRates notes what an earlier writer has written of clients today.
func (w *Writer) noteRates(path string, now time.Duration) {
	file, err := open(path, os.O_RDONLY)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	r := NewReader(file)
	for f, payload, err := r.block(); err == nil; f, payload, err = r.block() {
		kind, isList := f.content.kind()
		if !isList {
			continue
		}
		item, err := r.decode(&f, payload)
		if list := slices.Concat(item.Entries, item.Times); err == nil && len(list) > 0 { // all are of one client
			w.rates[kind].Note(trust.Lane(list[0].Client), frameSize+len(payload), now)
		}
	}
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
	end, number := int64(0), uint32(0)
	for err == nil {
		var f frame
		if f, _, err = r.block(); err == nil {
			end, number = r.read, max(number, f.schema)
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
	w.size, w.number, w.written = end, number, [groups]*numbered{}
	return nil
}

// makeRoom removes files that are too old, and then the oldest until so many bytes more are allowed.
func (w *Writer) makeRoom(more int64) error {
	files, err := Files(w.options.Folder)
	if err != nil {
		return err
	}
	own := pathOf(w.options.Folder, w.day, w.part)
	total := more
	for i := range files {
		total += files[i].Size
	}
	first := w.firstKept(files)
	for i := range files {
		f := &files[i]
		if f.Path == own || !f.Day.Before(first) && total <= w.options.MaxSize {
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

// firstKept returns the first day that is not too old. An age is counted in days that have files: a clock that is wrong
// makes no such days. For each long gap between them, and one just before today, one day more is kept: a clock that was
// set may have divided a day.
func (w *Writer) firstKept(files []File) (first time.Time) {
	const day = 24 * time.Hour
	whole := int((w.options.MaxAge + day - 1) / day)
	kept, keep, last := 0, whole, w.day
	for _, f := range slices.Backward(files) {
		if !f.Day.Before(last) {
			continue // another part, or of a clock that was ahead
		}
		if gap := last.Sub(f.Day); gap > w.options.MaxAge/2 || kept == 0 && gap > day {
			keep = min(keep+1, 2*whole)
		}
		if kept == keep {
			return last
		}
		kept, last = kept+1, f.Day
	}
	return time.Time{}
}

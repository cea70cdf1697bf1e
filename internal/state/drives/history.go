package drives

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/state"
)

// History is the history of a machine's drives. It is safe for concurrent use. Update blocks while the file is written.
// A nil History remembers nothing.
type History struct {
	file   *state.File[records] // nil for a history in memory
	boot   string
	report func(error)

	mu       sync.Mutex
	records  records
	loaded   bool   // the file was read once
	reported string // the last problem
}

// Open returns the history at path, which is read in each Update; "" keeps the history in memory. boot is the result of
// Boot. report is called with each problem, but only once for the same problem in a row. It must not use the history.
func Open(path, boot string, report func(error)) *History {
	h := &History{boot: boot, report: report, records: records{}}
	if path != "" {
		h.file = newFile(path, report)
	}
	return h
}

// Read reads the history at path for Assess. If the file cannot be used, it returns an empty history and an error.
func Read(path, boot string) (*History, error) {
	h := &History{boot: boot, report: func(error) {}, records: records{}}
	if path == "" {
		return h, nil
	}
	all, err := newFile(path, nil).Load()
	if err != nil {
		return h, fmt.Errorf("the history of drives in %s cannot be used, so the growth of error counts is unknown: %w",
			path, err)
	}
	if all != nil {
		h.records = all
	}
	return h, nil
}

// Update adds a reading of all drives and writes the file. It returns the drives with their status, the worst first,
// including those that have vanished. It does not change the list that it was given.
func (h *History) Update(drives []sample.Drive, listing Listing, at time.Time) (all []sample.Drive) {
	if h == nil {
		return h.Assess(drives, listing, at)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.transact(len(drives) > 0, func() { all = h.update(drives, &listing, at) })
	return all
}

var errUnchanged = errors.New("unchanged")

// transact reads the file, calls change and writes the file. The file replaces the records in memory only if another
// program has written it: rounds whose write fails, as on a full disk, build on each other. Without drives no file is
// created.
func (h *History) transact(create bool, change func()) {
	if h.file == nil {
		change()
		return
	}
	if !h.loaded {
		if all, err := h.file.Load(); err == nil {
			h.take(all)
		} // else Update returns the error, too
	}
	if _, err := os.Stat(h.file.Path); errors.Is(err, os.ErrNotExist) && !create && len(h.records) == 0 {
		change()
		return
	}
	changed := false
	_, err := h.file.Update(func(all *records) error {
		if !h.loaded || h.file.Changed() {
			h.take(*all)
		}
		existed := *all != nil
		change()
		changed = true
		if *all = h.records; len(h.records) == 0 && !existed {
			return errUnchanged
		}
		return nil
	})
	if !changed {
		change()
	}
	if err == nil || errors.Is(err, errUnchanged) {
		h.reported = ""
	} else if err.Error() != h.reported {
		h.reported = err.Error()
		h.report(fmt.Errorf("the history of drives in %s cannot be updated, so error counts are compared with those since "+
			"the start of this program: %w", h.file.Path, err))
	}
}

// take uses the records of the file from now on. A file that does not exist has none to use.
func (h *History) take(all records) {
	h.loaded = true
	if all != nil {
		h.records = all
	}
}

func (h *History) update(drives []sample.Drive, listing *Listing, at time.Time) []sample.Drive {
	shared := h.sharedIDs(drives)
	h.separate(shared)
	all := withoutShared(drives, shared)
	found := h.match(all, listing)
	for i := range all {
		if d := &all[i]; !isGone(d, listing) {
			found[i] = h.updateRecord(found[i], d, at)
			if found[i] != nil && shared[drives[i].ID] {
				found[i].Shared = drives[i].ID
			}
		}
	}
	for _, r := range h.records {
		r.Off = r.Off || !slices.Contains(found, r) && r.isOff(listing)
	}
	h.trim(at)
	vanished := h.vanished(all, found, listing, at)
	for _, r := range vanished {
		r.Gone = true
	}
	return assessAll(all, found, vanished, listing, at)
}

// Assess returns drives with their status without changing the history. Vanished drives are added if the listing is
// known.
func (h *History) Assess(drives []sample.Drive, listing Listing, at time.Time) []sample.Drive {
	if h == nil {
		all := withoutShared(drives, h.sharedIDs(drives))
		return assessAll(all, make([]*Record, len(drives)), nil, &listing, at)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	all := withoutShared(drives, h.sharedIDs(drives))
	found := h.match(all, &listing)
	var vanished []*Record
	if listing.Present != nil {
		vanished = h.vanished(all, found, &listing, at)
	}
	return assessAll(all, found, vanished, &listing, at)
}

// updateRecord updates a drive's record and returns it. A drive without a record gets one if its ID is known.
func (h *History) updateRecord(r *Record, d *sample.Drive, at time.Time) *Record {
	if r == nil {
		r = h.records[d.ID] // of another path to the drive, in this round
	}
	if r == nil {
		if d.ID == "" || d.Status != "" {
			return nil
		}
		r = &Record{First: at.UTC().Truncate(time.Second), Drive: sample.Drive{ID: d.ID}}
		h.records[d.ID] = r
	}
	if at = at.UTC().Truncate(time.Second); at.After(r.Seen) {
		r.Seen = at
	}
	r.Boot, r.Off, r.Gone = h.boot, false, false
	r.Drive.Device = d.Device
	switch {
	case d.Status == "":
		if idQuality(d) >= idQuality(&r.Drive) {
			h.rename(r, d.ID)
		}
		r.update(d, at)
	case d.Silent:
		r.Silent++
	default:
		r.Silent = 0
	}
	return r
}

// trim drops the drives that were seen longest ago.
func (h *History) trim(at time.Time) {
	maps.DeleteFunc(h.records, func(_ string, r *Record) bool { return at.Sub(r.Seen) > MaxDays*24*time.Hour })
	if excess := len(h.records) - MaxDrives; excess > 0 {
		ids := slices.SortedFunc(maps.Keys(h.records), func(x, y string) int {
			return cmp.Or(h.records[x].Seen.Compare(h.records[y].Seen), cmp.Compare(x, y))
		})
		for _, id := range ids[:excess] {
			delete(h.records, id)
		}
	}
}

// records are the drives of a file by their ID.
type records map[string]*Record

func newFile(path string, report func(error)) *state.File[records] {
	return &state.File[records]{
		Path: path, Name: "drives", Version: 2, Owned: true, Check: check, Report: report,
	}
}

func check(all records) error {
	for id, r := range all {
		if r == nil || id == "" || r.Drive.ID != id {
			return fmt.Errorf("the record of drive %.80q has another ID", id)
		}
	}
	return nil
}

// Forget removes drives from the history at path and returns them: those with an ID, a serial number or a device. If
// several drives had the device, the drive that has it now stays.
func Forget(path, which string) (forgotten []sample.Drive, err error) {
	var unknown error
	_, err = newFile(path, nil).Update(func(all *records) error {
		var list []*Record
		if list, unknown = all.find(which); unknown != nil {
			unknown = fmt.Errorf("%w in %s", unknown, path)
			return unknown
		}
		for _, r := range list {
			forgotten = append(forgotten, r.Drive)
			delete(*all, r.Drive.ID)
		}
		return nil
	})
	if err != nil && unknown == nil {
		return nil, fmt.Errorf("the history of drives in %s cannot be used: %w", path, err)
	}
	return forgotten, err
}

// find returns the records of drives with an ID, a serial number or a device.
func (all records) find(which string) ([]*Record, error) {
	var named, atDevice []*Record
	var newest time.Time
	for id, r := range all {
		switch {
		case id == which || r.Drive.Serial == which:
			named = append(named, r)
		case r.Drive.Device == strings.TrimPrefix(which, "/dev/"):
			atDevice = append(atDevice, r)
			if r.Seen.After(newest) {
				newest = r.Seen
			}
		}
	}
	if n := len(atDevice); len(named) == 0 && n > 0 {
		named = slices.DeleteFunc(atDevice, func(r *Record) bool { return n > 1 && r.Seen.Equal(newest) })
		if len(named) == 0 {
			return nil, fmt.Errorf("%d drives are at %s: give the serial number of one", n, which)
		}
	}
	if len(named) == 0 {
		return nil, fmt.Errorf("there is no drive %q", which)
	}
	return named, nil
}

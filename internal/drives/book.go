package drives

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Book is the history of a machine's drives as one program uses it. It is safe for concurrent use; a call that writes
// waits for the disk that the file is on. A nil Book remembers nothing, and judges by what drives tell now.
type Book struct {
	path string
	boot string
	tell func(error)

	mu    sync.Mutex
	known map[string]*Record // by Drive.ID
	seen  os.FileInfo        // of the file as it was read or written last
	told  string             // the problem that was told last
}

// Open reads the history at path, which need not exist; "" keeps it in memory alone. boot is that of Boot. tell is called
// with each problem, the same one in a row once, on the caller's goroutine; it must not use the book.
func Open(path, boot string, tell func(error)) *Book {
	b := &Book{path: path, boot: boot, tell: tell, known: map[string]*Record{}}
	if path == "" {
		return b
	}
	b.refresh()
	return b
}

// refresh reads the file where another program has changed it: a command has a drive forgotten.
func (b *Book) refresh() {
	info, _ := os.Stat(b.path)
	if b.seen != nil && (info == nil || os.SameFile(info, b.seen) && info.ModTime().Equal(b.seen.ModTime())) {
		return
	}
	b.seen = info
	known, err := read(b.path)
	if err == nil {
		b.known = known
		return
	}
	b.problem(setAside(b.path, err))
	if !errors.As(err, new(*damage)) {
		b.path = "" // what cannot be read must not be written over
	}
}

// Read is for a command that looks and writes nothing. The error is of a file that cannot be used; the book is empty then.
func Read(path, boot string) (*Book, error) {
	b := &Book{boot: boot, tell: func(error) {}, known: map[string]*Record{}}
	if path == "" {
		return b, nil
	}
	known, err := read(path)
	if err != nil {
		return b, fmt.Errorf("the history of drives in %s cannot be used, so nothing is known of how counts have grown: %w", path, err)
	}
	b.known = known
	return b, nil
}

// Take takes over a round of questions in which all drives were asked, writes the history, and gives the drives judged,
// the worst first, with those that have vanished. The list that was given is not changed; listed is which are there.
func (b *Book) Take(asked []sample.Drive, listed Listing, at time.Time) []sample.Drive {
	if b == nil {
		return b.Look(asked, listed, at)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.path != "" {
		b.refresh()
	}
	shared := b.shared(asked)
	b.part(shared)
	all := tellApart(asked, shared)
	found := b.match(all, &listed)
	for i := range all {
		if d := &all[i]; !gone(d, &listed) {
			found[i] = b.learn(found[i], d, at)
			if found[i] != nil && shared[asked[i].ID] {
				found[i].Shared = asked[i].ID
			}
		}
	}
	for _, r := range b.known {
		r.Off = r.Off || !slices.Contains(found, r) && r.off(&listed)
	}
	b.forget(at)
	lost := b.vanished(all, found, &listed, at)
	for _, r := range lost {
		r.Gone = true
	}
	all = judge(all, found, lost, &listed, at)
	if b.path != "" && (len(b.known) > 0 || b.seen != nil) { // no file for nothing
		err := write(b.path, b.known)
		if b.problem(err); err == nil {
			b.seen, _ = os.Stat(b.path)
		}
	}
	return all
}

// Look judges drives that were asked, and learns nothing. Those that have vanished are added, as far as listed tells.
func (b *Book) Look(asked []sample.Drive, listed Listing, at time.Time) []sample.Drive {
	if b == nil {
		return judge(tellApart(asked, b.shared(asked)), make([]*Record, len(asked)), nil, &listed, at)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	all := tellApart(asked, b.shared(asked))
	found := b.match(all, &listed)
	var lost []*Record
	if listed.There != nil {
		lost = b.vanished(all, found, &listed, at)
	}
	return judge(all, found, lost, &listed, at)
}

func (b *Book) problem(err error) {
	switch {
	case err == nil:
		b.told = ""
	case err.Error() != b.told:
		b.told = err.Error()
		b.tell(err)
	}
}

// learn takes over what was seen of one drive, and gives its record: a new one where it has none.
func (b *Book) learn(r *Record, d *sample.Drive, at time.Time) *Record {
	if r == nil {
		r = b.known[d.ID] // of another way to it, in this round
	}
	if r == nil {
		if d.ID == "" || d.Status != "" {
			return nil // nothing is known of what it is
		}
		r = &Record{First: at.UTC().Truncate(time.Second), Drive: sample.Drive{ID: d.ID}}
		b.known[d.ID] = r
	}
	if at = at.UTC().Truncate(time.Second); at.After(r.Seen) {
		r.Seen = at
	}
	r.Boot, r.Off, r.Gone = b.boot, false, false
	r.Drive.Device = d.Device
	switch {
	case d.Status == "":
		if certainty(d) >= certainty(&r.Drive) {
			b.rename(r, d.ID)
		}
		r.learn(d, at)
	case d.Silent:
		r.Silent++
	default:
		r.Silent = 0
	}
	return r
}

// forget drops the drives that were seen longest ago.
func (b *Book) forget(at time.Time) {
	for id, r := range b.known {
		if at.Sub(r.Seen) > Kept*24*time.Hour {
			delete(b.known, id)
		}
	}
	if over := len(b.known) - MostDrives; over > 0 {
		ids := slices.SortedFunc(maps.Keys(b.known), func(x, y string) int {
			return cmp.Or(b.known[x].Seen.Compare(b.known[y].Seen), cmp.Compare(x, y))
		})
		for _, id := range ids[:over] {
			delete(b.known, id)
		}
	}
}

// judge gives drives their state, by their records, and adds those that have vanished, in the place of the answer that they
// are not there.
func judge(asked []sample.Drive, found, lost []*Record, listed *Listing, at time.Time) []sample.Drive {
	all := make([]sample.Drive, 0, len(asked)+len(lost))
	for i, d := range asked {
		if gone(&d, listed) && slices.ContainsFunc(lost, func(r *Record) bool { return placeOf(&r.Drive) == placeOf(&d) }) {
			continue
		}
		judged(&d, found[i], at)
		all = append(all, d)
	}
	for _, r := range lost {
		all = append(all, r.lost(at))
	}
	Sort(all)
	return all
}

func judged(d *sample.Drive, r *Record, at time.Time) {
	f := facts{d, r, at}
	if r != nil {
		d.ID = r.Drive.ID
	}
	switch d.Status {
	case "":
		d.Status, d.Finding, d.Remedy = f.assess()
	case sample.DriveAsleep:
		asleep(d, r, at)
	case sample.DriveUnread:
		if r != nil {
			d.Model, d.Serial = cmp.Or(d.Model, r.Drive.Model), cmp.Or(d.Serial, r.Drive.Serial)
			d.Protocol = cmp.Or(d.Protocol, r.Drive.Protocol)
		}
		d.Finding = name(d) + " could not be read: " + d.Err + "."
		if d.Silent {
			if status, finding, remedy := f.assess(); status == sample.DriveFailed {
				d.Status, d.Finding, d.Remedy = status, finding, remedy
			}
		}
	}
}

// asleep gives a drive that was not woken what it told last. A drive that was failing when it went to sleep still is.
func asleep(d *sample.Drive, r *Record, at time.Time) {
	d.Finding = name(d) + " sleeps, and was not woken."
	if r == nil || r.Drive.At.IsZero() {
		return
	}
	device, kind := d.Device, d.Type
	*d = r.Drive
	d.Device, d.Type, d.Status = device, kind, sample.DriveAsleep
	d.Finding = name(d) + " sleeps, and was not woken: what is known of it is of " + d.At.Local().Format(time.DateTime) + "."
	f := facts{d, r, at}
	status, finding, remedy := f.assess()
	if finding != "" {
		d.Finding, d.Remedy = finding+" It sleeps: this is of "+d.At.Local().Format(time.DateTime)+".", remedy
	}
	if status != sample.DriveOK {
		d.Status = status
	}
}

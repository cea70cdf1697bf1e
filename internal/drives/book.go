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

// Round takes over a round of questions in which all drives were asked, writes the history, and gives the drives judged,
// the worst first, with those that have vanished. The list that was given is not changed.
func (b *Book) Round(asked []sample.Drive, at time.Time) []sample.Drive {
	if b == nil {
		return judge(nil, asked, at)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.path != "" {
		b.refresh()
	}
	for i := range asked {
		b.learn(&asked[i], at)
	}
	b.forget(at)
	all := b.look(asked, at, true)
	if b.path != "" && (len(b.known) > 0 || b.seen != nil) { // no file for nothing
		err := write(b.path, b.known)
		if b.problem(err); err == nil {
			b.seen, _ = os.Stat(b.path)
		}
	}
	return all
}

// Look judges drives that were asked, and learns nothing. complete says that all drives of the machine were: then those
// that have vanished are added.
func (b *Book) Look(asked []sample.Drive, at time.Time, complete bool) []sample.Drive {
	if b == nil {
		return judge(nil, asked, at)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.look(asked, at, complete)
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

// learn takes over what was seen of one drive.
func (b *Book) learn(d *sample.Drive, at time.Time) {
	r := b.of(d)
	if r == nil {
		if d.ID == "" || d.Status != "" {
			return // nothing is known of what it is
		}
		r = &Record{First: at.UTC().Truncate(time.Second)}
		b.known[d.ID] = r
	}
	if at = at.UTC().Truncate(time.Second); at.After(r.Seen) {
		r.Seen = at
	}
	r.Boot = b.boot
	switch {
	case d.Status == "":
		r.learn(d, at)
	case d.Silent:
		r.Silent++
	default:
		r.Silent = 0
	}
}

// of is the record of a drive: by what it is, or, of one that did not tell, by where it was in this boot.
func (b *Book) of(d *sample.Drive) *Record {
	if r := b.known[d.ID]; r != nil && d.ID != "" {
		return r
	}
	if d.Status == "" || d.Status == sample.DriveVanished || b.boot == "" {
		return nil
	}
	for _, r := range b.known {
		if r.Boot == b.boot && r.Drive.Device == d.Device && r.Drive.Type == d.Type && (d.Serial == "" || d.Serial == r.Drive.Serial) {
			return r
		}
	}
	return nil
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

func (b *Book) look(asked []sample.Drive, at time.Time, complete bool) []sample.Drive {
	all := judge(b, asked, at)
	if complete {
		all = append(all, b.vanished(asked, at)...)
		Sort(all)
	}
	return all
}

// vanished are the drives that were here in this boot, or within the last days, and are not among those that were asked.
func (b *Book) vanished(asked []sample.Drive, at time.Time) []sample.Drive {
	here := map[*Record]bool{}
	for i := range asked {
		if r := b.of(&asked[i]); r != nil {
			here[r] = true
		}
	}
	var gone []sample.Drive
	for _, id := range slices.Sorted(maps.Keys(b.known)) {
		r := b.known[id]
		lately := at.Sub(r.Seen) <= recent || r.Boot == b.boot && b.boot != ""
		if here[r] || at.Before(r.Seen) || !lately || maybe(r, asked) {
			continue
		}
		d := r.Drive
		d.Status = sample.DriveVanished
		d.Finding = fmt.Sprintf("%s (%s) has vanished: it was there %s, and the machine lists it no more.",
			name(&d), what(&d), lastSeen(r.Seen, at))
		d.Remedy = "Look into the kernel's log for it (dmesg), reseat it and its cable. If it was taken out on purpose: stallspan health --forget '" + id + "'."
		gone = append(gone, d)
	}
	return gone
}

// maybe says whether a drive may be one of those that were asked and did not tell what they are: one has its name. Until
// the machine is started anew, names are enough to know a drive by; after it one that only sleeps has not vanished.
func maybe(r *Record, asked []sample.Drive) bool {
	return slices.ContainsFunc(asked, func(d sample.Drive) bool {
		return d.ID == "" && d.Model == "" && d.Serial == "" && d.Device == r.Drive.Device && d.Type == r.Drive.Type
	})
}

// what is a drive's make, for a person who looks for it.
func what(d *sample.Drive) string {
	return cmp.Or(d.Model, d.ID) + ", serial " + cmp.Or(d.Serial, "unknown")
}

func lastSeen(t, now time.Time) string {
	if text := since(t, now); len(text) == len("15:04") {
		return "at " + text
	} else if text[0] >= 'A' {
		return "on " + text
	}
	return "on " + t.Local().Format(time.DateOnly)
}

// judge gives copies of drives with their state.
func judge(b *Book, asked []sample.Drive, at time.Time) []sample.Drive {
	all := slices.Clone(asked)
	for i := range all {
		var r *Record
		if b != nil {
			r = b.of(&all[i])
		}
		judged(&all[i], r, at)
	}
	Sort(all)
	return all
}

func judged(d *sample.Drive, r *Record, at time.Time) {
	f := facts{d, r, at}
	switch d.Status {
	case "":
		d.Status, d.Finding, d.Remedy = f.assess()
	case sample.DriveAsleep:
		asleep(d, r, at)
	case sample.DriveUnread:
		if r != nil {
			d.ID, d.Model, d.Serial = cmp.Or(d.ID, r.Drive.ID), cmp.Or(d.Model, r.Drive.Model), cmp.Or(d.Serial, r.Drive.Serial)
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

package looking

import (
	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/source/opens"
	"github.com/stallspan/stallspan/internal/source/process"
)

// opened is what is known of the files that a job opened, by the kernel's reports.
type opened struct {
	keys   map[string]detect.FileKey // by path: stat has other numbers for files of some file systems
	paths  map[detect.FileKey]string
	joined bool // a process joined the job since the last look: what it had opened before was not reported

	answered bool // a process said which files it has open
	refused  bool // one may not be asked for that
}

// maxOpened bounds the files that are remembered of a job.
const maxOpened = 1024

// takeOpens takes over what the kernel reported of a job since the look before. Of a process whose files may not be
// read, nothing is passed on.
func (l *Looker) takeOpens(j *job, f *detect.Facts) {
	f.Events, f.Exact = f.Events[:0], false
	joined := j.opened.joined
	j.opened.joined = false
	if l.config.Opens == nil {
		return
	}
	all := l.config.Opens.Take(f.Job, f.At, func(e *opens.Event) {
		if !j.mayKnow(e.PID) {
			return
		}
		if one, ok := j.opened.event(e); ok {
			f.Events = append(f.Events, one)
		}
	})
	f.Exact, f.MinSize = all && !joined, opens.MinSize
	if len(f.Events) > 0 { // it did too little to be due since then
		f.Last = min(f.Last, f.Events[0].At)
	}
}

// mayKnow reports whether the open files of a process may be read. One that was not asked yet counts as the others.
func (j *job) mayKnow(pid int) bool {
	if p := j.processes[pid]; p != nil && (p.refused || !p.facts.Denied) {
		return !p.refused
	}
	return j.opened.answered && !j.opened.refused
}

// event makes a fact of a report. It drops what looks do not show either.
func (o *opened) event(e *opens.Event) (one detect.Event, ok bool) {
	one = detect.Event{
		At: e.At, PID: e.PID, Path: e.Path, Key: detect.FileKey{Device: e.Device, Inode: e.Inode}, Size: e.Size,
		Offset: e.Position, Close: e.Close, Write: e.Write,
	}
	if e.Close {
		one.Path = o.paths[one.Key]
		return one, one.Path != ""
	}
	if len(e.Path) > process.MaxFilePath || !process.OfModel(e.Path) && process.System(e.Path) {
		return one, false
	}
	if o.paths == nil || len(o.paths) >= maxOpened {
		o.paths, o.keys = map[detect.FileKey]string{}, map[string]detect.FileKey{}
	}
	o.paths[one.Key], o.keys[e.Path] = e.Path, one.Key
	return one, true
}

// unify gives the files of a look the numbers that the kernel's reports have for them.
func (o *opened) unify(files []detect.File) {
	if len(o.keys) == 0 {
		return
	}
	for i := range files {
		if key, ok := o.keys[files[i].Path]; ok {
			files[i].Key = key
		}
	}
}

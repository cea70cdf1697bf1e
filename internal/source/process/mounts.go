package process

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
	"github.com/stallspan/stallspan/internal/source/mount"
)

const (
	mostFDs       = 2000 // looked at in a second, over all jobs: about 3 us each
	mostFDsOfOne  = 1024 // open files of one process: those with the lowest numbers
	mostMounts    = 64   // of one job: those seen last
	mostMountIDs  = 8192 // remembered
	forgetEvery   = time.Minute
	flagDirectory = 0o200000
	flagPath      = 0o10000000
)

// mounts is where a job has had files open. Which mount a file lies on is told by /proc/PID/fdinfo without touching
// the file itself: asking a file on a dead NFS server would hang this program as it hangs the job.
type mounts struct {
	seen   []sample.Mount // replaced, never changed, since samples refer to it
	known  map[int]sample.Mount
	since  time.Duration // when the oldest of known was learnt
	next   int           // the member that the next look begins with
	reread bool          // the list of mounts was read in this look already
}

// lookAtFiles notes the mounts of up to budget open files. What does not fit comes first the next time. now is
// noted as the time at which they were seen.
func (j *job) lookAtFiles(budget int, now time.Duration) {
	j.mounts.reread = false
	if now-j.mounts.since >= forgetEvery || j.mounts.known == nil { // the kernel soon gives a number to another mount
		j.mounts.known, j.mounts.since = make(map[int]sample.Mount), now
	}
	seen := make(map[int]sample.Mount)
	for range j.members {
		if budget <= 0 {
			break
		}
		m := j.members[j.mounts.next%len(j.members)]
		j.mounts.next++
		if m.lost == 0 && !m.ended && !j.rests(m) {
			budget -= j.mounts.lookAt(m, budget, seen)
		}
	}
	if len(seen) > 0 {
		j.mounts.note(seen, now)
	}
}

// lookAt puts the mounts of the member's open files into seen and says how many files it looked at. A process whose
// files are not ours to see has none.
func (ms *mounts) lookAt(m *member, budget int, seen map[int]sample.Mount) int {
	dir := filepath.Join(m.dir, "fdinfo")
	fds, err := names(dir, mostFDsOfOne)
	if err != nil || len(fds) == 0 {
		return 1
	}
	count := min(len(fds), budget)
	for i := range count {
		info, err := readAll(dir+"/"+fds[(m.nextFD+i)%len(fds)], 4096)
		if err != nil {
			continue // closed since
		}
		if id, ok := parseFDInfo(info); ok {
			if at, found := ms.find(id, m); found && holdsFiles(&at) {
				seen[id] = at
			}
		}
	}
	m.nextFD = (m.nextFD + count) % len(fds)
	return count
}

// parseFDInfo finds the mount in the lines "flags: octal" and "mnt_id: number" of /proc/PID/fdinfo/FD. Folders, and
// files that are only pointed at, are left out.
func parseFDInfo(text []byte) (mountID int, ok bool) {
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte{'\n'})
		name, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimSpace(value)
		switch string(name) {
		case "flags":
			flags := 0
			for _, digit := range value[:min(len(value), 12)] {
				flags = flags<<3 | int(digit&7)
			}
			if flags&(flagDirectory|flagPath) != 0 {
				return 0, false
			}
		case "mnt_id":
			id, fits := kernfile.ParseUint(value)
			return int(id), fits && id < 1<<31
		}
	}
	return 0, false
}

// find looks a mount up by the number that it has on the whole machine. A number that is not known makes the list
// of the member's mounts be read, at most once a look; pipes, sockets and the like have numbers that are in no list
// and are remembered with no Type.
func (ms *mounts) find(id int, m *member) (sample.Mount, bool) {
	if at, ok := ms.known[id]; ok {
		return at, at.Type != ""
	}
	if ms.reread || len(ms.known) >= 2*mostMountIDs {
		return sample.Mount{}, false
	}
	ms.reread = true
	if list, err := os.Open(filepath.Join(m.dir, "mountinfo")); err == nil {
		all, _ := mount.Parse(list) // lines that are not understood have no mount for us
		_ = list.Close()
		for _, at := range all[:min(len(all), mostMountIDs)] {
			ms.known[at.ID] = at
		}
	}
	at := ms.known[id]
	ms.known[id] = at
	return at, at.Type != ""
}

// holdsFiles leaves out where no data lie: what the kernel talks through, and device nodes.
func holdsFiles(m *sample.Mount) bool {
	return mount.Kind(m.Type) != mount.Virtual && m.Type != "devtmpfs" && m.Point != "/dev"
}

// note makes a new list of those that were seen now and the latest of those before.
func (ms *mounts) note(seen map[int]sample.Mount, now time.Duration) {
	list := make([]sample.Mount, 0, min(len(seen)+len(ms.seen), 2*mostMounts))
	for _, at := range seen {
		at.LastSeen = now
		list = append(list, at)
	}
	for _, at := range ms.seen {
		if _, again := seen[at.ID]; !again {
			list = append(list, at)
		}
	}
	slices.SortFunc(list, func(a, b sample.Mount) int {
		if a.LastSeen != b.LastSeen {
			return int(b.LastSeen - a.LastSeen)
		}
		return a.ID - b.ID
	})
	ms.seen = list[:min(len(list), mostMounts)]
}

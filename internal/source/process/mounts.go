package process

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/disk"
	"github.com/stallspan/stallspan/internal/source/kernfile"
	"github.com/stallspan/stallspan/internal/source/mount"
)

const (
	maxFDs          = 2000 // per second over all jobs: about 3 us each
	maxProcessFDs   = 1024 // of one process: the lowest numbers
	maxMounts       = 64   // of one job: the newest
	maxMountIDs     = 8192 // stored
	forgetEvery     = time.Minute
	flagDirectory   = 0o200000
	flagPath        = 0o10000000
	flagCloseOnExec = 0o2000000
)

// mounts are the mounts on which a job has had files open. /proc/PID/fdinfo shows the mount without an access to the
// file: a file on a dead NFS server would block this program as it blocks the job.
type mounts struct {
	seen   []sample.Mount // immutable, because samples refer to it
	known  map[int]sample.Mount
	since  time.Duration // age of known
	next   int           // member with which the next scan starts
	reread bool          // the list of mounts was read in this scan
}

// scanFiles stores the mounts of up to budget open files. The next scan starts with the rest. now is the time of the
// scan.
func (j *job) scanFiles(s *Source, budget int, now time.Duration) {
	j.mounts.reread = false
	if now-j.mounts.since >= forgetEvery || j.mounts.known == nil { // the kernel reuses mount IDs
		j.mounts.known, j.mounts.since = make(map[int]sample.Mount), now
	}
	seen := make(map[int]sample.Mount)
	for range j.members {
		if budget <= 0 {
			break
		}
		m := j.members[j.mounts.next%len(j.members)]
		j.mounts.next++
		if m.lost == 0 && !m.ended {
			budget -= j.mounts.scan(s, j, m, budget, seen)
		}
	}
	if len(seen) > 0 {
		j.mounts.note(s.root, seen, now)
	}
}

// scan adds the mounts of the member's open files to seen, notes its pipes and sockets, and returns the number of
// files. Without permission the number is 1.
func (ms *mounts) scan(s *Source, j *job, m *member, budget int, seen map[int]sample.Mount) int {
	list, files, err := s.filesOf(m.key(), m.nextFD, budget)
	if err != nil || files == 0 {
		return 1
	}
	for i := range list {
		f := &list[i]
		if f.Pipe != 0 {
			continue
		}
		if s.connections.isSocket(*f) {
			s.connections.want(j, f.Inode, !m.seenFDs && (m.start < j.added || m.joined))
		} else if at, found := ms.find(f.Mount, m); found && hasData(&at) {
			if at.Direct = seen[f.Mount].Direct; f.Direct {
				at.Direct = 1
			}
			seen[f.Mount] = at
		}
	}
	count := min(files, budget)
	m.ends.learn(list, count, files)
	m.seenFDs = m.seenFDs || m.nextFD+count >= files
	m.nextFD = (m.nextFD + count) % files
	return count
}

// filesIn returns up to limit open files of a process by its folder in /proc, from the one with an index, and the
// number of open files.
func filesIn(dir string, from, limit int) (list []OpenFile, files int, err error) {
	fds, err := kernfile.Names(dir+"/fdinfo", maxProcessFDs)
	if err != nil || len(fds) == 0 {
		return nil, 0, err
	}
	var buf [4096]byte
	for i := range min(len(fds), limit) {
		fd := fds[(from+i)%len(fds)]
		info, err := kernfile.ReadPiece(dir+"/fdinfo/"+fd, buf[:])
		if err != nil {
			continue // closed meanwhile
		}
		parsed, ok := parseFDInfo(info)
		if !ok || parsed.folder {
			continue
		}
		f := parsed.OpenFile
		if parsed.position == 0 { // a pipe has no other
			to, _ := os.Readlink(dir + "/fd/" + fd)
			f.Pipe = pipeOf(to)
		}
		list = append(list, f)
	}
	return list, len(fds), nil
}

// fdInfo is what /proc/PID/fdinfo/FD has.
type fdInfo struct {
	OpenFile
	position uint64
	folder   bool // or opened with O_PATH
}

// parseFDInfo parses the lines "pos: number", "flags: octal", "mnt_id: number" and "ino: number". The kernel prints the
// last one since Linux 5.14.
func parseFDInfo(text []byte) (f fdInfo, ok bool) {
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimSpace(value)
		number, fits := kernfile.ParseUint(value)
		switch string(name) {
		case "pos":
			f.position = number
		case "flags":
			flags := 0
			for _, digit := range value[:min(len(value), 12)] {
				flags = flags<<3 | int(digit&7)
			}
			f.folder = flags&(flagDirectory|flagPath) != 0
			f.Direct = flags&syscall.O_DIRECT != 0
			access := flags & syscall.O_ACCMODE
			f.Ends = Ends{access != syscall.O_WRONLY, access != syscall.O_RDONLY, flags&flagCloseOnExec == 0}
		case "mnt_id":
			f.Mount, ok = int(number), fits && number < 1<<31
		case "ino":
			f.Inode = uint32(number)
			return f, ok
		}
	}
	return f, ok
}

// pipeOf returns the number of the pipe in the link of an open file, "pipe:[number]"; 0 for any other link.
func pipeOf(link string) uint64 {
	number, isPipe := strings.CutPrefix(strings.TrimSuffix(link, "]"), "pipe:[")
	if n, err := strconv.ParseUint(number, 10, 64); isPipe && err == nil {
		return n
	}
	return 0
}

// find returns a mount by its ID, which is unique on the machine. For an unknown ID it reads the list of the member's
// mounts, at most once per scan. Pipes, sockets and similar files have IDs that are in no list; they are stored without
// a Type.
func (ms *mounts) find(id int, m *member) (sample.Mount, bool) {
	if at, ok := ms.known[id]; ok {
		return at, at.Type != ""
	}
	if ms.reread || len(ms.known) >= 2*maxMountIDs {
		return sample.Mount{}, false
	}
	ms.reread = true
	if list, err := os.Open(filepath.Join(m.dir, "mountinfo")); err == nil {
		all, _ := mount.Parse(list) // lines that cannot be parsed are left out
		_ = list.Close()
		for _, at := range all[:min(len(all), maxMountIDs)] {
			ms.known[at.ID] = at
		}
	}
	at := ms.known[id]
	ms.known[id] = at
	return at, at.Type != ""
}

// hasData reports whether a mount can hold data. Virtual file systems and device nodes cannot.
func hasData(m *sample.Mount) bool {
	return mount.Kind(m.Type) != mount.Virtual && m.Type != "devtmpfs" && m.Point != "/dev"
}

// note makes a new list of the mounts seen now and the newest earlier ones.
func (ms *mounts) note(root string, seen map[int]sample.Mount, now time.Duration) {
	list := make([]sample.Mount, 0, min(len(seen)+len(ms.seen), 2*maxMounts))
	for _, at := range seen {
		at.LastSeen = now
		if at.Direct > 0 {
			at.Direct = now
		}
		if i := slices.IndexFunc(ms.seen, func(old sample.Mount) bool { return old.ID == at.ID }); i >= 0 {
			at.Device, at.Direct = ms.seen[i].Device, max(at.Direct, ms.seen[i].Direct)
		} else {
			at.Device = disk.DevicesOf(root, at)
		}
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
	ms.seen = list[:min(len(list), maxMounts)]
}

package process

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

const (
	maxMembers       = 4096
	maxThreads       = 8192  // of a process that is scanned for children
	maxHostProcesses = 65536 // processes that scanParents reads
	maxScans         = 512   // processes whose children are listed, a second
	maxCgroups       = 256   // below the cgroup of a job
	listBytes        = 1 << 20
)

// A client of the API may begin and end thousands of windows a second, each of a job that is new here. So all jobs
// share how many processes are found in a second. A job of more is complete some seconds later.
const (
	findRate  = 1024 // processes opened, or lists of children read, a second
	findBurst = 2048
)

// findings are how many processes may be found now.
type findings struct {
	left float64
	at   time.Duration // Stamp.Mono of left; 0 before the first
}

// take reports whether one more may be found.
func (f *findings) take(now time.Duration) bool {
	if f.at == 0 {
		f.left = findBurst
	} else {
		f.left = max(f.left, min(findBurst, f.left+findRate*(now-f.at).Seconds()))
	}
	f.at = now
	if f.left < 1 {
		return false
	}
	f.left--
	return true
}

// scan finds the members of the job. Known members stay until they end, in any cgroup.
func (j *job) scan(s *Source) {
	j.problems.Reset()
	j.scans++
	j.excess = 0
	j.unfinished = false
	for _, m := range j.members {
		m.ioError = nil // the permission may have changed
	}
	before := len(j.members)
	if j.dir != "" {
		left := maxCgroups
		j.scanCgroup(s, j.dir, &left)
		if j.hidden && j.scans == 1 {
			j.join(s, j.first, nil) // its children are found in the /proc below root
		}
	}
	switch {
	case j.dir != "" && !j.hidden:
		j.scanFeeders(s)
	case j.byParent:
		j.scanParents(s)
	default:
		j.scanChildren(s)
	}
	if j.excess > 0 {
		j.problems.Add(fmt.Errorf("job %s has more than %d processes: %d are not counted", j.id, maxMembers, j.excess))
	}
	if len(j.members) > before {
		j.sortMembers()
	}
}

// sortMembers puts parents before children.
func (j *job) sortMembers() {
	slices.SortFunc(j.members, func(a, b *member) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.pid, b.pid))
	})
}

// join adds a process unless it is a member. parent is the one through which it was found; nil for none.
func (j *job) join(s *Source, pid int, parent *member) {
	if _, known := j.byPID[pid]; known || pid <= 0 || parent != nil && parent.feeds && s.isOfAnother(j, pid) {
		return
	}
	if len(j.members) >= maxMembers {
		j.excess++
		return
	}
	if !s.found.take(sample.Now().Mono) {
		j.unfinished = true
		return
	}
	m, err := s.admit(pid)
	if err != nil {
		if !gone(err) {
			j.problems.Add(fmt.Errorf("processes of job %s are not counted: %w", j.id, cause(err)))
		}
		return
	}
	if parent != nil && parent.feeds {
		j.feeds(s, m)
	}
	j.byPID[pid] = m
	j.members = append(j.members, m)
}

// scanChildren follows /proc/PID/task/TID/children from the members: from all that are new, and from as many others as
// the budget allows. The next scan starts with the rest.
func (j *job) scanChildren(s *Source) {
	known := len(j.members)
	budget := maxScans / max(1, len(s.jobs))
	for range known {
		m := j.members[j.nextScan%known]
		if budget <= 0 {
			break
		}
		j.nextScan++
		if m.lost != 0 || m.ended {
			s.orphan(m)
		}
		if m.lost == 0 && !m.ended && (!s.childless(m) || (j.scans+m.pid)%lookEvery == 0) {
			budget--
			j.scanChildrenOf(s, m)
		}
	}
	for i := known; i < len(j.members); i++ { // the list grows
		j.scanChildrenOf(s, j.members[i])
	}
}

func (j *job) scanChildrenOf(s *Source, m *member) {
	if !s.found.take(sample.Now().Mono) {
		j.unfinished = true
		return
	}
	if m.listedAt = 0; m.traced && s.known {
		m.listedAt = s.round
	}
	threads, err := kernfile.Names(filepath.Join(m.dir, "task"), maxThreads)
	if err != nil && !gone(err) {
		j.problems.Add(fmt.Errorf("children of processes of job %s are not found: %w", j.id, cause(err)))
	}
	var list, buf []byte
	for _, thread := range threads {
		text, err := kernfile.ReadWhole(m.dir+"/task/"+thread+"/children", buf, listBytes)
		buf = text
		if err == nil { // the thread may have ended
			list = append(append(list, text...), ' ')
		}
	}
	if !s.same(m.proc) {
		return
	}
	j.joinAll(s, list, m)
}

// hasChildrenFiles reports whether the kernel lists the children of a process (CONFIG_PROC_CHILDREN).
func (s *Source) hasChildrenFiles(pid int) bool {
	id := strconv.Itoa(pid)
	_, err := os.Stat(filepath.Join(s.proc, id, "task", id, "children"))
	return !errors.Is(err, fs.ErrNotExist)
}

// scanParents reads the parent of every process of the machine: about 3 us each.
func (j *job) scanParents(s *Source) {
	list, err := kernfile.Names(s.proc, maxHostProcesses)
	if err != nil {
		j.problems.Add(fmt.Errorf("new processes of job %s are not found: %w", j.id, err))
		return
	}
	children := make(map[int][]int)
	for _, name := range list {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if now, ok := StatOf(s.root, pid); ok {
			children[now.Parent] = append(children[now.Parent], pid)
		}
	}
	for i := 0; i < len(j.members); i++ { // the list grows
		m := j.members[i]
		if pids := children[m.pid]; m.lost == 0 && len(pids) > 0 && s.same(m.proc) {
			for _, pid := range pids {
				j.join(s, pid, m)
			}
		}
	}
}

// scanCgroup adds all processes of a cgroup and of the cgroups below it.
func (j *job) scanCgroup(s *Source, dir string, left *int) {
	if *left == 0 {
		j.problems.Add(fmt.Errorf("job %s has more than %d cgroups: the processes of the others are not counted",
			j.id, maxCgroups))
		return
	}
	*left--
	list, err := kernfile.ReadWhole(filepath.Join(dir, "cgroup.procs"), nil, listBytes)
	if errors.Is(err, fs.ErrPermission) {
		j.problems.Add(fmt.Errorf("processes of job %s are not found, run as a user with access to its cgroup: %w",
			j.id, err))
	}
	j.joinAll(s, list, nil) // a threaded cgroup cannot be read: its processes are in its parent
	folder, err := os.Open(dir)
	if err != nil {
		return // it was removed
	}
	defer folder.Close()
	entries, err := folder.ReadDir(maxCgroups * 100)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if entry.IsDir() && *left >= 0 {
			j.scanCgroup(s, filepath.Join(dir, entry.Name()), left)
		}
	}
}

// joinAll adds the processes of a list of IDs separated by blanks. A cgroup lists a process outside our PID namespace
// as 0.
func (j *job) joinAll(s *Source, list []byte, parent *member) {
	for word := range bytes.FieldsSeq(list) {
		if pid, ok := kernfile.ParseUint(word); ok && pid < 1<<31 {
			j.hidden = j.hidden || pid == 0
			j.join(s, int(pid), parent)
		}
	}
}

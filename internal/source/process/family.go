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

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

const (
	mostMembers = 4096
	mostThreads = 8192  // of one process, looked at for children
	mostOnHost  = 65536 // processes that the fallback looks at
	mostCgroups = 256   // below a job's own one
	listBytes   = 1 << 20
)

// look finds the members of the job: those that are known stay as long as they live, wherever they were moved.
func (j *job) look(s *Source) {
	j.trouble.Reset()
	j.looks++
	j.beyond = 0
	for _, m := range j.members {
		m.ioError = nil // it may have become ours to read
	}
	before := len(j.members)
	if j.dir != "" {
		left := mostCgroups
		j.lookInCgroup(s, j.dir, &left)
		if j.hidden && j.looks == 1 {
			j.join(s, j.first) // and its children are found by the /proc below root, which knows them
		}
	}
	switch {
	case j.dir != "" && !j.hidden:
	case j.byParent:
		j.lookByParent(s)
	default:
		j.lookForChildren(s)
	}
	if j.beyond > 0 {
		j.trouble.Add(fmt.Errorf("job %s has more than %d processes: %d are not counted", j.id, mostMembers, j.beyond))
	}
	if len(j.members) > before {
		slices.SortFunc(j.members, func(a, b *member) int { // parents before their children
			return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.pid, b.pid))
		})
	}
}

// rests says that a process needs no look this time: it has done nothing since the look before, not even touched a new
// page, so it has hardly started another or opened a file. It is looked at every fifth time all the same.
func (j *job) rests(m *member) bool { return m.moved < j.lookedLast && j.looks%restsFor != 0 }

// join makes the process a member, unless it is one.
func (j *job) join(s *Source, pid int) {
	if _, known := j.byPID[pid]; known || pid <= 0 {
		return
	}
	if len(j.members) >= mostMembers {
		j.beyond++
		return
	}
	m, err := s.admit(pid)
	if err != nil {
		if !gone(err) {
			j.trouble.Add(fmt.Errorf("a process of job %s is not counted: %w", j.id, err))
		}
		return
	}
	j.byPID[pid] = m
	j.members = append(j.members, m)
}

// lookForChildren follows /proc/PID/task/TID/children from each member down.
func (j *job) lookForChildren(s *Source) {
	for i := 0; i < len(j.members); i++ { // grows under way
		m := j.members[i]
		if m.lost != 0 || m.ended || j.rests(m) {
			continue
		}
		threads, err := names(filepath.Join(m.dir, "task"), mostThreads)
		if err != nil && !gone(err) {
			j.trouble.Add(fmt.Errorf("children of process %d are not found: %w", m.pid, err))
		}
		var list []byte
		for _, thread := range threads {
			text, err := readAll(m.dir+"/task/"+thread+"/children", listBytes)
			if err == nil { // a thread ends at any time
				list = append(append(list, text...), ' ')
			}
		}
		if s.same(m) {
			j.joinAll(s, list)
		}
	}
}

// hasChildrenFiles tells whether the kernel lists the children of a process (CONFIG_PROC_CHILDREN).
func (s *Source) hasChildrenFiles(pid int) bool {
	id := strconv.Itoa(pid)
	_, err := os.Stat(filepath.Join(s.proc, id, "task", id, "children"))
	return !errors.Is(err, fs.ErrNotExist)
}

// lookByParent asks every process of the machine for its parent: about 3 us each.
func (j *job) lookByParent(s *Source) {
	list, err := names(s.proc, mostOnHost)
	if err != nil {
		j.trouble.Add(fmt.Errorf("new processes of job %s are not found: %w", j.id, err))
		return
	}
	children := make(map[int][]int)
	for _, name := range list {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		text, err := readAll(filepath.Join(s.proc, name, "stat"), int64(len(s.buf)))
		if err != nil {
			continue
		}
		if now, ok := parseStat(text); ok {
			children[int(now.parent)] = append(children[int(now.parent)], pid)
		}
	}
	for i := 0; i < len(j.members); i++ { // grows under way
		m := j.members[i]
		if pids := children[m.pid]; m.lost == 0 && len(pids) > 0 && s.same(m) {
			for _, pid := range pids {
				j.join(s, pid)
			}
		}
	}
}

// lookInCgroup takes all processes of a cgroup and of those below it.
func (j *job) lookInCgroup(s *Source, dir string, left *int) {
	if *left == 0 {
		j.trouble.Add(fmt.Errorf("job %s has more than %d cgroups: the processes of the others are not counted", j.id, mostCgroups))
		return
	}
	*left--
	list, err := readAll(filepath.Join(dir, "cgroup.procs"), listBytes)
	if errors.Is(err, fs.ErrPermission) {
		j.trouble.Add(fmt.Errorf("processes of job %s are not found, run as a user that may read its cgroup: %w", j.id, err))
	}
	j.joinAll(s, list) // a threaded cgroup cannot be read: its processes are in the one above
	folder, err := os.Open(dir)
	if err != nil {
		return // it was removed
	}
	defer folder.Close()
	entries, err := folder.ReadDir(mostCgroups * 100)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if entry.IsDir() && *left >= 0 {
			j.lookInCgroup(s, filepath.Join(dir, entry.Name()), left)
		}
	}
}

// joinAll takes process IDs between any blanks. A cgroup lists a process of another pid namespace than ours as 0,
// whichever /proc we read.
func (j *job) joinAll(s *Source, list []byte) {
	for word := range bytes.FieldsSeq(list) {
		if pid, ok := kernfile.ParseUint(word); ok && pid < 1<<31 {
			j.hidden = j.hidden || pid == 0
			j.join(s, int(pid))
		}
	}
}

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
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// A feeder is a program that writes to a pipe from which a job reads: tar in "tar -c data | train.py". It belongs to
// the job with its children, and so do the feeders of a feeder. The rules keep out what is not the same work:
//
//   - Only pipes count that both programs got from those that started them. A program opens a pipe to its own children
//     with O_CLOEXEC, and then other children may have an end that they never use.
//   - A process that has both ends is not fed, such as a command of make, which has a pipe with tokens.
//   - A feeder has the same user and groups, is at the same level of PID namespaces, and may be traced by that user.
//     It is in the same session, or in the same cgroups below the roots.
//   - It is no process above the job, and not the shell of a terminal: other children of these are other work.
//   - It is no process of another job, which has a ledger of its own. The scheduler's evidence leads from job to job.
const (
	maxFeeders     = 32 // of a job, without their children
	maxEnds        = 64 // of pipes, of one process
	maxAbove       = 64 // processes above one that are looked at
	maxFeederFiles = 256
	// feederGone is how long a process that feeds the job no longer stays a member.
	feederGone = 3 * time.Second
	// feederAge is how long a feeder ran if it began before it fed the job: a search is a second late at most.
	feederAge = 2 * time.Second
	// While a search finds nothing new, the next one waits twice as long, from minSearch to maxSearch. All together take
	// 1/searchShare of the time at most, but one for a pipe that is new waits for soonSearch at most. One that takes
	// longer than longSearch stops, because all readings wait for it, and goes on later.
	minSearch   = time.Second
	maxSearch   = time.Minute
	searchShare = 100
	soonSearch  = 2 * time.Second
	longSearch  = 20 * time.Millisecond
	// turnFor is how long a job that waits for its search comes before those that were searched later.
	turnFor = 5 * time.Second
)

// end is an end of a pipe that a process has open.
type end struct {
	pipe uint64
	Ends
}

// ends are the ends that a process had open when all of its open files were last scanned.
type ends struct {
	open    []end
	next    []end // of the present scan, in parts
	scanned int   // files in next
}

// learn adds some open files of all.
func (e *ends) learn(list []OpenFile, some, all int) {
	e.next = appendEnds(e.next, list)
	if e.scanned += some; e.scanned >= all {
		e.open, e.next, e.scanned = e.next, e.open[:0], 0
	}
}

// given reports whether it is the reading end of a pipe that the process may have got from the one that started it.
func (e end) given() bool { return e.Reads && e.Stays }

// offers reports whether it is the writing end of such a pipe.
func (e end) offers() bool { return e.Writes && e.Stays }

func appendEnds(to []end, list []OpenFile) []end {
	for i := range list {
		if f := &list[i]; f.Pipe != 0 && len(to) < maxEnds {
			to = append(to, end{f.Pipe, f.Ends})
		}
	}
	return to
}

func writes(open []end, pipe uint64) bool {
	return slices.ContainsFunc(open, func(e end) bool { return e.pipe == pipe && e.Writes })
}

// pipes are the pipes from which a job reads what others write.
type pipes struct {
	own  map[uint64]bool // the job writes to them itself
	from map[uint64]bool
}

// follow adds the pipes that a process reads.
func (p *pipes) follow(open []end) {
	for _, e := range open {
		if e.given() && !p.own[e.pipe] && !writes(open, e.pipe) {
			p.from[e.pipe] = true
		}
	}
}

// fedBy reports whether a process writes to one of the pipes.
func (p *pipes) fedBy(open []end) bool {
	return slices.ContainsFunc(open, func(e end) bool { return e.offers() && p.from[e.pipe] })
}

// feeding is what a job knows of its feeders.
type feeding struct {
	due     time.Duration // Stamp.Mono of the next search
	wait    time.Duration // before that
	last    time.Duration // Stamp.Mono of the last search
	refused time.Duration // and of when the next one was due, but not its turn; 0 if it was not
	after   int           // the process at which the last search stopped; 0 if it looked at all
	unfed   []uint64      // pipes for which the last search had no process
	left    counts        // of feeders that have ended or left, without an heir; part of job.left
}

// feeds makes a new member one that feeds the job.
func (j *job) feeds(s *Source, m *member) {
	m.feeds, m.fedAt = true, sample.Now().Mono
	m.joined = Uptime(s.root) > m.start+uint64(feederAge/Tick)
}

// findFeeders lets the members leave that feed the job no longer, and searches for new ones. It reports whether some
// left or joined.
func (j *job) findFeeders(s *Source, now time.Duration) bool {
	if j.first <= 0 { // all processes of a cgroup
		return false
	}
	home := j.oldest()
	p, unfed := j.trace(s, now)
	left := j.dropFeeders(s, home != nil, now)
	if home == nil || len(p.from) == 0 {
		j.feeding = feeding{left: j.feeding.left, last: j.feeding.last}
		return left
	}
	f := &j.feeding
	if slices.ContainsFunc(unfed, func(pipe uint64) bool { return !slices.Contains(f.unfed, pipe) }) {
		f.due, f.wait = now, 0
	}
	rest := searchShare * s.searchTime
	if f.wait == 0 {
		rest = min(rest, soonSearch)
	}
	if now < f.due {
		return left
	}
	if s.searched != 0 && now < s.searched+rest || s.waitsLonger(j, now) {
		f.refused = now
		return left
	}
	began := time.Now()
	before := len(j.members)
	j.search(s, p, home, began.Add(longSearch))
	s.searched, s.searchTime = now, time.Since(began)
	f.last, f.refused = now, 0
	if f.after == 0 {
		f.wait = min(max(2*f.wait, minSearch), maxSearch)
		f.due = now + f.wait
	}
	_, f.unfed = j.trace(s, now)
	if len(j.members) > before {
		j.sortMembers()
	}
	return left || len(j.members) > before
}

// waitsLonger reports whether another job has waited for longer for its search.
func (s *Source) waitsLonger(than *job, now time.Duration) bool {
	return slices.ContainsFunc(s.jobs, func(j *job) bool {
		f := &j.feeding
		return j != than && f.refused > 0 && now-f.refused < turnFor && f.last < than.feeding.last
	})
}

// trace follows the pipes from the job's own processes to its feeders. It returns the pipes, and those to which no
// known process writes.
func (j *job) trace(s *Source, now time.Duration) (p pipes, unfed []uint64) {
	if !slices.ContainsFunc(j.members, func(m *member) bool { return slices.ContainsFunc(m.ends.open, end.given) }) {
		return p, nil
	}
	p = pipes{own: map[uint64]bool{}, from: map[uint64]bool{}}
	own, feeders := j.parted()
	for _, m := range own {
		for _, e := range m.ends.open {
			p.own[e.pipe] = p.own[e.pipe] || e.Writes
		}
	}
	for _, m := range own {
		p.follow(m.ends.open)
	}
	active, fed := map[*member]bool{}, map[uint64]bool{}
	for range maxFeeders {
		before := len(active)
		for _, m := range feeders {
			if !active[m] && (active[j.byPID[m.parent]] || p.fedBy(m.ends.open)) && !s.isOfAnother(j, m.pid) {
				m.fedAt, active[m] = now, true
				p.follow(m.ends.open)
			}
		}
		if len(active) == before {
			break
		}
	}
	for m := range active {
		for _, e := range m.ends.open {
			fed[e.pipe] = fed[e.pipe] || e.Writes
		}
	}
	for pipe := range p.from {
		if !fed[pipe] {
			unfed = append(unfed, pipe)
		}
	}
	return p, unfed
}

// isOfAnother reports whether a process is another job's own, and this job is not part of that one.
func (s *Source) isOfAnother(j *job, pid int) bool {
	owns := func(of *job, pid int) bool { m := of.byPID[pid]; return m != nil && !m.feeds }
	home := j.oldest()
	return slices.ContainsFunc(s.jobs, func(other *job) bool {
		return other != j && owns(other, pid) && (home == nil || !owns(other, home.pid))
	})
}

// parted returns the living members that are the job's own, and its feeders with their children.
func (j *job) parted() (own, feeders []*member) {
	for _, m := range j.members {
		switch {
		case m.lost != 0 || m.ended:
		case m.feeds:
			feeders = append(feeders, m)
		default:
			own = append(own, m)
		}
	}
	return own, feeders
}

// dropFeeders takes the members out that feed the job no longer, and reports whether there are some. What they did for
// it stays counted.
func (j *job) dropFeeders(s *Source, alive bool, now time.Duration) bool {
	before := len(j.members)
	j.members = slices.DeleteFunc(j.members, func(m *member) bool {
		if !m.feeds || m.lost != 0 || alive && now-m.fedAt <= feederGone {
			return false
		}
		j.leave(m)
		s.dismiss(m)
		delete(j.byPID, m.pid)
		return true
	})
	return len(j.members) < before
}

// leave keeps what a member did that no other member counts.
func (j *job) leave(m *member) {
	j.left = j.left.plus(m.counted())
	if m.feeds {
		j.feeding.left = j.feeding.left.plus(m.counted())
	}
}

// feedersTime returns the CPU time of the feeders. They are not in the job's own cgroup.
func (j *job) feedersTime() usage {
	sum := j.feeding.left
	for _, m := range j.members {
		if m.feeds {
			sum = sum.plus(m.counted())
		}
	}
	return usage{duration(sum[cpuTicks]), duration(sum[sysTicks])}
}

// scanFeeders finds the children of feeders.
func (j *job) scanFeeders(s *Source) {
	for i := 0; i < len(j.members); i++ { // the list grows
		if m := j.members[i]; m.feeds && m.lost == 0 && !m.ended {
			j.scanChildrenOf(s, m)
		}
	}
}

// outsider is a process that may be a feeder.
type outsider struct {
	Key
	open []end
}

// search adds the processes that write to pipes, directly or through others. It stops at a time; the next one goes on.
func (j *job) search(s *Source, p pipes, home *member, stop time.Time) {
	room := maxFeeders
	for _, m := range j.members {
		if m.feeds {
			room--
		}
	}
	all := j.outsiders(s, home, stop)
	for range maxFeeders {
		found := false
		all = slices.DeleteFunc(all, func(o outsider) bool {
			if !p.fedBy(o.open) || room <= 0 {
				return false
			}
			found = true
			room--
			p.follow(o.open)
			j.admitFeeder(s, o)
			return true
		})
		if !found {
			return
		}
	}
}

func (j *job) admitFeeder(s *Source, o outsider) {
	m, err := s.admit(o.PID)
	if err != nil {
		return // it has ended
	}
	if m.start != o.Start {
		s.dismiss(m)
		return
	}
	j.feeds(s, m)
	m.ends.open = o.open
	j.byPID[o.PID] = m
	j.members = append(j.members, m)
}

// outsiders returns the processes with ends of pipes that are not of the job and may feed it, from where the last
// search stopped.
func (j *job) outsiders(s *Source, home *member, stop time.Time) (list []outsider) {
	from := j.feeding.after
	j.feeding.after = 0
	of, ok := s.standing(home.pid)
	if !ok {
		return nil
	}
	above := j.above(s)
	names, _ := kernfile.Names(s.proc, maxHostProcesses)
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid > from && !above[pid] && j.byPID[pid] == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids) // as the kernel lists them already
	for i, pid := range pids {
		if i > 0 && time.Now().After(stop) {
			j.feeding.after = pid - 1
			return list
		}
		start, ok := s.mayFeed(pid, of)
		if !ok {
			continue
		}
		key := Key{pid, start}
		files, _, err := s.filesOf(key, 0, maxFeederFiles)
		if err != nil {
			continue
		}
		open := appendEnds(nil, files)
		if slices.ContainsFunc(open, end.offers) && !j.below(s, pid) && !s.isOfAnother(j, pid) {
			list = append(list, outsider{key, open})
		}
	}
	return list
}

// above returns the processes above the job's own.
func (j *job) above(s *Source) map[int]bool {
	above := map[int]bool{}
	own, _ := j.parted()
	for _, m := range own {
		for pid := m.parent; pid > 0 && !above[pid]; {
			if known := j.byPID[pid]; known != nil && !known.feeds {
				break
			}
			above[pid] = true
			next, _ := StatOf(s.root, pid)
			pid = next.Parent
		}
	}
	return above
}

// below reports whether a process is a descendant of the job's own that the next scan will find.
func (j *job) below(s *Source, pid int) bool {
	for range maxAbove {
		now, ok := StatOf(s.root, pid)
		if !ok {
			return false
		}
		pid = now.Parent
		if m := j.byPID[pid]; m != nil {
			return !m.feeds
		}
	}
	return false
}

// standing is what must be the same of a feeder.
type standing struct {
	owner   uint32 // of the folder in /proc: that of root if the process may not be traced by its user
	session uint64 // 0 if not known
	ids     string // user and group IDs
	depth   int    // of its PID namespace
	groups  string // its cgroups; "" if all are roots
}

// standing returns that of a process.
func (s *Source) standing(pid int) (of standing, ok bool) {
	var known bool
	if of.owner, known = s.ownerOf(pid); !known {
		return of, false
	}
	now, ok := StatOf(s.root, pid)
	of.session = now.session
	of.groups = s.groupsOf(pid)
	if ok {
		of.ids, of.depth, ok = s.idsOf(pid)
	}
	return of, ok
}

// mayFeed reports whether a process may feed a job of that standing, and since when it runs. Most are sorted out by the
// first two of up to four small files.
func (s *Source) mayFeed(pid int, of standing) (start uint64, ok bool) {
	if owner, known := s.ownerOf(pid); !known || owner != of.owner {
		return 0, false
	}
	now, ok := StatOf(s.root, pid)
	if !ok || now.Ended || now.terminal && now.session == uint64(pid) {
		return 0, false
	}
	if near := now.session != 0 && now.session == of.session; !near && (of.groups == "" || s.groupsOf(pid) != of.groups) {
		return 0, false
	}
	ids, depth, ok := s.idsOf(pid)
	return now.Start, ok && ids == of.ids && depth == of.depth
}

func (s *Source) ownerOf(pid int) (uid uint32, ok bool) {
	info, err := os.Stat(s.proc + "/" + strconv.Itoa(pid))
	if err != nil {
		return 0, false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return owner.Uid, true
}

// idsOf returns the lines Uid and Gid of /proc/PID/status, each with real, effective, saved and file system IDs, and
// how many PID namespaces the process has a number in.
func (s *Source) idsOf(pid int) (ids string, depth int, ok bool) {
	text, err := readSmall(filepath.Join(s.proc, strconv.Itoa(pid), "status"))
	if err != nil {
		return "", 0, false
	}
	for line := range bytes.Lines(text) {
		switch name, value, _ := bytes.Cut(line, []byte{':'}); string(name) {
		case "Uid", "Gid":
			ids += string(line)
		case "NSpid":
			depth = len(bytes.Fields(value))
		}
	}
	return ids, depth, strings.Count(ids, "\n") == 2
}

// groupsOf returns the cgroups of a process; "" if all of them are roots.
func (s *Source) groupsOf(pid int) string {
	text, err := readSmall(filepath.Join(s.proc, strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(bytes.TrimRight(line, "\n"), []byte(":/")) {
			return string(text)
		}
	}
	return ""
}

package process

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// A span arrives when it has ended. If it is the first one of its process, no one has announced that process, and its
// counters from before are gone. So the processes that work are read before: the candidates.
//
// Once a second all processes are listed, and some of them are looked at: the new and young ones first, the others in
// turn. One that has worked since the last look becomes a candidate, with the counters since that look, or since its
// start: a process starts with all counters at 0. A candidate is a job with fewer readings: its children are those that
// the list shows, few threads are scanned, and no open files. Add makes it a full job, and its counters go on.
//
// A client is a container or a user. One of them may have all places and looks that no other needs.
const (
	maxCandidates       = 16
	maxCandidateMembers = 16 // of one candidate
	maxLooks            = 96 // processes a second, about 5 us each
	maxYoungLooks       = 48 // of them at new and young processes, before others
	clientLooks         = 24 // of the rest at processes of one client, while others wait
	maxKnown            = 16384

	lookInterval = time.Second
	// listedEach is how many processes are listed a second: on a machine with more, the list is read less often. It takes
	// about 0.3 us a process.
	listedEach = 3000
	// young is the age up to which a process is looked at each second.
	young = 30 * time.Second
	// fromStart is the age up to which the counters of a process that becomes a candidate count from its start.
	fromStart = 5 * time.Second

	// settled is how long a candidate keeps its place from one that works more.
	settled = 5 * time.Second
	// learnShare is the share of the newest look in a score, so that it is the mean of about the last ten.
	learnShare = 0.1
)

// What a process has to do a second to become a candidate: the first of these that it reaches counts.
const (
	candidateTicks = 5       // of CPU time: 5 % of a core
	candidateBytes = 1 << 20 // read from storage
	candidateChars = 8 << 20 // returned by read calls
)

// candidates are the processes that a span may name. The zero value has none and looks for none.
type candidates struct {
	wanted bool
	owner  func(pid int) (client string)
	jobs   []*job
	known  map[int]*known
	number map[string]int // of known, by client
	due    time.Duration  // Stamp.Mono of the next list
	listed uint64         // number of lists
}

// known is what the last look at a process has found.
type known struct {
	start uint64
	look
	parent int
	client string
	before look   // a look before it began to work
	listed uint64 // number of the last list with it
	idle   bool   // a kernel thread, this program, or one that cannot be read: never a candidate
	hidden bool   // it cannot be read: another user's
}

// look is what a process had counted at a time.
type look struct {
	at     time.Duration // Stamp.Mono
	counts counts
	own    uint64 // ticks of CPU time, without children
}

// since returns what was done since another look. The CPU time is its own: of its children that have ended, each was
// looked at itself.
func (l *look) since(other *look) counts {
	done := l.counts.minus(other.counts)
	done[cpuTicks] = l.own - min(l.own, other.own)
	return done
}

// WatchCandidates makes the source read processes that a span may name later. It cannot be undone. owner returns whose
// a process is.
func (s *Source) WatchCandidates(owner func(pid int) (client string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.candidates.wanted, s.candidates.owner = true, owner
}

// Candidate is a process that works and is not followed.
type Candidate struct {
	PID   int
	Score float64 // how much it did recently, in multiples of what makes a candidate
}

// Candidates returns the candidates, those that did most first, and how many other processes cannot be read with the
// rights of this one.
func (s *Source) Candidates() (list []Candidate, hidden int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.candidates.jobs {
		list = append(list, Candidate{j.first, j.score})
	}
	slices.SortStableFunc(list, func(a, b Candidate) int { return cmp.Compare(b.Score, a.Score) })
	for _, k := range s.candidates.known {
		if k.hidden {
			hidden++
		}
	}
	return list, hidden
}

// ID returns the name of the job that consists of a process and its children, which is unique while the machine is up.
func ID(pid int, started uint64) string {
	return "process " + strconv.Itoa(pid) + " of " + strconv.FormatUint(started, 10)
}

// PIDOf returns the process of a name by ID; 0 for another name.
func PIDOf(id string) (pid int) {
	var started uint64
	if n, _ := fmt.Sscanf(id, "process %d of %d", &pid, &started); n < 2 {
		return 0
	}
	return pid
}

func (c *candidates) find(id string) *job {
	if i := slices.IndexFunc(c.jobs, func(j *job) bool { return j.id == id }); i >= 0 {
		return c.jobs[i]
	}
	return nil
}

// remove takes a candidate out.
func (c *candidates) remove(id string) {
	c.jobs = slices.DeleteFunc(c.jobs, func(j *job) bool { return j.id == id })
}

// readCandidates reads the candidates, and looks for others when that is due.
func (s *Source) readCandidates(out *sample.Sample, now time.Duration) {
	c := &s.candidates
	if !c.wanted {
		return
	}
	due := now >= c.due
	var ignored sample.Problems // of processes that no client has named
	for _, j := range c.jobs {
		before := j.total
		j.read(s, &ignored)
		if j.total != before {
			j.worked = now
		}
	}
	if due {
		s.scanCandidates(now)
		s.lookAround(now)
	}
	for _, j := range c.jobs {
		out.Candidates = append(out.Candidates, j.sample())
	}
}

// scanCandidates finds the leaders of the candidates that work, and drops those that have ended.
func (s *Source) scanCandidates(now time.Duration) {
	c := &s.candidates
	c.jobs = slices.DeleteFunc(c.jobs, func(j *job) bool {
		if j.alive == 0 {
			s.dismissAll(j)
		}
		return j.alive == 0
	})
	for _, j := range c.jobs {
		seconds := max(1, (now - j.scanned).Seconds())
		j.score += (scoreOf(j.total.minus(j.scored))/seconds - j.score) * learnShare
		j.scored = j.total
		j.scanned = now
		if now-j.worked < lookInterval {
			j.findLeaders(s, now)
		}
	}
}

// scoreOf is how much was done, in multiples of what makes a candidate.
func scoreOf(done counts) float64 {
	return max(float64(done[cpuTicks])/candidateTicks, float64(done[readBytes])/candidateBytes,
		float64(done[readChars])/candidateChars)
}

// lookAround lists all processes, and looks at some of them.
func (s *Source) lookAround(now time.Duration) {
	c := &s.candidates
	list, err := kernfile.Names(s.proc, maxHostProcesses)
	if err != nil {
		c.due = now + lookInterval
		return
	}
	c.due = now + lookInterval*time.Duration(1+len(list)/listedEach)
	c.listed++
	if c.known == nil {
		c.known, c.number = map[int]*known{}, map[string]int{}
	}
	uptime := Uptime(s.root)
	left, first := maxLooks, maxYoungLooks
	waiting := make([]waits, 0, len(list))
	for _, name := range list {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		k := c.known[pid]
		if k != nil {
			k.listed = c.listed
			if k.idle {
				continue
			}
		}
		if first > 0 && (k == nil && c.listed > 1 || k != nil && age(uptime, k.start) < young) {
			left, first = left-1, first-1
			s.lookAt(pid, uptime, now)
			continue
		}
		w := waits{pid: pid}
		if k != nil {
			w.client, w.since = k.client, k.at
		}
		waiting = append(waiting, w)
	}
	for _, pid := range inTurn(waiting, left) {
		s.lookAt(pid, uptime, now)
	}
	for pid, k := range c.known {
		if k.listed != c.listed {
			c.forget(pid)
		}
	}
}

// waits is a process that waits for a look since a time. One that is not known yet has no client.
type waits struct {
	pid    int
	client string
	since  time.Duration // Stamp.Mono
}

// inTurn returns the processes that are looked at: those that wait for longest, but no more of one client than leaves
// others their turn.
func inTurn(waiting []waits, looks int) (pids []int) {
	slices.SortFunc(waiting, func(a, b waits) int {
		return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.pid, b.pid))
	})
	looked := map[string]int{}
	var rest []int
	for _, w := range waiting {
		if len(pids) == looks {
			return pids
		}
		if looked[w.client]++; looked[w.client] > clientLooks {
			rest = append(rest, w.pid)
			continue
		}
		pids = append(pids, w.pid)
	}
	return append(pids, rest[:min(len(rest), looks-len(pids))]...)
}

// remember keeps what a look has found. It reports whether there was room: one client may have half of what others
// leave.
func (c *candidates) remember(pid int, k *known) bool {
	if c.known[pid] == nil {
		n := c.number[k.client]
		if others := len(c.known) - n; 2*(n+1) > maxKnown-others {
			return false
		}
		c.number[k.client]++
	}
	c.known[pid] = k
	return true
}

func (c *candidates) forget(pid int) {
	client := c.known[pid].client
	delete(c.known, pid)
	if c.number[client]--; c.number[client] == 0 {
		delete(c.number, client)
	}
}

// age is how long ago a process started.
func age(uptime, start uint64) time.Duration { return duration(uptime - min(start, uptime)) }

// lookAt reads a process, and makes it a candidate if it has worked since the last look.
func (s *Source) lookAt(pid int, uptime uint64, now time.Duration) {
	c := &s.candidates
	seen, ok := s.readKnown(pid)
	if !ok {
		return
	}
	seen.at, seen.listed = now, c.listed
	last := c.known[pid]
	if last != nil && last.start != seen.start {
		c.forget(pid) // another process has the ID now
		last = nil
	}
	switch {
	case last != nil:
		seen.client = last.client
	case !seen.idle:
		seen.client = c.owner(pid)
	}
	if !c.remember(pid, &seen) || seen.idle {
		return
	}
	s.adopt(pid, seen.parent)
	if c.find(ID(pid, seen.start)) != nil || s.isFollowed(pid, seen.start) {
		return
	}
	start := look{at: now - age(uptime, seen.start) - 2*Tick} // both times are rounded down
	isNew := now-start.at <= fromStart
	if isNew {
		seen.before = start
	}
	if last == nil {
		if !isNew {
			seen.before = seen.look // what it does is known from now on
			return
		}
		last = &known{look: start}
	}
	done := seen.since(&last.look)
	if !isNew {
		seen.before = last.before
		switch {
		case done[cpuTicks] == 0 && done[readBytes] == 0:
			seen.before = seen.look
		case now-seen.before.at > fromStart:
			seen.before = last.look
		}
	}
	score := scoreOf(done) / max(1, (now-last.at).Seconds())
	if score >= 1 && s.makePlace(seen.client, score, now) {
		s.addCandidate(pid, &seen, score, now)
	}
}

// readKnown reads a process once.
func (s *Source) readKnown(pid int) (k known, ok bool) {
	now, ok := StatOf(s.root, pid)
	if !ok || now.Ended {
		return k, false
	}
	k.start, k.parent = now.Start, now.Parent
	if now.Kernel || pid == os.Getpid() {
		k.idle = true
		return k, true
	}
	k.counts, k.own = now.counted(k.counts), now.User+now.System
	b, err := s.bytesOnce(Key{PID: pid})
	if err != nil || b.Err != 0 {
		k.idle, k.hidden = true, errors.Is(b.Err, fs.ErrPermission) // its storage stall would not be known
		return k, true
	}
	k.counts[readBytes], k.counts[readChars], k.counts[writeBytes] = b.Read, b.Chars, b.Write
	return k, true
}

// adopt makes a process a member of the candidates that its parent belongs to.
func (s *Source) adopt(pid, parent int) {
	for _, j := range s.candidates.jobs {
		if m := j.byPID[parent]; m != nil && m.present() && j.byPID[pid] == nil && len(j.members) < maxCandidateMembers {
			j.join(s, pid, nil)
			j.sortMembers()
		}
	}
}

// isFollowed reports whether a process is the first one of a job.
func (s *Source) isFollowed(pid int, start uint64) bool {
	return slices.ContainsFunc(s.jobs, func(j *job) bool {
		m := j.byPID[pid]
		return m != nil && m.start == start && (j.first == pid || j.first == 0)
	})
}

// makePlace reports whether there is room for another candidate of a client. It may remove one: of the client with most
// candidates, if it has more than its share; else one that works less, and does not work at all or is this client's.
func (s *Source) makePlace(client string, score float64, now time.Duration) bool {
	c := &s.candidates
	if len(c.jobs) < maxCandidates {
		return true
	}
	held, most := map[string]int{}, client
	for _, j := range c.jobs {
		if held[j.client]++; held[j.client] > held[most] {
			most = j.client
		}
	}
	tooMany := held[most] > held[client]+1
	var least *job
	for _, j := range c.jobs {
		may := tooMany && j.client == most
		if !tooMany {
			may = (j.client == client || j.score < 1) && j.score < score && now-j.begun >= settled
		}
		if may && (least == nil || j.score < least.score) {
			least = j
		}
	}
	if least == nil {
		return false
	}
	s.dismissAll(least)
	c.remove(least.id)
	return true
}

// addCandidate adds a process whose counters count from before it began to work, and takes its first reading.
func (s *Source) addCandidate(pid int, seen *known, score float64, now time.Duration) {
	root, err := s.admit(pid)
	if err != nil || root.start != seen.start {
		return
	}
	j := newJob(ID(pid, seen.start), pid)
	root.base, root.based, j.client = seen.before.counts, true, seen.client
	j.members, j.byPID[pid] = []*member{root}, root
	j.begun, j.scanned, j.worked, j.added, j.began, j.score = now, now, now, Uptime(s.root), seen.before.at, score
	for child, k := range s.candidates.known {
		if k.parent == pid && child != pid && len(j.members) < maxCandidateMembers {
			j.join(s, child, nil)
		}
	}
	j.sortMembers()
	var ignored sample.Problems
	j.read(s, &ignored)
	j.findLeaders(s, now)
	j.scored = j.total
	s.candidates.jobs = append(s.candidates.jobs, j)
}

package process

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// job is one followed job.
type job struct {
	id       string
	scope    string
	dir      string        // folder of its own cgroup, or ""
	byParent bool          // the kernel does not list children
	first    int           // process of Add; 0 for a cgroup alone
	hidden   bool          // the processes of the cgroup are in another PID namespace
	begun    time.Duration // Stamp.Mono of Add
	added    uint64        // time of Add in ticks since boot; 0 if not known
	began    time.Duration // Stamp.Mono at which the counters were 0, of one that was a candidate; else 0

	leaders    []int         // processes that lead; a list that was returned never changes
	ledAt      time.Duration // Stamp.Mono of the last search for them; 0 before
	judgedAt   time.Duration // Stamp.Mono of the last judgement of members; 0 before
	members    []*member     // by age, parents before children
	byPID      map[int]*member
	readings   uint64
	rare       bool // see Source.Rare
	stirring   stirring
	round      uint64          // of the last reading
	readAt     time.Duration   // Stamp.Mono of that
	scans      int             // number of scans
	scanned    time.Duration   // Stamp.Mono of the last scan
	nextScan   int             // member with which the next scan for children starts
	unfinished bool            // the last scan has left processes out
	excess     int             // processes above the limit at the last scan
	problems   sample.Problems // of the last scan

	ended []sample.Ended // before their parents, the newest ones; immutable

	left  counts // of ended members without an heir
	total counts // never decreases
	alive int
	hasIO bool

	statBase usage // in cpu.stat of its cgroup
	cpu      usage

	mounts  mounts
	feeding feeding

	limits       []sample.Limit // immutable
	limitsAt     time.Duration  // Stamp.Mono of that reading; 0 before
	memory       sample.MemoryLimit
	memoryFolder string        // of its cgroup; "" without a limit
	refaulted    uint64        // of that cgroup at that reading
	memoryAt     time.Duration // Stamp.Mono of that reading; 0 before

	pageCache, pageCacheBase sample.PageCache // at that reading, and at the first one

	client string // that has it followed; of a candidate its container or user

	// Of a candidate.
	worked time.Duration // Stamp.Mono of the last reading with a change
	score  float64       // how much it did recently
	scored counts        // total when score was computed
}

// read updates the counters.
func (j *job) read(s *Source, problems *sample.Problems) {
	j.readings++
	if j.dir != "" {
		if now, err := s.readUsage(j.dir); err == nil {
			fed := j.feedersTime()
			j.cpu.all = max(j.cpu.all, now.all-j.statBase.all+fed.all)
			j.cpu.system = max(j.cpu.system, now.system-j.statBase.system+fed.system)
		} else if !gone(err) {
			problems.Add(fmt.Errorf("the CPU time of job %s cannot be read: %w", j.id, err))
		}
	}
	for _, m := range j.members {
		if m.lost == 0 {
			j.refresh(s, m, problems)
		}
	}
	if slices.ContainsFunc(j.members, func(m *member) bool { return m.lost != 0 }) {
		j.resolve(s)
	}
	j.sum(problems)
}

// readNew reads the members that a scan has added.
func (j *job) readNew(s *Source, problems *sample.Problems) {
	for _, m := range j.members {
		if m.fresh && m.lost == 0 {
			j.refresh(s, m, problems)
		}
	}
	j.sum(problems)
}

// refresh reads one member.
func (j *job) refresh(s *Source, m *member, problems *sample.Problems) {
	if m.round != s.round {
		s.readStats([]*proc{m.proc})
		s.refresh(m.proc)
	}
	exists, err := m.take()
	if err != nil {
		problems.Add(err)
	}
	j.note(m, s)
	switch {
	case !exists:
		m.lost = j.readings
	case m.fresh:
		m.fresh = false
		if !m.based && (m.start < j.added || j.readings == 1 || m.joined) {
			m.base = m.now
			m.unbased = !m.hasIO
		}
	}
}

// maxEnded is how many ends of processes a job remembers.
const maxEnded = 16

// note remembers that a process has ended, or is stopped, if the one that began it lives. Of one that had ended before
// the job was followed, it is known only if the kernel still says how.
func (j *job) note(m *member, s *Source) {
	ends := m.gone || m.ended || m.exit == stopped
	if m.noted == ends { // of almost all at each reading
		return
	}
	if parent := j.byPID[m.parent]; parent == nil || !parent.present() {
		return
	}
	m.noted = ends
	j.ended = slices.DeleteFunc(slices.Clone(j.ended), func(e sample.Ended) bool { return e.PID == m.pid })
	if !ends || m.fresh && m.exit == 0 {
		return
	}
	end := sample.Ended{PID: m.pid, Status: m.exit}
	if !m.fresh || j.readings > 1 {
		end.At, end.Lived = s.now, max(0, duration(Uptime(s.root))-duration(m.start))
	}
	j.ended = append(j.ended[max(0, len(j.ended)+1-maxEnded):], end)
}

// sum adds the counters of all members since the job was added.
func (j *job) sum(problems *sample.Problems) {
	sum, alive, own, unreadable := j.left, 0, 0, false
	for _, m := range j.members {
		sum = sum.plus(m.counted())
		if !m.present() {
			continue
		}
		alive++
		if !m.feeds {
			own++
		}
		if !m.hasIO {
			unreadable = true
		}
		if m.ioError != nil && !m.ioReported { // once per process: another user may have thousands
			m.ioReported = true
			problems.Add(m.ioError)
		}
	}
	if own == 0 { // a job ends without its feeders
		alive = 0
	}
	j.total = j.total.highest(sum)
	j.alive = alive
	if alive > 0 {
		j.hasIO = !unreadable
	}
	if j.dir == "" {
		j.cpu = usage{duration(j.total[cpuTicks]), duration(j.total[sysTicks])}
	}
}

// emit appends the job and its processes.
func (j *job) emit(out *sample.Sample) {
	out.Jobs = append(out.Jobs, j.sample())
	for _, m := range j.members {
		if m.present() {
			out.Processes = append(out.Processes, m.sample(j.id))
		}
	}
}

func (j *job) sample() sample.Job {
	return sample.Job{
		ID: j.id, Scope: j.scope, OwnScope: j.dir != "", CPUTime: j.cpu.all, SystemTime: j.cpu.system,
		ReadBytes: j.total[readBytes], ReadChars: j.total[readChars], WriteBytes: j.total[writeBytes],
		Faults: j.total[faults], Memory: j.memory, PageCache: j.pageCache, HasIO: j.hasIO, Processes: j.alive,
		Mounts: j.mounts.seen, Limits: j.limits, Ended: j.ended, Began: j.began, LeaderPIDs: j.leaderPIDs(),
	}
}

// leaderPIDs returns the processes that lead and live; without one, the oldest process.
func (j *job) leaderPIDs() []int {
	alive := func(pid int) bool { m := j.byPID[pid]; return m != nil && m.present() }
	if !slices.ContainsFunc(j.leaders, alive) {
		m := j.oldest()
		if m == nil {
			return j.leaders
		}
		if !slices.Equal(j.leaders, []int{m.pid}) {
			j.leaders = []int{m.pid}
		}
		return j.leaders
	}
	if gone := func(pid int) bool { return !alive(pid) }; slices.ContainsFunc(j.leaders, gone) {
		j.leaders = slices.DeleteFunc(slices.Clone(j.leaders), gone)
	}
	return j.leaders
}

// readUsage reads cpu.stat of a cgroup by its folder.
func (s *Source) readUsage(dir string) (usage, error) {
	path := filepath.Join(dir, "cpu.stat")
	text, err := kernfile.ReadPiece(path, s.buf[:])
	if err != nil {
		return usage{}, err
	}
	now, ok := parseUsage(text)
	if !ok {
		return usage{}, fmt.Errorf("%s has no line usage_usec, use Linux 4.15 or later", path)
	}
	return now, nil
}

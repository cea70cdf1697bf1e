package process

import (
	"fmt"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// job is what Add registers.
type job struct {
	id       string
	scope    string
	dir      string        // its own cgroup's folder, "" when it has none
	byParent bool          // no list of children in this kernel
	first    int           // the process that Add was given; 0 when it was given a cgroup alone
	hidden   bool          // the cgroup's processes have no numbers in our pid namespace
	begun    time.Duration // sample.Stamp.Mono of Add
	added    uint64        // when, in ticks since boot; 0 when that is not known

	members    []*member // from the oldest to the youngest, so parents before their children
	byPID      map[int]*member
	readings   uint64
	looks      int             // for members and files
	looked     time.Duration   // sample.Stamp.Mono of the last look for members
	lookedLast time.Duration   // and of the one before
	beyond     int             // how many that look had to leave out
	trouble    sample.Problems // of that look

	left  counts // of members that are gone and that nobody has inherited from
	total counts // only ever grows
	alive int
	hasIO bool

	stat     file // cpu.stat of its own cgroup
	statBase usage
	cpu      usage

	mounts  mounts
	threads threads
}

// A process that has done nothing for quietFor, and sleeps, has its bytes read each seldom only. Its CPU time is read at
// every tick, and whatever moves there ends the quiet.
const (
	quietFor = time.Second
	seldom   = 450 * time.Millisecond
	restsFor = 5 // of so many looks at a quiet process, one is taken
)

// read refreshes the counters. all asks for the bytes of quiet members, too.
func (j *job) read(s *Source, problems *sample.Problems, all bool, now time.Duration) {
	j.readings++
	if j.dir != "" {
		if now, err := s.readUsage(j); err == nil {
			j.cpu.all = max(j.cpu.all, now.all-j.statBase.all)
			j.cpu.system = max(j.cpu.system, now.system-j.statBase.system)
		} else if !gone(err) {
			problems.Add(fmt.Errorf("the CPU time of job %s is not read: %w", j.id, err))
		}
	}
	for _, m := range j.members {
		if m.lost == 0 {
			j.refresh(s, m, problems, all, now)
		}
	}
	if slices.ContainsFunc(j.members, func(m *member) bool { return m.lost != 0 }) {
		j.settle(s)
	}
	j.sum(problems)
}

// welcome reads the members that a look has found.
func (j *job) welcome(s *Source, problems *sample.Problems, now time.Duration) {
	for _, m := range j.members {
		if m.fresh && m.lost == 0 {
			j.refresh(s, m, problems, true, now)
		}
	}
	j.sum(problems)
}

// refresh reads one member.
func (j *job) refresh(s *Source, m *member, problems *sample.Problems, all bool, now time.Duration) {
	before := m.now
	there, err := s.refresh(m, all || now-m.moved < quietFor || now-m.bytesAt >= seldom, now)
	if err != nil {
		problems.Add(err)
	}
	switch {
	case !there:
		m.lost = j.readings
	case m.fresh:
		m.fresh = false
		if m.start < j.added || j.readings == 1 {
			m.base = m.now
		}
	}
	if m.now != before {
		m.moved = now
	}
}

// sum adds up what the members have done since the job was added.
func (j *job) sum(problems *sample.Problems) {
	sum, alive, blind := j.left, 0, false
	for _, m := range j.members {
		sum = sum.plus(m.counted())
		if !m.present() {
			continue
		}
		alive++
		if !m.hasIO {
			blind = true
		}
		if m.ioError != nil && !m.ioTold { // once of each process: there may be thousands of another user
			m.ioTold = true
			problems.Add(m.ioError)
		}
	}
	j.total = j.total.highest(sum)
	j.alive = alive
	if alive > 0 {
		j.hasIO = !blind
	}
	if j.dir == "" {
		j.cpu = usage{duration(j.total[cpuTicks]), duration(j.total[sysTicks])}
	}
}

// emit appends the job and its processes.
func (j *job) emit(out *sample.Sample) {
	out.Jobs = append(out.Jobs, sample.Job{
		ID: j.id, Scope: j.scope, OwnScope: j.dir != "", CPUTime: j.cpu.all, SystemTime: j.cpu.system,
		ReadBytes: j.total[readBytes], ReadChars: j.total[readChars], WriteBytes: j.total[writeBytes],
		HasIO: j.hasIO, Processes: j.alive, Mounts: j.mounts.seen,
		Leaders: j.threads.led, LeaderTime: j.threads.leading, LeaderReady: j.threads.leaderReady, ReaderTime: j.threads.reading, ReaderWork: j.threads.working, InReads: j.threads.inReads,
	})
	for _, m := range j.members {
		if m.present() {
			out.Processes = append(out.Processes, m.sample(j.id))
		}
	}
}

func (s *Source) readUsage(j *job) (usage, error) {
	text, err := s.read(&j.stat)
	if err != nil {
		return usage{}, err
	}
	now, ok := parseUsage(text)
	if !ok {
		return usage{}, fmt.Errorf("%s has no line usage_usec, use Linux 4.15 or later", j.stat.path)
	}
	return now, nil
}

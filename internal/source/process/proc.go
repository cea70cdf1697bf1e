package process

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/stallspan/stallspan/internal/source/kernfile"
	"github.com/stallspan/stallspan/internal/source/procfile"
)

// proc is a process that jobs follow. It is read once in a round for all of them.
type proc struct {
	pid   int
	start uint64
	dir   string // /proc/PID
	users int    // members of jobs
	read  statRead

	round    uint64 // of the last reading
	wanted   bool   // in the round that begins
	gone     bool
	traced   bool   // the scheduler reports when it runs
	ran      bool   // since its last reading, if traced
	left     uint64 // number of the last round that left it out, because it did not run
	forkedAt uint64 // and of the last one since which it began other processes
	failed   error  // of the last reading

	parent  int
	ended   bool   // a zombie, with readable counters
	exit    int    // status as of wait(2), of one that ended or is stopped; 0 if unknown
	own     uint64 // CPU ticks of its own threads
	counts  counts // own and inherited
	reaped  counts // inherited part of counts: exact for CPU time and faults, all bytes
	hasIO   bool
	ioError error // why the bytes cannot be read

	answer   Bytes  // of the reader, ahead of the reading that uses it
	answered uint64 // the round that may use it; 0 for none
}

// ErrOtherUser and the other errors of processes name no process: new ones would come with each that starts.
var ErrOtherUser = errors.New("the bytes that some processes read are not known, as they are another user's or " +
	"protect themselves (setuid, prctl): run as root, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH")

// cause returns what happened, without the file.
func cause(err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return path.Err
	}
	return err
}

// admit returns a new member for a process, and reads its identity.
func (s *Source) admit(pid int) (*member, error) {
	if p := s.procs[pid]; p != nil && !p.gone && s.same(p) {
		p.users++
		return &member{proc: p, fresh: true}, nil
	}
	p := &proc{pid: pid, dir: filepath.Join(s.proc, strconv.Itoa(pid)), users: 1}
	s.readStats([]*proc{p})
	if p.read.err != nil {
		return nil, p.read.err
	}
	if !p.read.ok {
		return nil, fmt.Errorf("%s does not have the format of Linux, check what is mounted there", p.dir+"/stat")
	}
	p.start = p.read.Start
	s.procs[pid] = p
	return &member{proc: p, fresh: true}, nil
}

// dismiss ends what admit began.
func (s *Source) dismiss(m *member) {
	p := m.proc
	s.orphan(m)
	if p.users--; p.users > 0 {
		p.traced = false // perhaps it was this job whose threads are followed
		return
	}
	if s.procs[p.pid] == p {
		delete(s.procs, p.pid)
	}
}

// same reports whether the process ID still belongs to p. Then earlier reads by that ID are of p.
func (s *Source) same(p *proc) bool {
	s.readStats([]*proc{p})
	return p.read.err == nil && p.read.ok && p.read.Start == p.start
}

// statRead is a reading of the stat of a process.
type statRead struct {
	Stat
	ok  bool // it has the format
	err error
}

// statsAtOnce is how many processes are read ahead. If one of them turns out to have inherited, the others are read
// again.
const statsAtOnce = 16

// readStats reads the stats of processes, without waiting for one of them.
func (s *Source) readStats(list []*proc) {
	s.reading = append(s.reading[:0], list...)
	s.reading = slices.DeleteFunc(s.reading, func(p *proc) bool { return p.gone })
	s.statReads = slices.Grow(s.statReads[:0], len(s.reading))[:len(s.reading)]
	s.stats.Each(s.reading, s.statReads)
	for i, p := range s.reading {
		p.read = s.statReads[i]
	}
	clear(s.reading)
}

// readStat reads a stat on any goroutine.
func readStat(p *proc, buf []byte) (r statRead) {
	text, err := kernfile.ReadPiece(p.dir+"/stat", buf)
	if err != nil {
		return statRead{err: err}
	}
	r.Stat, r.ok = ParseStat(text)
	return r
}

// want has the processes of a job read in the round that begins.
func (s *Source) want(j *job) {
	for _, m := range j.members {
		if m.lost == 0 && !m.wanted {
			m.wanted = true
			s.wanted = append(s.wanted, m.proc)
		}
	}
}

// readWanted reads the wanted processes once, parents before children, whatever jobs they are in: see inherit.go.
func (s *Source) readWanted() {
	byAge := func(a, b *proc) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.pid, b.pid)) }
	if !slices.IsSortedFunc(s.wanted, byAge) {
		slices.SortFunc(s.wanted, byAge)
	}
	s.ask(s.wanted)
	for left := s.wanted; len(left) > 0; {
		ahead := left[:min(len(left), statsAtOnce)]
		s.readStats(slices.DeleteFunc(append(s.due[:0], ahead...), s.isIdle))
		for again := false; len(ahead) > 0 && !again; ahead, left = ahead[1:], left[1:] {
			ahead[0].wanted = false
			again = s.refresh(ahead[0])
		}
	}
	clear(s.wanted)
	s.wanted = s.wanted[:0]
}

// refresh takes over the counters that were read. It reports whether the process has inherited.
func (s *Source) refresh(p *proc) (inherited bool) {
	p.round, p.failed = s.round, nil
	if p.gone {
		return false
	}
	if s.isIdle(p) {
		p.left = s.round
		return false
	}
	p.ran = false
	now, err := &p.read, p.read.err
	switch {
	case errors.Is(err, syscall.ETIMEDOUT):
		p.failed = err
		return false
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		p.failed = fmt.Errorf("processes cannot be read: %w", cause(err))
		return false
	case err != nil || !now.ok || now.Start != p.start: // another process has its ID
		p.gone = true
		return false
	}
	counted := now.counted(p.counts)
	reaped := counts{cpuTicks: now.cuser + now.csystem, sysTicks: now.csystem, faults: now.cfaults}
	if reaped[cpuTicks] != p.reaped[cpuTicks] || reaped[faults] != p.reaped[faults] {
		p.answered, inherited = 0, true // the answer may be from before that
	}
	p.readIO(s, &counted)
	reaped.takeBytes(counted)
	p.parent, p.ended, p.exit, p.own = now.Parent, now.Ended, now.exit, now.User+now.System
	p.reaped, p.counts = reaped, counted
	return inherited
}

// ask asks the reader for the bytes of processes that will be read in this round: one question for all costs less than
// one for each. It asks whichever process has each number: that it is the one that is followed shows in its stat, which
// is read next. What a child leaves to its parent never counts twice (inherit.go): if the stat that is read next shows
// that a parent has inherited, it is asked for again. If not, the parent shows neither bytes nor times of the child.
func (s *Source) ask(list []*proc) {
	s.asking, s.keys = s.asking[:0], s.keys[:0]
	for _, p := range list {
		if !p.gone && p.ioError == nil && !s.isIdle(p) {
			s.asking, s.keys = append(s.asking, p), append(s.keys, Key{PID: p.pid})
		}
	}
	if len(s.keys) < 2 {
		return
	}
	s.answers = slices.Grow(s.answers[:0], len(s.keys))[:len(s.keys)]
	clear(s.answers)
	if s.reader.Bytes(s.keys, s.answers) != nil {
		return // the first question of refresh reports it
	}
	for i, p := range s.asking {
		p.answer, p.answered = s.answers[i], s.round
	}
	clear(s.asking)
}

func (p *proc) key() Key { return Key{p.pid, p.start} }

// bytesOf returns the bytes of a process. An answer is used once.
func (s *Source) bytesOf(p *proc) (Bytes, error) {
	answer := p.answer
	if p.answered != s.round {
		var err error
		if answer, err = s.bytesOnce(p.key()); err != nil {
			return Bytes{}, err
		}
	}
	p.answered = 0
	if answer.Err != 0 {
		return Bytes{}, answer.Err
	}
	return answer, nil
}

// bytesOnce asks for the bytes of one process.
func (s *Source) bytesOnce(key Key) (Bytes, error) {
	s.keys, s.answers = append(s.keys[:0], key), append(s.answers[:0], Bytes{})
	err := s.reader.Bytes(s.keys, s.answers)
	return s.answers[0], err
}

// readIO reads the bytes. After an error it tries again after the next scan.
func (p *proc) readIO(s *Source, into *counts) {
	if p.ioError != nil {
		return
	}
	b, err := s.bytesOf(p)
	switch {
	case err == nil:
		into[readBytes], into[readChars], into[writeBytes] = b.Read, b.Chars, b.Write
		p.hasIO = true
		return
	case errors.Is(err, errFormat):
		p.ioError = fmt.Errorf("%s does not have the format of Linux, check what is mounted there", p.dir+"/io")
	case errors.Is(err, fs.ErrPermission):
		p.ioError = ErrOtherUser
	case errors.Is(err, fs.ErrNotExist) && s.same(p):
		p.ioError = errors.New("the bytes that processes read are not known: the kernel needs CONFIG_TASK_IO_ACCOUNTING")
	case gone(err):
		return // it ended after its stat was read: keep the last bytes
	case errors.Is(err, syscall.ETIMEDOUT):
		p.ioError = procfile.LateError{PID: p.pid}
	default:
		p.ioError = fmt.Errorf("the bytes that processes read are not known: %w", cause(err))
	}
	p.hasIO = false
}

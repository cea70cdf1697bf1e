package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// member is one process of a job.
type member struct {
	pid   int
	start uint64
	dir   string // its folder in /proc
	stat  file
	io    file

	parent int
	ended  bool   // a zombie: its counters can still be read
	many   bool   // it has more than one thread
	own    uint64 // ticks of its own threads
	now    counts // its own and what it has inherited from children
	base   counts // what of now does not count, because it was before the job was added

	reaped  counts // how much of now can be inherited: CPU and faults exactly, bytes all
	gain    counts // how much reaped has grown since the reading before, or the one before that if it expects
	expects bool   // to inherit from a member that was found gone at the last reading
	adopted counts // how much of now was seen in a member before: it is in that one's readings already

	fresh   bool // not read yet
	hasIO   bool
	ioError error // why there are no bytes
	ioTold  bool  // that has been told

	moved   time.Duration // the reading at which anything had moved last (sample.Stamp.Mono)
	bytesAt time.Duration // the reading at which its bytes were read last
	lost    uint64        // the reading at which it was found gone, 0 while it is there
	settled bool          // after that: what it did is counted elsewhere, and it can be dropped
	nextFD  int           // where the next look at its open files begins

	fetched fetched         // at the last look at threads
	threads map[int]fetched // by thread, likewise
	worked  uint64          // own, likewise

	launcher bool // its only child works, and it does not
}

// admit opens the process and takes its identity, but no counters yet.
func (s *Source) admit(pid int) (*member, error) {
	dir := filepath.Join(s.proc, strconv.Itoa(pid))
	m := &member{
		pid: pid, dir: dir, fresh: true, moved: sample.Now().Mono,
		stat: file{path: filepath.Join(dir, "stat")},
		io:   file{path: filepath.Join(dir, "io")},
	}
	text, err := s.read(&m.stat)
	if err != nil {
		return nil, err
	}
	now, ok := parseStat(text)
	if !ok {
		s.close(&m.stat)
		return nil, fmt.Errorf("%s does not have the format of Linux, check what is mounted there", m.stat.path)
	}
	m.start = now.start
	return m, nil
}

// same tells whether m's process ID is still m's. What was read by that ID before belongs to m then.
func (s *Source) same(m *member) bool {
	text, err := s.read(&m.stat)
	if err != nil {
		return false
	}
	now, ok := parseStat(text)
	return ok && now.start == m.start
}

// refresh takes the counters; the bytes only where they are asked for, or where the process is not asleep or has moved
// otherwise. It answers false when the process is gone; an error means that it may still be there and keeps its last
// counters.
func (s *Source) refresh(m *member, bytes bool, at time.Duration) (bool, error) {
	text, err := s.read(&m.stat)
	if err != nil {
		if outOfFiles(err) {
			return true, fmt.Errorf("cannot read process %d: %w", m.pid, err)
		}
		return false, nil
	}
	now, ok := parseStat(text)
	if !ok || now.start != m.start {
		return false, nil // another process has its ID now
	}
	counted := m.now
	counted[cpuTicks] = now.user + now.system + now.cuser + now.csystem
	counted[sysTicks] = now.system + now.csystem
	counted[faults] = now.faults + now.cfaults
	reaped := counts{cpuTicks: now.cuser + now.csystem, sysTicks: now.csystem, faults: now.cfaults}

	if bytes || counted != m.now || now.state != 'S' {
		m.readIO(s, &counted)
		m.bytesAt = at
	}
	reaped.takeBytes(counted)

	m.parent, m.ended, m.own, m.many = int(now.parent), now.ended(), now.user+now.system, now.threads > 1
	if !m.expects {
		m.gain = counts{}
	}
	m.gain = m.gain.plus(reaped.minus(m.reaped))
	m.reaped, m.now = reaped, counted
	return true, nil
}

// readIO takes the bytes. What was forbidden once is tried again only after the next look for members.
func (m *member) readIO(s *Source, into *counts) {
	if m.ioError != nil {
		return
	}
	text, err := s.read(&m.io)
	switch {
	case err == nil:
		read, chars, write, ok := parseIO(text)
		if !ok {
			m.ioError = fmt.Errorf("%s does not have the format of Linux, check what is mounted there", m.io.path)
			break
		}
		into[readBytes], into[readChars], into[writeBytes] = read, chars, write
		m.hasIO = true
		return
	case errors.Is(err, fs.ErrPermission):
		m.ioError = fmt.Errorf("the bytes that process %d reads cannot be told, it belongs to another user: run as that user, as root, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH", m.pid)
	case errors.Is(err, fs.ErrNotExist) && exists(m.dir):
		m.ioError = errors.New("the bytes that processes read cannot be told: the kernel needs CONFIG_TASK_IO_ACCOUNTING")
	case gone(err):
		return // it ended since its stat was read: the last bytes stay
	default:
		m.ioError = fmt.Errorf("the bytes that process %d reads cannot be told: %w", m.pid, err)
	}
	m.hasIO = false
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// present says that it was alive when it was read last.
func (m *member) present() bool { return m.lost == 0 && !m.ended && !m.fresh }

// counted is what the member adds to its job.
func (m *member) counted() counts { return m.now.minus(m.base) }

// sample is the member's own reading, without what it has inherited from other members.
func (m *member) sample(job string) sample.Process {
	mine := m.now.minus(m.adopted)
	return sample.Process{
		PID: m.pid, Job: job, CPUTime: duration(m.own),
		ReadBytes: mine[readBytes], WriteBytes: mine[writeBytes], HasIO: m.hasIO,
		Started: duration(m.start),
	}
}

func (s *Source) dismiss(m *member) {
	s.close(&m.stat)
	s.close(&m.io)
}

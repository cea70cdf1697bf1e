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
	dir   string // /proc/PID
	stat  file
	io    file

	parent int
	ended  bool   // a zombie, with readable counters
	many   bool   // more than one thread
	own    uint64 // CPU ticks of its own threads
	now    counts // own and inherited
	base   counts // part of now from before the job was added
	based  bool   // base was set before the first reading

	reaped  counts // inherited part of now: exact for CPU time and faults, all bytes
	gain    counts // growth of reaped since the last reading, or since the one before if expects
	expects bool   // may inherit from a member that the last reading found gone
	adopted counts // part of now that was read in a member before

	fresh      bool // not read yet
	hasIO      bool
	ioError    error // why the bytes cannot be read
	ioReported bool  // ioError was reported

	moved    time.Duration // Stamp.Mono of the last change
	bytesAt  time.Duration // Stamp.Mono of the last reading of the bytes
	lost     uint64        // number of the reading that found it gone; 0 before
	resolved bool          // its counters moved elsewhere, and it can be dropped
	nextFD   int           // start of the next scan of its open files

	fetched fetched         // at the last scan of threads
	threads map[int]fetched // by thread, at the last scan
	worked  uint64          // own at the last scan

	launcher bool // its only child works instead of it
}

// admit opens a process and reads its identity.
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

// same reports whether the process ID still belongs to m. Then earlier reads by that ID are of m.
func (s *Source) same(m *member) bool {
	text, err := s.read(&m.stat)
	if err != nil {
		return false
	}
	now, ok := parseStat(text)
	return ok && now.start == m.start
}

// refresh reads the counters, and the bytes if requested or if the process is active. It reports false if the process
// is gone. After an error the process may exist and keeps its counters.
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
		return false, nil // another process has its ID
	}
	counted := now.counted(m.now)
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

// readIO reads the bytes. After an error it tries again after the next scan.
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
		m.ioError = fmt.Errorf(
			"the bytes that process %d reads are not known, it belongs to another user: run as that user, "+
				"as root, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
			m.pid,
		)
	case errors.Is(err, fs.ErrNotExist) && exists(m.dir):
		m.ioError = errors.New("the bytes that processes read are not known: the kernel needs CONFIG_TASK_IO_ACCOUNTING")
	case gone(err):
		return // it ended after its stat was read: keep the last bytes
	default:
		m.ioError = fmt.Errorf("the bytes that process %d reads are not known: %w", m.pid, err)
	}
	m.hasIO = false
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// present reports whether it was alive at the last reading.
func (m *member) present() bool { return m.lost == 0 && !m.ended && !m.fresh }

// counted returns what the member adds to its job.
func (m *member) counted() counts { return m.now.minus(m.base) }

// sample returns the member's own counters, without those inherited from other members.
func (m *member) sample(job string) sample.Process {
	own := m.now.minus(m.adopted)
	return sample.Process{
		PID: m.pid, Job: job, CPUTime: duration(m.own),
		ReadBytes: own[readBytes], WriteBytes: own[writeBytes], HasIO: m.hasIO,
		Started: duration(m.start),
	}
}

func (s *Source) dismiss(m *member) {
	s.close(&m.stat)
	s.close(&m.io)
}

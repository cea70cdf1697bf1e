package switches

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
)

// proc reads files of threads.
type proc struct {
	buffer [1024]byte
	path   []byte
	peers  peers
}

// read returns a file of a thread. It is valid until the next call.
func (p *proc) read(th *thread, name string) ([]byte, error) {
	p.path = append(p.path[:0], "/proc/"...)
	p.path = strconv.AppendInt(p.path, int64(th.pid), 10)
	p.path = append(p.path, "/task/"...)
	p.path = strconv.AppendInt(p.path, int64(th.tid), 10)
	p.path = append(append(p.path, '/'), name...)
	fd, err := unix.Open(string(p.path), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	n, err := unix.Read(fd, p.buffer[:])
	_ = unix.Close(fd)
	if err != nil {
		return nil, err
	}
	return p.buffer[:n], nil
}

// name returns the name of a thread; "" if it has ended.
func (p *proc) name(pid, tid int) string {
	text, err := p.read(&thread{tid: tid, pid: pid}, "comm")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSuffix(text, []byte{'\n'}))
}

var errRunning = errors.New("the thread is running")

// cause returns what a thread pauses for.
func (p *proc) cause(th *thread) (c cause, err error) {
	text, err := p.read(th, "syscall")
	if err != nil {
		return c, err
	}
	number, rest, _ := bytes.Cut(text, []byte{' '})
	if c.syscall, err = strconv.Atoi(string(bytes.TrimSpace(number))); err != nil {
		return c, errRunning
	}
	argument, _, _ := bytes.Cut(rest, []byte{' '})
	first, err := strconv.ParseUint(strings.TrimPrefix(string(argument), "0x"), 16, 64)
	if err != nil {
		return c, err
	}
	if text, err = p.read(th, "stat"); err != nil {
		return c, err
	}
	switch stateOf(text) {
	case 'D':
		c.state = sample.StateBlocked
	case 'S':
		c.state = sample.StateAsleep
	case 'T', 't':
		c.state = sample.StateStopped
	default:
		return c, errRunning
	}
	switch kind := calls[c.syscall]; {
	case c.syscall < 0:
		c.syscall = sample.NoSyscall
	case kind == onFutex:
		c.detail = first
	case kind == onFile && first < maxDescriptor:
		c.file, c.detail, c.peer = p.file(th, first)
	}
	return c, nil
}

// maxDescriptor is the largest number of a file (fs.nr_open).
const maxDescriptor = 1 << 20

// nvidia is the device number of an NVIDIA GPU's file (Documentation/admin-guide/devices.txt).
const nvidia = 195 << 8

// file returns the kind of a descriptor by its name: asking the file itself could hang, on a network file system. Of a
// socket it returns the other end, too.
func (p *proc) file(th *thread, fd uint64) (kind sample.FileKind, detail uint64, peer string) {
	name, err := os.Readlink("/proc/" + strconv.Itoa(th.pid) + "/fd/" + strconv.FormatUint(fd, 10))
	switch {
	case err != nil:
		return sample.NoFile, 0, ""
	case strings.HasPrefix(name, "pipe:"):
		return sample.Pipe, 0, ""
	case strings.HasPrefix(name, "socket:["):
		inode, err := strconv.ParseUint(strings.TrimSuffix(name[len("socket:["):], "]"), 10, 64)
		if err != nil {
			return sample.Socket, 0, ""
		}
		return sample.Socket, 0, p.peers.of(th.pid, inode)
	case strings.HasPrefix(name, "/dev/nvidia"):
		return sample.CharDevice, nvidia, ""
	case strings.HasPrefix(name, "/dev/shm/"), strings.HasPrefix(name, "/dev/hugepages/"):
		return sample.RegularFile, 0, ""
	case strings.HasPrefix(name, "/dev/"):
		return sample.CharDevice, 0, ""
	case strings.HasPrefix(name, "/"):
		return sample.RegularFile, 0, ""
	}
	return sample.OtherFile, 0, ""
}

// stateOf returns the third field of stat. The second one is a name in parentheses, which may have any character.
func stateOf(stat []byte) byte {
	if i := bytes.LastIndexByte(stat, ')'); i >= 0 && i+2 < len(stat) {
		return stat[i+2]
	}
	return 0
}

// tick is the unit of CPU times in stat (USER_HZ).
const tick = 10 * time.Millisecond

// counters are the sums of a thread.
type counters struct {
	user, system   time.Duration
	fetched, chars uint64
}

// counters reads the sums of a thread.
func (p *proc) counters(th *thread) (c counters, err error) {
	text, err := p.read(th, "stat")
	if err != nil {
		return c, err
	}
	const user, system = 11, 12 // fields after the name
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) <= system {
		return c, errors.New("stat is not understood")
	}
	c.user, c.system = tick*time.Duration(unsigned(fields[user])), tick*time.Duration(unsigned(fields[system]))
	if text, err = p.read(th, "io"); err != nil {
		return c, err
	}
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(line, []byte{':'})
		switch string(name) {
		case "rchar":
			c.chars = unsigned(bytes.TrimSpace(value))
		case "read_bytes":
			c.fetched = unsigned(bytes.TrimSpace(value))
		}
	}
	return c, nil
}

func unsigned(text []byte) uint64 {
	n, err := strconv.ParseUint(string(text), 10, 63)
	if err != nil {
		return 0
	}
	return n
}

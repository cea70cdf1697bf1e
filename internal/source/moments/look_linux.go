package moments

import (
	"bytes"
	"errors"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/source/procfile"
)

// looker reads what threads are in.
type looker struct {
	buffer [1024]byte
	open   map[fileOf]opened
	peers  peers
	stat   process.Stat // of the thread that was looked at last
}

// errGone is the error of a thread that has ended.
var errGone = errors.New("the thread has ended")

// opened is a file of a thread that is read again and again.
type opened struct {
	*kernfile.File
	used time.Duration // Stamp.Mono
}

// fileOf is a file of a thread in /proc.
type fileOf struct {
	tid  int
	name string
}

// read returns a file of a thread, or its beginning. It is valid until the next call.
func (l *looker) read(tid int, name string) ([]byte, error) { return l.readAt(tid, name, 0) }

// readAt is read from an offset on.
func (l *looker) readAt(tid int, name string, at int64) ([]byte, error) {
	f := fileOf{tid, name}
	of, kept := l.open[f]
	if !kept {
		thread := strconv.Itoa(tid)
		file, err := kernfile.Open("/proc/" + thread + "/task/" + thread + "/" + name)
		if err != nil {
			return nil, err
		}
		of.File = file
	}
	n, err := of.ReadAt(l.buffer[:], at)
	if err != nil || len(l.open) >= maxOpen && !kept {
		_ = of.Close()
		delete(l.open, f)
		return l.buffer[:n], err
	}
	if l.open == nil {
		l.open = map[fileOf]opened{}
	}
	of.used = sample.Now().Mono
	l.open[f] = of
	return l.buffer[:n], nil
}

// sweep closes the files that were not used since a moment.
func (l *looker) sweep(since time.Duration) {
	for f, of := range l.open {
		if of.used < since {
			_ = of.Close()
			delete(l.open, f)
		}
	}
}

// close closes all files.
func (l *looker) close() { l.sweep(math.MaxInt64) }

// readBytes returns how many bytes a thread has read, by calls or from storage; false if that is not permitted.
func (l *looker) readBytes(tid int) (bytes uint64, known bool) {
	text, err := l.read(tid, "io")
	if err != nil {
		return 0, false
	}
	fetched, chars, _, known := process.ParseIO(text)
	return max(fetched, chars), known
}

// children adds the processes that a thread has begun to a list, if they are not in it.
func (l *looker) children(pids []int, tid int) []int {
	for at := int64(0); ; {
		text, err := l.readAt(tid, "children", at)
		whole := bytes.LastIndexByte(text, ' ') + 1 // a space follows each number
		if err != nil || whole == 0 {
			return pids
		}
		for field := range bytes.FieldsSeq(text[:whole]) {
			pid, ok := kernfile.ParseUint(field)
			if ok && len(pids) < maxThreads && !slices.Contains(pids, int(pid)) {
				pids = append(pids[:len(pids):len(pids)], int(pid))
			}
		}
		if len(text) < len(l.buffer) {
			return pids
		}
		at += int64(whole)
	}
}

// look returns what a thread is in. Its system call is known of threads that this process may trace. Of one that does
// not lead it is not needed if the thread is blocked.
func (l *looker) look(tid int, leads bool) (in sample.In, err error) {
	text, err := l.read(tid, "stat")
	if err != nil {
		return in, errGone
	}
	stat, ok := process.ParseStat(text)
	if !ok {
		return in, errGone
	}
	l.stat = stat
	if in.State, err = stateOf(stat.State); err != nil || in.State == sample.StateReady {
		return in, err
	}
	in.Syscall = sample.UnknownSyscall
	if leads || in.State == sample.StateBlocked {
		l.channel(tid, &in)
	}
	if in.State == sample.StateStopped || in.State == sample.StateBlocked && !leads {
		return in, nil
	}
	text, err = l.read(tid, "syscall")
	if err != nil {
		return in, nil // not permitted, or it has just ended
	}
	number, arguments, ok := parseCall(text)
	if !ok { // it runs again: it slept when it was looked at
		return in, nil
	}
	in.Syscall = number
	switch call := sample.CallOf(runtime.GOARCH, number); {
	case number < 0:
		in.Syscall = sample.NoSyscall
	case call == sample.PollCall:
		l.polls(tid, &in, arguments)
	case call.OnDescriptor() && arguments[0] < maxDescriptor:
		l.file(tid, &in, arguments[0])
		if in.File == sample.OtherFile {
			l.epoll(tid, &in, arguments[0])
		}
	}
	return in, nil
}

// channel sets what the function of the kernel says in which a thread waits: that for a lock, or one of the freezer of
// cgroups.
func (l *looker) channel(tid int, in *sample.In) {
	text, err := l.read(tid, "wchan")
	if err != nil {
		return
	}
	wchan := string(text)
	switch asleep := in.State == sample.StateAsleep; {
	case wchan == "__refrigerator", asleep && (wchan == "do_freezer_trap" || wchan == "get_signal"):
		in.State = sample.StateStopped
	default:
		in.Lock = !asleep && isLock(wchan)
	}
}

// lockers are in the names of functions of the kernel that take the lock of a memory map.
var lockers = []string{"rwsem", "mmap", "munmap", "mprotect", "madvise", "user_addr_fault", "lock_mm"}

// isLock reports whether a blocked thread waits for a lock of a file, as to append to it, or of its memory map. wchan
// leaves out the functions of locks: it is the function that took one, which waits for nothing else itself.
func isLock(wchan string) bool {
	return strings.HasSuffix(wchan, "_write_iter") || strings.HasSuffix(wchan, "_buffered_write") ||
		slices.ContainsFunc(lockers, func(part string) bool { return strings.Contains(wchan, part) })
}

// stateOf returns what the state in a thread's stat means.
func stateOf(state byte) (sample.ThreadState, error) {
	switch state {
	case 'R', 'W', 'P':
		return sample.StateReady, nil
	case 'S', 'I':
		return sample.StateAsleep, nil
	case 'D':
		return sample.StateBlocked, nil
	case 'T', 't':
		return sample.StateStopped, nil
	}
	return 0, errGone // Z, X
}

// parseCall parses "NUMBER 0xARG 0xARG ..." of a thread in a system call, and "-1 ..." of one that waits elsewhere.
func parseCall(text []byte) (number int, arguments [2]uint64, ok bool) {
	fields := bytes.Fields(text)
	if len(fields) == 0 {
		return 0, arguments, false
	}
	number, err := strconv.Atoi(string(fields[0]))
	if err != nil {
		return 0, arguments, false // "running"
	}
	for i := range arguments {
		if number < 0 || i+1 >= len(fields) {
			break
		}
		if arguments[i], err = strconv.ParseUint(strings.TrimPrefix(string(fields[i+1]), "0x"), 16, 64); err != nil {
			return 0, arguments, false
		}
	}
	return number, arguments, true
}

// maxDescriptor is the largest number of a file (fs.nr_open).
const maxDescriptor = 1 << 20

// nvidia is the device number of an NVIDIA GPU's file (Documentation/admin-guide/devices.txt).
const nvidia = 195 << 8

// file sets the kind of a descriptor by its name: asking the file itself could hang, on a network file system. Of a
// socket it sets the other end, too.
func (l *looker) file(tid int, in *sample.In, fd uint64) {
	folder := "/proc/" + strconv.Itoa(tid)
	name, err := os.Readlink(folder + "/fd/" + strconv.FormatUint(fd, 10))
	switch {
	case err != nil:
		in.File = sample.NoFile
	case strings.HasPrefix(name, "pipe:"):
		in.File = sample.Pipe
	case strings.HasPrefix(name, "socket:["):
		in.File = sample.Socket
		inode, err := strconv.ParseUint(strings.TrimSuffix(name[len("socket:["):], "]"), 10, 64)
		if err == nil {
			in.Peer = l.peers.of(tid, inode)
		}
	case strings.HasPrefix(name, "/dev/nvidia"):
		in.File, in.Detail = sample.CharDevice, nvidia
	case strings.HasPrefix(name, "/dev/shm/"), strings.HasPrefix(name, "/dev/hugepages/"):
		in.File = sample.RegularFile
	case strings.HasPrefix(name, "/dev/"):
		in.File = sample.CharDevice
	case strings.HasPrefix(name, "/"):
		in.File = sample.RegularFile
	default:
		in.File = sample.OtherFile
	}
}

// maxPolled is how many descriptors of a call are looked at.
const maxPolled = 8

// polls sets which of the descriptors a thread polls. It reads the list from the thread's memory.
func (l *looker) polls(tid int, in *sample.In, arguments [2]uint64) {
	var list [maxPolled]unix.PollFd
	n := min(arguments[1], maxPolled)
	if n == 0 || arguments[0] == 0 {
		return
	}
	size := int(n) * int(unsafe.Sizeof(list[0]))
	local := []unix.Iovec{{Base: (*byte)(unsafe.Pointer(&list)), Len: uint64(size)}}
	remote := []unix.RemoteIovec{{Base: uintptr(arguments[0]), Len: size}}
	if got, err := unix.ProcessVMReadv(tid, local, remote, 0); err != nil || got != size {
		return
	}
	for _, one := range list[:n] {
		if one.Fd >= 0 {
			l.prefer(tid, in, uint64(one.Fd))
		}
	}
}

// epoll sets which of the descriptors a thread waits for by epoll, if the descriptor is one of that.
func (l *looker) epoll(tid int, in *sample.In, fd uint64) {
	text, err := l.read(tid, "fdinfo/"+strconv.FormatUint(fd, 10))
	if err != nil {
		return
	}
	var list []uint64 // the buffer is used again
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte("tfd:"))
		if !ok || len(list) == maxPolled {
			continue
		}
		number, _, _ := bytes.Cut(bytes.TrimSpace(rest), []byte{' '})
		if target, err := strconv.ParseUint(string(number), 10, 31); err == nil {
			list = append(list, target)
		}
	}
	for _, target := range list {
		l.prefer(tid, in, target)
	}
}

// weight is how much a kind of file says about what one of several is waited for.
var weight = map[sample.FileKind]int{
	sample.CharDevice: 1, sample.Pipe: 2, sample.Socket: 3,
}

// prefer sets a descriptor as what a thread waits for, if it says more than the ones before. A connection to another
// machine says most.
func (l *looker) prefer(tid int, in *sample.In, fd uint64) {
	one := *in
	one.Peer, one.Detail = "", 0
	l.file(tid, &one, fd)
	more := weight[one.File] - weight[in.File]
	if more > 0 || more == 0 && one.File == sample.Socket && isRemote(one.Peer) && !isRemote(in.Peer) {
		*in = one
	}
}

// isRemote reports whether the other end of a socket is an address.
func isRemote(peer string) bool { return strings.ContainsAny(peer, ".:") }

// counters are the sums of a thread since it began.
type counters struct {
	ran, ready, system uint64 // ns; system in ticks of 10 ms
	fetched, chars     uint64
	hasIO              bool
}

// counters reads the sums of a thread: all, or its time on a CPU and ready.
func (l *looker) counters(tid int, all bool) (c counters, err error) {
	text, err := l.read(tid, "schedstat")
	if err != nil {
		return c, err
	}
	var ok bool
	if c.ran, c.ready, ok = process.ParseSchedstat(text); !ok {
		return c, errors.New("schedstat is not understood")
	}
	if !all {
		return c, nil
	}
	folder := "task/" + strconv.Itoa(tid) + "/"
	if text, err = procfile.Text("/proc", tid, folder+"stat", 2*len(l.buffer)); err != nil {
		return c, err
	}
	stat, _ := process.ParseStat(text)
	c.system = uint64(process.Tick) * stat.System
	if text, err = procfile.Text("/proc", tid, folder+"io", len(l.buffer)); err != nil {
		return c, nil // not permitted, or the kernel does not answer
	}
	c.fetched, c.chars, _, c.hasIO = process.ParseIO(text)
	return c, nil
}

// Package cuda finds the processes that use CUDA, by a device that they have open: /dev/nvidia-uvm, from which programs
// get memory. CUDA opens it when it is initialised, before the program takes memory of a GPU, and keeps it open. What
// only asks the driver about GPUs with NVML, as nvidia-smi and this program do, may open it, too, and opens files of
// /dev/nvidia-caps besides. Which GPUs a process uses is not known from its devices: CUDA opens all of them.
package cuda

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/kernfile"
	"github.com/stallspan/stallspan/internal/source/process"
)

// Device is the path of the device.
const Device = "/dev/nvidia-uvm"

// How often processes are looked at, and what that may cost.
const (
	deviceEvery = time.Minute // the device is looked for: without it, nothing else is done
	listEvery   = time.Second
	// listedEach is how many processes are listed a second: on a machine with more, the list is read less often, unless
	// the device was opened. It takes about 0.8 us a process.
	listedEach = 1000
	maxKnown   = 32768 // processes
	maxLooks   = 24    // processes in one look, about 75 us each
	maxFiles   = 2048  // open files of these
	maxUsers   = 256   // processes that have the device open: those that began first

	// A process is looked at when its age has grown by a share, and every five minutes. When the device was opened, all
	// are that are younger than recent.
	share  = 4
	rarely = 5 * time.Minute
	recent = 10 * time.Minute
)

// ErrHidden means that there are processes whose open files this program may not see.
var ErrHidden = errors.New("processes of other users are jobs when they hold memory of a GPU, and not when they " +
	"begin to use it: to see what they have open, give this program CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH")

// Search looks for processes. It is not safe for concurrent use.
type Search struct {
	root   string
	path   string         // of the device
	direct reader         // with the rights of this process
	reader process.Reader // with more; nil for none

	number    uint64 // of the device; 0 for no device
	opened    *Opened
	deviceDue time.Duration
	due       time.Duration // of the next list
	heardAt   time.Duration // when it was last read whether the device was opened
	lists     uint64
	known     map[int]*known
	hidden    bool // there are processes whose files cannot be seen, which was said
}

// reader reports whether a process has a device open.
type reader interface {
	HasDevice(of process.Key, device uint64) (open bool, files int, err error)
}

// known is what is remembered of a process.
type known struct {
	start  uint64 // ticks since boot; 0 before the first look
	due    time.Duration
	first  uint64 // number of the first list with it
	listed uint64 // number of the last one
	kernel bool   // it is a thread of the kernel, which opens nothing
	uses   bool
}

// began returns when it began, since boot.
func (k *known) began() time.Duration { return time.Duration(k.start) * process.Tick }

// New returns a Search among the processes of the machine below root. device is the path of the device below root; ""
// for Device. reader has more rights than this process, or is nil.
func New(root, device string, more process.Reader) *Search {
	root = filepath.Join("/", root)
	return &Search{
		root: root, path: filepath.Join(root, cmp.Or(device, Device)), direct: process.NewDirect(root + "/proc"),
		reader: more, known: map[int]*known{},
	}
}

// Users returns the processes that had the device open when they were looked at, up to a monotonic time. It looks at
// some once a second. The error is ErrHidden, once.
func (s *Search) Users(now time.Duration) (pids []int, err error) {
	if now >= s.deviceDue {
		s.deviceDue = now + deviceEvery
		s.findDevice()
	}
	if s.number == 0 {
		return nil, nil
	}
	if now >= s.heardAt+listEvery*9/10 {
		s.heardAt = now
		if all := s.opened.Heard(); all || now >= s.due { // before the list: who opened it is in there
			err = s.look(all, now)
		}
	}
	for pid, k := range s.known {
		if k.uses {
			pids = append(pids, pid)
		}
	}
	slices.SortFunc(pids, func(a, b int) int { // the first ones keep their places
		return cmp.Or(cmp.Compare(s.known[a].start, s.known[b].start), cmp.Compare(a, b))
	})
	return pids[:min(len(pids), maxUsers)], err
}

// Close ends the watch of the device.
func (s *Search) Close() { s.opened.Close() }

// findDevice notes the number of the device. Its driver may be loaded, and gone, at any time.
func (s *Search) findDevice() {
	number := deviceNumber(s.path)
	if number == 0 { // a container may have the host's /proc, and not its /dev
		number = driverNumber(s.root + "/proc/devices")
	}
	if number == s.number && (number == 0 || s.opened.on(s.path)) {
		return
	}
	s.opened.Close()
	s.number, s.opened, s.due, s.heardAt, s.lists = number, nil, 0, 0, 0
	clear(s.known)
	if number != 0 {
		s.opened = Watch(s.path)
	}
}

// driverNumber returns the number of the device from the kernel's list of drivers (proc_devices(5)); 0 if it lacks the
// driver. The kernel numbers drivers as they are loaded, and this driver its devices from 0.
func driverNumber(path string) uint64 {
	var buf [16 << 10]byte
	text, err := kernfile.ReadWhole(path, buf[:], len(buf))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) == 2 && string(fields[1]) == filepath.Base(Device) {
			major, _ := kernfile.ParseUint(fields[0])
			return unix.Mkdev(uint32(major), 0)
		}
	}
	return 0
}

// look lists all processes, and looks at those that are due. opened is whether the device was opened.
func (s *Search) look(opened bool, now time.Duration) error {
	names, err := kernfile.Names(s.root+"/proc", maxKnown+1000) // there are up to some hundred other names
	if err != nil {
		s.due = now + listEvery
		return nil // the other sources say so
	}
	s.lists++
	uptime := time.Duration(process.Uptime(s.root)) * process.Tick // 0 if it is not known: then all processes are young
	count := 0
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		count++
		k := s.known[pid]
		switch {
		case k != nil:
			k.listed = s.lists
			if opened && uptime-k.began() < recent {
				k.due = min(k.due, now)
			}
		case len(s.known) < maxKnown:
			k = &known{due: now, first: s.lists, listed: s.lists}
			if s.lists > 1 && !opened {
				k.due += listEvery * 9 / 10 // most new processes have ended by the next list
			}
			s.known[pid] = k
		}
	}
	maps.DeleteFunc(s.known, func(_ int, k *known) bool { return k.listed != s.lists })
	s.due = now + listEvery*time.Duration(1+count/listedEach) - listEvery/10
	return s.lookAt(s.waiting(now), uptime, now)
}

// waiting returns the processes that are due, at most maxLooks: the newest ones, and as many that wait for longest.
// Numbers grow with time, and begin again from low ones: the list that a process was first in comes before its number.
func (s *Search) waiting(now time.Duration) (pids []int) {
	for pid, k := range s.known {
		if !k.kernel && k.due <= now {
			pids = append(pids, pid)
		}
	}
	slices.SortFunc(pids, func(a, b int) int {
		return cmp.Or(cmp.Compare(s.known[b].first, s.known[a].first), cmp.Compare(b, a))
	})
	if len(pids) <= maxLooks {
		return pids
	}
	rest := pids[maxLooks/2:]
	slices.SortFunc(rest, func(a, b int) int {
		return cmp.Or(cmp.Compare(s.known[a].due, s.known[b].due), cmp.Compare(a, b))
	})
	return pids[:maxLooks]
}

// lookAt looks at these processes, as long as files may be looked at. The others wait.
func (s *Search) lookAt(pids []int, uptime, now time.Duration) (err error) {
	files := maxFiles
	for _, pid := range pids {
		if files <= 0 {
			break
		}
		n, hidden := s.lookAtOne(pid, uptime, now)
		files -= n
		if hidden && !s.hidden {
			s.hidden, err = true, ErrHidden
		}
	}
	return err
}

// lookAtOne looks at a process, and returns how many files it has open.
func (s *Search) lookAtOne(pid int, uptime, now time.Duration) (files int, hidden bool) {
	k := s.known[pid]
	if k.start == 0 {
		of, ok := process.StatOf(s.root, pid)
		if !ok || of.Ended {
			k.due = now + rarely
			return 0, false
		}
		k.start, k.kernel = of.Start, of.Kernel
	}
	if k.kernel {
		return 0, false
	}
	k.due = now + min(max((uptime-k.began())/share, listEvery*9/10), rarely)
	key := process.Key{PID: pid, Start: k.start}
	var err error
	k.uses, files, err = s.direct.HasDevice(key, s.number)
	if denied(err) && s.reader != nil {
		k.uses, files, err = s.reader.HasDevice(key, s.number)
	}
	if errors.Is(err, syscall.ESRCH) { // another process has the number now
		k.start = 0
	}
	return files, denied(err)
}

func denied(err error) bool {
	return errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM)
}

// deviceNumber returns the number of a character device; 0 for any other path.
func deviceNumber(path string) uint64 {
	var at unix.Stat_t
	if unix.Stat(path, &at) != nil || at.Mode&unix.S_IFMT != unix.S_IFCHR {
		return 0
	}
	return at.Rdev
}

// Opened reports whether devices were opened. A nil one hears nothing, as with a container's own file of the device:
// then processes are found by their age alone.
type Opened struct {
	fd    int
	inode uint64 // of the first
}

// Watch begins to listen. It returns nil where there is no device, and where the kernel does not let it.
func Watch(paths ...string) *Opened {
	if len(paths) == 0 {
		return nil
	}
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil
	}
	o := &Opened{fd, inodeOf(paths[0])}
	for _, path := range paths {
		if _, err := unix.InotifyAddWatch(fd, path, unix.IN_OPEN); err != nil {
			o.Close()
			return nil
		}
	}
	return o
}

func inodeOf(path string) uint64 {
	var at unix.Stat_t
	_ = unix.Stat(path, &at)
	return at.Ino
}

// on reports whether it listens to the file that has the path now: it may have been made again. A nil one says true,
// as another one would hear nothing either.
func (o *Opened) on(path string) bool { return o == nil || o.inode == inodeOf(path) }

// Heard reports whether one was opened since the last call. The kernel joins events that are the same.
func (o *Opened) Heard() (some bool) {
	if o == nil {
		return false
	}
	var buf [4096]byte
	n, err := unix.Read(o.fd, buf[:])
	return err == nil && n > 0
}

// Close ends that.
func (o *Opened) Close() {
	if o != nil {
		_ = unix.Close(o.fd)
	}
}

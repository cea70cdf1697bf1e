package process

import (
	"cmp"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/procfile"
)

// Direct is a Reader of /proc with the rights of this process. It keeps the files of processes open that it is indexes
// for again and again. Unlike other Readers it is not safe for concurrent use.
type Direct struct {
	proc  string
	open  map[Key]openIO
	round uint64

	io      *procfile.Batch[openIO, ioAnswer]
	indexes [atOnce]int // indexes of the processes whose files are read
	pids    [atOnce]int
	files   [atOnce]openIO
	answers [atOnce]ioAnswer
}

// openIO is an open /proc/PID/io. It belongs to its process: if another process gets the PID, reading fails.
type openIO struct {
	key  Key
	fd   int    // -1 if it is to be opened
	used uint64 // number of the last round that indexes for it
}

// ioAnswer is what was read, and the open file; -1 for none.
type ioAnswer struct {
	Bytes
	fd int
}

const (
	// keptRounds is how many rounds a file stays open without being indexes for: about half a minute of readings.
	keptRounds = 300
	atOnce     = 64 // files that are read with one goroutine
)

// NewDirect returns a Direct for the processes of a mounted proc, such as "/proc".
func NewDirect(proc string) *Direct {
	d := &Direct{proc: proc, open: map[Key]openIO{}}
	d.io = procfile.NewBatch(ioAnswer{Bytes{Err: unix.ETIMEDOUT}, -1}, d.readIO, func(a ioAnswer) { closeFD(a.fd) })
	return d
}

func closeFD(fd int) {
	if fd >= 0 {
		_ = unix.Close(fd)
	}
}

// Bytes implements Reader. The error is nil. That of a process for which the kernel does not answer is ETIMEDOUT.
func (d *Direct) Bytes(of []Key, into []Bytes) error {
	d.round++
	for from := 0; from < len(of); from += atOnce {
		to := min(len(of), from+atOnce)
		d.bytes(of[from:to], into[from:to])
	}
	if d.round%keptRounds == 0 {
		for key, f := range d.open {
			if d.round-f.used >= keptRounds {
				d.close(key)
			}
		}
	}
	return nil
}

// bytes reads up to atOnce processes. A file stays open if the key is exact.
func (d *Direct) bytes(of []Key, into []Bytes) {
	n := 0
	for i, key := range of {
		if !procfile.May(d.proc, key.PID) {
			into[i] = Bytes{Err: unix.ETIMEDOUT}
			continue
		}
		f := openIO{key: key, fd: -1}
		if kept, ok := d.open[key]; ok {
			f = kept
			delete(d.open, key) // a read that is late keeps it
		}
		d.indexes[n], d.pids[n], d.files[n] = i, key.PID, f
		n++
	}
	d.io.Each(d.proc, d.pids[:n], d.files[:n], d.answers[:n])
	for k, i := range d.indexes[:n] {
		key, a := of[i], d.answers[k]
		if into[i] = a.Bytes; a.fd < 0 {
			continue
		}
		_, twice := d.open[key]
		if a.Err != 0 || key.Start == 0 || len(d.open) >= maxOpen || twice {
			closeFD(a.fd)
			continue
		}
		d.open[key] = openIO{key, a.fd, d.round}
	}
}

// readIO reads the counters of a process, on any goroutine.
func (d *Direct) readIO(f openIO, buf []byte) ioAnswer {
	if f.fd < 0 {
		fd, err := d.openIO(f.key)
		if err != nil {
			return ioAnswer{Bytes{Err: errno(err)}, -1}
		}
		f.fd = fd
	}
	a := ioAnswer{fd: f.fd}
	n, err := unix.Pread(f.fd, buf, 0)
	if err != nil {
		a.Err = errno(err)
		return a
	}
	var ok bool
	if a.Read, a.Chars, a.Write, ok = ParseIO(buf[:n]); !ok {
		a.Bytes = Bytes{Err: errFormat}
	}
	return a
}

// close closes the file of a process, if it is open.
func (d *Direct) close(key Key) {
	if f, ok := d.open[key]; ok {
		closeFD(f.fd)
		delete(d.open, key)
	}
}

// Close closes the open files.
func (d *Direct) Close() {
	for key := range d.open {
		d.close(key)
	}
}

func (d *Direct) openIO(key Key) (fd int, err error) {
	folder, err := d.folder(key)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(folder) }()
	return unix.Openat(folder, "io", unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

func (d *Direct) dir(pid int) string { return d.proc + "/" + strconv.Itoa(pid) }

// folder opens the folder of a process. It stays that of the process, whichever has the PID later.
func (d *Direct) folder(key Key) (fd int, err error) {
	fd, err = unix.Open(d.dir(key.PID), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil || key.Start == 0 {
		return fd, err
	}
	started, err := d.started(fd)
	if err == nil && started != key.Start {
		err = unix.ESRCH
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// started returns when the process of a folder started, in ticks since boot.
func (d *Direct) started(folder int) (ticks uint64, err error) {
	fd, err := unix.Openat(folder, "stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	var buf [4096]byte
	n, err := unix.Pread(fd, buf[:], 0)
	if err != nil {
		return 0, err
	}
	s, ok := parseStat(buf[:n])
	if !ok {
		return 0, errFormat
	}
	return s.start, nil
}

// check returns an error if the PID belongs to another process now. If not, it did not before.
func (d *Direct) check(key Key) error {
	fd, err := d.folder(key)
	if err != nil {
		return errno(err)
	}
	_ = unix.Close(fd)
	return nil
}

// Files implements Reader. It reads links only.
func (d *Direct) Files(of Key, from, limit int) (list []OpenFile, files int, err error) {
	type answer struct {
		list  []OpenFile
		files int
	}
	a, err := doFor(d, of, func() (a answer, err error) {
		a.list, a.files, err = filesIn(d.dir(of.PID), from, limit)
		return a, err
	})
	return a.list, a.files, err
}

// SameProgram implements Reader. It reads links only: the file itself may be on a server that does not respond.
func (d *Direct) SameProgram(one, other Key) (bool, error) {
	var programs [2]string
	for i, key := range [...]Key{one, other} {
		program, err := doFor(d, key, func() (string, error) { return os.Readlink(d.dir(key.PID) + "/exe") })
		if err != nil {
			return false, err
		}
		programs[i] = program
	}
	return programs[0] == programs[1], nil
}

// doFor reads what belongs to a process, and returns the number of an error.
func doFor[T any](d *Direct, of Key, read func() (T, error)) (T, error) {
	type answer struct {
		result T
		err    error
	}
	a, err := procfile.Do(d.proc, of.PID, func() (a answer) {
		if a.result, a.err = read(); a.err == nil && of.Start != 0 {
			a.err = d.check(of)
		}
		return a
	})
	if err = cmp.Or(err, a.err); err != nil {
		var none T
		return none, errno(err)
	}
	return a.result, nil
}

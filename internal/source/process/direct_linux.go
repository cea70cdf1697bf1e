package process

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/procfile"
)

// Direct is a Reader of /proc with the rights of this process. It keeps the files of processes open that it is asked
// for again and again. Unlike other Readers it is not safe for concurrent use.
type Direct struct {
	proc  string
	open  map[Key]*openIO
	round uint64
	buf   [4096]byte

	io     *procfile.Batch[int, Bytes]
	asked  [atOnce]int // indexes of the processes whose files are read
	pids   [atOnce]int
	files  [atOnce]int
	counts [atOnce]Bytes
}

// openIO is an open /proc/PID/io. It belongs to its process: if another process gets the PID, reading fails.
type openIO struct {
	fd   int
	used uint64 // number of the last round that asked for it
}

const (
	// keptRounds is how many rounds a file stays open without being asked for: about half a minute of readings.
	keptRounds = 300
	atOnce     = 64 // files that are read with one goroutine
)

// NewDirect returns a Direct for the processes of a mounted proc, such as "/proc".
func NewDirect(proc string) *Direct {
	closeFile := func(fd int) { _ = unix.Close(fd) }
	return &Direct{
		proc: proc, open: map[Key]*openIO{}, io: procfile.NewBatch(Bytes{Err: unix.ETIMEDOUT}, readIO, closeFile),
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
		fd, err := d.file(key)
		if err != nil {
			into[i] = Bytes{Err: errno(err)}
			continue
		}
		d.asked[n], d.pids[n], d.files[n] = i, key.PID, fd
		n++
	}
	d.io.Each(d.proc, d.pids[:n], d.files[:n], d.counts[:n])
	for k, i := range d.asked[:n] {
		key, b := of[i], d.counts[k]
		f := d.open[key]
		kept := f != nil && f.fd == d.files[k]
		switch {
		case b.Err == unix.ETIMEDOUT && kept: // whoever reads it closes it
			delete(d.open, key)
		case b.Err == unix.ETIMEDOUT:
		case !kept:
			_ = unix.Close(d.files[k])
		case b.Err != 0:
			d.close(key)
		}
		into[i] = b
	}
}

// file returns the open file of a process. It is kept if the key is exact and there is room. A process that is asked for
// twice in a round has a second file.
func (d *Direct) file(key Key) (fd int, err error) {
	f := d.open[key]
	if f != nil && f.used != d.round {
		f.used = d.round
		return f.fd, nil
	}
	if fd, err = d.openIO(key); err == nil && f == nil && key.Start != 0 && len(d.open) < maxOpen {
		d.open[key] = &openIO{fd: fd, used: d.round}
	}
	return fd, err
}

// readIO reads an open /proc/PID/io.
func readIO(fd int) (b Bytes) {
	var buf [4096]byte
	n, err := unix.Pread(fd, buf[:], 0)
	if err != nil {
		return Bytes{Err: errno(err)}
	}
	var ok bool
	if b.Read, b.Chars, b.Write, ok = ParseIO(buf[:n]); !ok {
		return Bytes{Err: errFormat}
	}
	return b
}

// close closes the file of a process, if it is open.
func (d *Direct) close(key Key) {
	if f := d.open[key]; f != nil {
		_ = unix.Close(f.fd)
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
	n, err := unix.Pread(fd, d.buf[:], 0)
	if err != nil {
		return 0, err
	}
	s, ok := parseStat(d.buf[:n])
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
	list, files, err = filesIn(d.dir(of.PID), from, limit)
	switch {
	case err != nil:
		return nil, 0, errno(err)
	case of.Start == 0:
		return list, files, nil
	}
	return list, files, d.check(of)
}

// SameProgram implements Reader. It reads links only: the file itself may be on a server that does not respond.
func (d *Direct) SameProgram(one, other Key) (bool, error) {
	var programs [2]string
	for i, key := range [...]Key{one, other} {
		to, err := os.Readlink(d.dir(key.PID) + "/exe")
		if err == nil {
			err = d.check(key)
		}
		if err != nil {
			return false, errno(err)
		}
		programs[i] = to
	}
	return programs[0] == programs[1], nil
}

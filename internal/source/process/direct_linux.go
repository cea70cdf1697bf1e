package process

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/trust"
)

// Direct is a Reader of /proc with the rights of this process. It keeps the files of processes open that it is asked
// for again and again. Unlike other Readers it is not safe for concurrent use.
type Direct struct {
	proc  string
	open  map[Key]*openIO
	round uint64
	buf   [4096]byte
	maps  mapsReads
}

// openIO is an open /proc/PID/io. It belongs to its process: if another process gets the PID, reading fails.
type openIO struct {
	fd   int
	used uint64 // number of the last round that asked for it
}

// keptRounds is how many rounds a file stays open without being asked for: about half a minute of readings.
const keptRounds = 300

// NewDirect returns a Direct for the processes of a mounted proc, such as "/proc".
func NewDirect(proc string) *Direct {
	return &Direct{proc: proc, open: map[Key]*openIO{},
		maps: mapsReads{places: trust.NewPlaces(maxMapsReads), late: map[int]bool{}}}
}

// Bytes implements Reader. The error is nil.
func (d *Direct) Bytes(of []Key, into []Bytes) error {
	d.round++
	for i, key := range of {
		into[i] = d.bytes(key)
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

// bytes reads one process. Its file stays open if the key is exact.
func (d *Direct) bytes(key Key) Bytes {
	f := d.open[key]
	if f == nil {
		fd, err := d.openIO(key)
		if err != nil {
			return Bytes{Err: errno(err)}
		}
		if key.Start == 0 || len(d.open) >= maxOpen {
			defer func() { _ = unix.Close(fd) }()
			return d.read(fd)
		}
		f = &openIO{fd: fd}
		d.open[key] = f
	}
	f.used = d.round
	b := d.read(f.fd)
	if b.Err != 0 {
		d.close(key)
	}
	return b
}

func (d *Direct) read(fd int) (b Bytes) {
	n, err := unix.Pread(fd, d.buf[:], 0)
	if err != nil {
		return Bytes{Err: errno(err)}
	}
	var ok bool
	if b.Read, b.Chars, b.Write, ok = ParseIO(d.buf[:n]); !ok {
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

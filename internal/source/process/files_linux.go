package process

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// ModelFiles implements Reader. It reads links, positions and the attributes that the kernel has in memory: a file on
// a server that does not respond blocks nothing.
func (d *Direct) ModelFiles(of Key, want FilesWanted) (Files, error) {
	return doFor(d, of, func() (Files, error) { return modelFilesIn(d.dir(of.PID), want) })
}

func modelFilesIn(dir string, want FilesWanted) (all Files, err error) {
	names, err := kernfile.Names(dir+"/fd", maxProcessFDs)
	if err != nil {
		return all, err
	}
	l := lister{dir: dir, want: want, all: &all}
	for _, name := range names {
		l.add(name)
	}
	if want.Maps {
		all.List = addMapped(all.List, mappedIn(dir))
	}
	if len(l.sockets) > 0 {
		all.Listening = listening(dir+"/net/tcp", l.sockets) + listening(dir+"/net/tcp6", l.sockets)
	}
	if l.missed {
		_, err = os.Stat(dir) // it may have ended
	}
	return all, err
}

// lister lists the open files of a process.
type lister struct {
	dir     string // of the process
	want    FilesWanted
	all     *Files
	sockets map[string]bool
	others  int
	missed  bool // a link was not there any more: of a file that was closed, or of a process that ended
}

// deleted follows the path of a file that has no name any more.
const deleted = " (deleted)"

// add adds an open file by its number.
func (l *lister) add(name string) {
	path, err := os.Readlink(l.dir + "/fd/" + name)
	if err != nil || path == "" {
		l.missed = true
		return
	}
	if path[0] != '/' {
		if inode, ok := strings.CutPrefix(path, "socket:["); ok && l.want.Sockets {
			if l.sockets == nil {
				l.sockets = map[string]bool{}
			}
			l.sockets[strings.TrimSuffix(inode, "]")] = true
		}
		return
	}
	if path = strings.TrimSuffix(path, deleted); len(path) > MaxFilePath || len(l.all.List) == MaxFiles {
		return
	}
	ofModel := OfModel(path)
	if !ofModel && (!l.want.Others || l.others >= maxOthers || System(path)) {
		return
	}
	if f, ok := fileIn(l.dir, name); ok {
		f.Path = path
		l.all.List = append(l.all.List, f)
		if !ofModel {
			l.others++
		}
	}
}

// fileIn reads a regular file that a process has open, without its path.
func fileIn(dir, name string) (f File, ok bool) {
	var at unix.Statx_t
	const wanted = unix.STATX_TYPE | unix.STATX_SIZE
	// DONT_SYNC: a file system may have to wait for its server otherwise.
	err := unix.Statx(unix.AT_FDCWD, dir+"/fd/"+name, unix.AT_STATX_DONT_SYNC, wanted, &at)
	if err != nil || at.Mode&unix.S_IFMT != unix.S_IFREG {
		return f, false
	}
	var buf [1024]byte
	text, err := kernfile.ReadPiece(dir+"/fdinfo/"+name, buf[:])
	if err != nil {
		return f, false
	}
	f.FD, _ = strconv.Atoi(name)
	f.Size = int64(at.Size)
	f.Size = min(f.Size, 1<<50) // as mappings; a file may claim any size
	info, _ := parseFDInfo(text)
	if f.Write = info.Writes; info.position <= 1<<50 {
		f.Offset = int64(info.position)
	}
	return f, true
}

// addMapped adds mapped files to a list of open ones.
func addMapped(list, mapped []File) []File {
	for i := range mapped {
		m := &mapped[i]
		k := slices.IndexFunc(list, func(f File) bool { return f.Path == m.Path })
		switch {
		case k >= 0:
			list[k].Mapped += m.Mapped
		case len(list) < MaxFiles:
			list = append(list, *m)
		}
	}
	return list
}

// mappedIn returns the files of models that a process has mapped.
func mappedIn(dir string) (list []File) {
	eachLine(dir+"/maps", maxMapsBytes, func(line []byte) {
		at := bytes.IndexByte(line, '/')
		if at < 0 {
			return
		}
		name := bytes.TrimSuffix(line[at:], []byte(deleted))
		if len(name) > MaxFilePath || !OfModel(string(name)) {
			return
		}
		length, end, ok := parseMapping(line[:at])
		if !ok {
			return
		}
		k := slices.IndexFunc(list, func(f File) bool { return f.Path == string(name) })
		switch {
		case k >= 0:
			list[k].Mapped += length
			list[k].Size = max(list[k].Size, end)
		case len(list) < MaxFiles:
			list = append(list, File{FD: -1, Path: string(name), Size: end, Mapped: length})
		}
	})
	return list
}

// parseMapping returns the length of a mapping, and the offset of its end in the file, from the begin of a line of
// /proc/PID/maps.
func parseMapping(line []byte) (length, end int64, ok bool) {
	fields := bytes.Fields(line)
	if len(fields) < 3 {
		return 0, 0, false
	}
	from, to, _ := strings.Cut(string(fields[0]), "-")
	a, err1 := strconv.ParseUint(from, 16, 64)
	b, err2 := strconv.ParseUint(to, 16, 64)
	offset, err3 := strconv.ParseUint(string(fields[2]), 16, 64)
	if err1 != nil || err2 != nil || err3 != nil || b < a || b-a > 1<<50 || offset > 1<<50 {
		return 0, 0, false
	}
	return int64(b - a), int64(offset + b - a), true
}

// listening counts the sockets of a process that listen, by their inodes.
func listening(file string, own map[string]bool) (n int) {
	eachLine(file, maxTCPBytes, func(line []byte) {
		fields := bytes.Fields(line)
		if len(fields) > 9 && string(fields[3]) == "0A" && own[string(fields[9])] { // TCP_LISTEN
			n++
		}
	})
	return n
}

// eachLine calls yield with each line of a file, without its end, up to a number of bytes.
func eachLine(file string, limit int, yield func(line []byte)) {
	f, err := os.Open(file)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(io.LimitReader(f, int64(limit)))
	lines.Buffer(make([]byte, 0, 16<<10), 16<<10) // a path has 4 KiB at most
	for lines.Scan() {
		yield(lines.Bytes())
	}
}

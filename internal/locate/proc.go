package locate

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

const (
	mostPID   = 1 << 22  // PID_MAX_LIMIT of include/linux/threads.h
	mostBytes = 64 << 10 // of a file: a dozen lines of at most 4 KiB
)

func procOf(root string) string { return filepath.Join("/", root, "proc") }

// read fills buf with a file of the process; nil when there is no such process, or it may not be read.
func read(proc string, pid int, name string, buf []byte) []byte {
	return readFile(proc+"/"+strconv.Itoa(pid)+"/"+name, buf)
}

// readFile opens without os.File, which would cost a fifth more for a file that is read once. The kernel prints these
// files in one piece, which comes whole in one read (fs/seq_file.c, single_open).
func readFile(path string, buf []byte) []byte {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = syscall.Close(fd) }()
	n, err := syscall.Read(fd, buf)
	if err != nil || n < 0 {
		return nil
	}
	return buf[:n]
}

// buffer lends a place for the text of a file. Spans may name thousands of processes a second that are not there.
func (l *Locator) buffer() *[mostBytes]byte {
	if buf, ok := l.buffers.Get().(*[mostBytes]byte); ok {
		return buf
	}
	return new([mostBytes]byte)
}

// status is what is needed of /proc/PID/status (Documentation/filesystems/proc.rst, table 1-2).
type status struct {
	group  int  // Tgid: the process that this is a thread of, or itself
	inner  int  // the last of NSpid: the number in the process's own pid namespace
	depth  int  // of that namespace below the one of /proc: 0 when it is the same
	memory bool // kernel threads and processes that have ended have none
}

// parseStatus finds these. A kernel without pid namespaces prints no NSpid.
func parseStatus(text []byte) (status, bool) {
	var s status
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte{'\n'})
		name, value, _ := bytes.Cut(line, []byte{':'})
		switch string(name) {
		case "Tgid":
			s.group = number(bytes.TrimSpace(value))
			s.inner = s.group
		case "NSpid":
			s.depth = -1
			for word := range bytes.FieldsSeq(value) {
				s.inner = number(word)
				s.depth++
			}
		case "VmSize":
			s.memory = true
			return s, s.group > 0 && s.inner > 0 && s.depth >= 0 // it comes after the others
		}
	}
	return s, s.group > 0 && s.inner > 0 && s.depth >= 0
}

// number is a process ID, 0 when it is none.
func number(digits []byte) int {
	if n, ok := kernfile.ParseUint(digits); ok && n <= mostPID {
		return int(n)
	}
	return 0
}

// self is this process, as the /proc below root shows it.
type self struct {
	nested    bool   // we are in a pid namespace of our own, below the one of that /proc
	namespace string // "pid:[4026531836]"; "" when unknown
}

func whoAmI(proc string) self {
	s, ok := parseStatus(readFile(proc+"/self/status", make([]byte, mostBytes)))
	if !ok || s.depth == 0 {
		return self{}
	}
	namespace, err := os.Readlink(proc + "/self/ns/pid")
	return self{nested: err == nil, namespace: namespace}
}

// ourNamespace tells whether the process is in the same pid namespace as this one. Reading that takes the right to
// trace it: of what may not be read, it is not.
func (l *Locator) ourNamespace(pid int) bool {
	namespace, err := os.Readlink(l.proc + "/" + strconv.Itoa(pid) + "/ns/pid")
	return err == nil && namespace == l.self.namespace
}

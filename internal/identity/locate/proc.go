package locate

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

const (
	maxPID   = 1 << 22  // PID_MAX_LIMIT of include/linux/threads.h
	maxBytes = 64 << 10 // of a file: a dozen lines of at most 4 KiB
)

func procOf(root string) string { return filepath.Join("/", root, "proc") }

// read returns a file of a process, in buf; nil if there is no such process, or if it may not be read.
func read(proc string, pid int, name string, buf []byte) []byte {
	return readFile(proc+"/"+strconv.Itoa(pid)+"/"+name, buf)
}

// readFile returns the text of a file that the kernel returns in one read (fs/seq_file.c, single_open); nil for none.
func readFile(path string, buf []byte) []byte {
	text, _ := kernfile.ReadPiece(path, buf)
	return text
}

// buffer returns a pooled buffer for a file. Spans may name thousands of processes per second that do not exist.
func (l *Locator) buffer() *[maxBytes]byte {
	if buf, ok := l.buffers.Get().(*[maxBytes]byte); ok {
		return buf
	}
	return new([maxBytes]byte)
}

// status has some fields of /proc/PID/status (Documentation/filesystems/proc.rst, table 1-2).
type status struct {
	group  int  // Tgid: the process of this thread
	inner  int  // the last NSpid: the number in the process's own pid namespace
	depth  int  // of that namespace below the one of /proc; 0 if it is the same
	memory bool // false for kernel threads and processes that have ended
}

// parseStatus parses /proc/PID/status. A kernel without pid namespaces has no NSpid.
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

// number parses a process ID. It returns 0 for anything else.
func number(digits []byte) int {
	if n, ok := kernfile.ParseUint(digits); ok && n <= maxPID {
		return int(n)
	}
	return 0
}

// self is this process in the /proc below root.
type self struct {
	nested    bool   // it is in a pid namespace below the one of that /proc
	namespace string // "pid:[4026531836]"; "" if unknown
}

func newSelf(proc string) self {
	s, ok := parseStatus(readFile(proc+"/self/status", make([]byte, maxBytes)))
	if !ok || s.depth == 0 {
		return self{}
	}
	namespace, err := os.Readlink(proc + "/self/ns/pid")
	return self{nested: err == nil, namespace: namespace}
}

// ourNamespace reports whether the process is in the same pid namespace as this one. It returns false without the right
// to trace the process.
func (l *Locator) ourNamespace(pid int) bool {
	namespace, err := os.Readlink(l.proc + "/" + strconv.Itoa(pid) + "/ns/pid")
	return err == nil && namespace == l.self.namespace
}

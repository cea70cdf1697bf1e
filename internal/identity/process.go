package identity

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/stallspan/stallspan/internal/source/kernfile"
	sources "github.com/stallspan/stallspan/internal/source/process"
)

// maxText bounds a file of a process: a dozen lines of at most 4 KiB.
const maxText = 64 << 10

// buffers are for files of processes.
var buffers sync.Pool

// readFile returns a small file of a process in buf, or nil.
func readFile(proc string, pid int, name string, buf *[maxText]byte) []byte {
	text, _ := kernfile.ReadWhole(proc+"/"+strconv.Itoa(pid)+"/"+name, buf[:], len(buf))
	return text
}

// startOf returns when a process began, in ticks since the machine did; false if it has ended.
func startOf(proc string, pid int) (uint64, bool) {
	var buf [4 << 10]byte
	text, _ := kernfile.ReadPiece(proc+"/"+strconv.Itoa(pid)+"/stat", buf[:])
	of, ok := sources.ParseStat(text)
	return of.Start, ok && !of.Ended
}

// programOf returns the path of a process's program, or "" without the right to see it.
func programOf(proc string, pid int) string {
	path, _ := os.Readlink(proc + "/" + strconv.Itoa(pid) + "/exe")
	return strings.TrimSuffix(path, " (deleted)")
}

// executable returns the name of a program by its path. Without one, it is the name that the process gives itself.
// While runc starts a container, the path is "/".
func executable(proc string, pid int, path string, buf *[maxText]byte) (name string, claimed bool) {
	if path != "" && path != "/" {
		return filepath.Base(path), false
	}
	return string(bytes.TrimSuffix(readFile(proc, pid, "comm", buf), []byte("\n"))), true
}

// commandOf names what a process runs, by its command line: the script of an interpreter, which its user chooses.
// Without a command line it is the program.
func commandOf(proc string, pid int, program string) string {
	text := bytes.TrimSuffix(readFile(proc, pid, "cmdline", new([maxText]byte)), []byte{0})
	if interpreter(program) == "" || len(text) == 0 {
		return program
	}
	return NameOf(strings.Split(string(text), "\x00"))
}

package identity

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stallspan/stallspan/internal/source/kernfile"
	sources "github.com/stallspan/stallspan/internal/source/process"
)

// maxText bounds a file of a process: a dozen lines of at most 4 KiB.
const maxText = 64 << 10

// readFile returns a small file of a process, or nil.
func readFile(proc string, pid int, name string) []byte {
	text, _ := kernfile.ReadOnce(proc+"/"+strconv.Itoa(pid)+"/"+name, make([]byte, maxText))
	return text
}

// startOf returns when a process began, in ticks since the machine did; false if it has ended.
func startOf(proc string, pid int) (uint64, bool) {
	var buf [4 << 10]byte
	text, _ := kernfile.ReadPiece(proc+"/"+strconv.Itoa(pid)+"/stat", buf[:])
	return sources.StartOf(text)
}

// uidOf returns the real user in the text of /proc/PID/status, or -1.
func uidOf(status []byte) int64 {
	for line := range bytes.Lines(status) {
		if ids, ok := bytes.CutPrefix(line, []byte("Uid:")); ok {
			for word := range bytes.FieldsSeq(ids) {
				if uid, ok := kernfile.ParseUint(word); ok && uid < 1<<32 {
					return int64(uid)
				}
				break
			}
		}
	}
	return -1
}

// executable returns the name of a process's program. Without the right to see it, it is the name that the process
// gives itself.
func executable(proc string, pid int) (name string, claimed bool) {
	folder := proc + "/" + strconv.Itoa(pid)
	if path, err := os.Readlink(folder + "/exe"); err == nil {
		return filepath.Base(strings.TrimSuffix(path, " (deleted)")), false
	}
	return string(bytes.TrimSuffix(readFile(proc, pid, "comm"), []byte("\n"))), true
}

package process

import (
	"bytes"
	"errors"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/stallspan/stallspan/internal/source/kernfile"
	"github.com/stallspan/stallspan/internal/source/modelfile"
)

// Bounds of one question for files.
const (
	MaxFiles     = 256 // of an answer
	MaxFilePath  = 1024
	maxOthers    = 32        // other files of a process
	maxMapsBytes = 4 << 20   // of /proc/PID/maps: about 40,000 mappings
	maxTCPBytes  = 256 << 10 // of /proc/PID/net/tcp: about 1,700 sockets; those that listen come first
)

// File is a file that a process has open or mapped.
type File struct {
	FD     int // -1 for one that is mapped and not open
	Path   string
	Size   int64 // bytes; of one that is only mapped, up to the end of its last mapping
	Offset int64 // the file position
	Mapped int64 // bytes of its mappings
	Write  bool  // open for writing
}

// FilesWanted says what an answer has besides open files of models.
type FilesWanted struct {
	Maps    bool // mapped files of models, too: this costs about 0.3 us for each mapping
	Sockets bool // the number of sockets that listen
	Others  bool // other regular files that are open
}

// Files is what a process has open.
type Files struct {
	List      []File
	Listening int // TCP sockets
}

// OfModel reports whether a path is that of a file with weights, of one that is being downloaded, or of a cache that
// compilers of models write. Readers give no other names away.
func OfModel(name string) bool {
	return modelfile.Is(name) || modelfile.IsBlob(name) || modelfile.IsPartial(name) || modelfile.IsCompiled(name)
}

// System reports whether a path is of a file system without data, or of programs.
func System(name string) bool {
	if strings.HasPrefix(name, "/dev/shm/") { // a file system in memory
		return false
	}
	for _, dir := range [...]string{"/dev/", "/proc/", "/sys/", "/usr/", "/lib", "/memfd:"} {
		if strings.HasPrefix(name, dir) {
			return true
		}
	}
	return false
}

// InMemory is what /proc/PID/statm has, in bytes.
type InMemory struct {
	Size     int64 // of the address space
	Resident int64 // what of it is in memory
	Files    int64 // what of this is of files, or shared
	Ended    bool  // the process has ended, and perhaps no process has waited for it
}

// Memory returns what a process has in memory. Everybody may read that. Sizes are 0 for a process that has ended, and
// if they cannot be read.
func Memory(root string, pid int) (m InMemory) {
	var buf [128]byte
	text, err := kernfile.ReadPiece(path.Join("/", root, "proc", strconv.Itoa(pid), "statm"), buf[:])
	if err != nil {
		m.Ended = errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ESRCH)
		return m
	}
	var pages [3]int64 // in all, resident, shared
	for i := range pages {
		var word []byte
		word, text, _ = bytes.Cut(text, []byte{' '})
		n, ok := kernfile.ParseUint(word)
		if !ok || n > 1<<48 {
			return m
		}
		pages[i] = int64(n) * int64(os.Getpagesize())
	}
	return InMemory{pages[0], pages[1], pages[2], pages[0] == 0}
}

package process

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// Where data come from no disk of this machine, waiting for them shows in no counter if the page cache is passed by: who
// reads a network file system so just sleeps. What it sleeps in is told at any moment by /proc/PID/syscall (proc(5)), to
// those who may trace it. So each reading takes one sample of each thread that may read, and the time that the thread slept
// is divided as its last samples were.
const (
	mostInReads = 16 // threads of a job that are looked at with each reading, about 4 us each; the others come in turn
	lastInReads = 32 // samples whose mean is taken
)

// readCalls are the numbers of the system calls whose first argument is a file that they read.
var readCalls []uint64

// inRead is how often a thread that slept was found in a read of a file.
type inRead struct {
	call    file // its syscall
	samples int
	share   float64 // of them
}

// sampleReads looks at threads of a job whose data come from no disk of this machine.
func (t *threads) sampleReads(s *Source) {
	all := len(t.leaders) + len(t.readers)
	for range min(all, mostInReads) {
		t.sampled = (t.sampled + 1) % all
		if i := t.sampled - len(t.leaders); i >= 0 {
			t.readers[i].sampleRead(s)
		} else {
			t.leaders[t.sampled].sampleRead(s)
		}
	}
}

func (t *thread) sampleRead(s *Source) {
	text, err := s.read(&t.in.call)
	if err != nil {
		return // not ours to trace, or a kernel without it
	}
	fd, sleeps, reads := parseSyscall(text)
	if !sleeps {
		return
	}
	value := 0.0
	if reads {
		// The link alone: to look at the file itself may wait for what the thread waits for.
		if to, err := os.Readlink(filepath.Join(filepath.Dir(t.in.call.path), "fd", strconv.FormatUint(fd, 10))); err == nil && isFile(to) {
			value = 1
		}
	}
	t.in.samples = min(t.in.samples+1, lastInReads)
	t.in.share += (value - t.in.share) / float64(t.in.samples)
}

// isFile says whether an open file is one of a file system, and no device. A pipe or socket is "pipe:[1]".
func isFile(link string) bool {
	return strings.HasPrefix(link, "/") && !strings.HasPrefix(link, "/proc/") &&
		(!strings.HasPrefix(link, "/dev/") || strings.HasPrefix(link, "/dev/shm/"))
}

// parseSyscall reads "NUMBER 0xFD ...", as of a thread that sleeps in a system call, "-1 ..." of one that sleeps elsewhere,
// and "running".
func parseSyscall(text []byte) (fd uint64, sleeps, reads bool) {
	number, rest, _ := bytes.Cut(text, []byte{' '})
	if bytes.HasPrefix(number, []byte("running")) || len(number) == 0 {
		return 0, false, false
	}
	call, ok := kernfile.ParseUint(number)
	if !ok || !slices.Contains(readCalls, call) {
		return 0, true, false
	}
	first, _, _ := bytes.Cut(rest, []byte{' '})
	fd, err := strconv.ParseUint(string(first), 0, 31)
	return fd, true, err == nil
}

// slept is how much of the time that the thread slept was in reads.
func (t *thread) slept(dt time.Duration) time.Duration {
	return time.Duration(t.in.share * float64(max(0, dt)))
}

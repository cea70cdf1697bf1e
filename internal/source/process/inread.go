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

// If data come from no disk of this machine and bypass the page cache, no counter shows the waiting: a reader of a
// network file system just sleeps. /proc/PID/syscall (proc(5)) shows the system call in which it sleeps, to processes
// that may trace it. Each reading samples the threads that may read, and divides their sleep in the ratio of the last
// samples.
const (
	maxReadSamples   = 16 // threads of a job per reading, about 4 us each; others follow in turn
	readSampleWindow = 32 // samples of the mean
)

// readCalls are the numbers of the system calls whose first argument is a file that they read.
var readCalls []uint64

// inRead is the share of samples in which a sleeping thread was in a read of a file.
type inRead struct {
	call    file // /proc/PID/syscall
	samples int
	share   float64 // of samples
}

// setRemote begins or ends the sampling. What was seen in earlier reads is no evidence about later ones.
func (t *threads) setRemote(remote bool) {
	if t.remote && !remote {
		for _, other := range slices.Concat(t.leaders, t.readers) {
			other.in.samples, other.in.share = 0, 0
		}
	}
	t.remote = remote
}

// sampleReads samples threads of a job with data from no disk of this machine.
func (t *threads) sampleReads(s *Source) {
	all := len(t.leaders) + len(t.readers)
	sampled := make([]*thread, 0, maxReadSamples)
	for range min(all, maxReadSamples) {
		t.sampled = (t.sampled + 1) % all
		if i := t.sampled - len(t.leaders); i >= 0 {
			sampled = append(sampled, t.readers[i])
		} else {
			sampled = append(sampled, t.leaders[t.sampled])
		}
	}
	s.sampleReads(sampled)
}

func (s *Source) sampleReads(list []*thread) {
	if s.reader == nil {
		for _, t := range list {
			if text, err := s.read(&t.in.call); err == nil { // else no permission, or not supported
				t.in.learn(callOf(filepath.Dir(t.in.call.path), text))
			}
		}
		return
	}
	ids, calls := make([]int, len(list)), make([]Call, len(list))
	for i, t := range list {
		ids[i] = t.id
	}
	if s.reader.Calls(ids, calls) != nil {
		return // the bytes report it
	}
	for i, t := range list {
		t.in.learn(calls[i])
	}
}

// learn adds a sample.
func (in *inRead) learn(c Call) {
	value := 0.0
	switch c {
	case CallReading:
		value = 1
	case CallAsleep:
	default:
		return
	}
	in.samples = min(in.samples+1, readSampleWindow)
	in.share += (value - in.share) / float64(in.samples)
}

// callOf returns what a thread is in, from its folder in /proc and the text of its file syscall.
func callOf(dir string, text []byte) Call {
	fd, sleeps, reads := parseSyscall(text)
	switch {
	case !sleeps:
		return CallRunning
	case !reads:
		return CallAsleep
	}
	// Read the link only: the file itself may block as it blocks the thread.
	to, err := os.Readlink(filepath.Join(dir, "fd", strconv.FormatUint(fd, 10)))
	if err != nil || !isFile(to) {
		return CallAsleep
	}
	return CallReading
}

// isFile reports whether the link of an open file is a file, not a device. Pipes and sockets are like "pipe:[1]".
func isFile(link string) bool {
	return strings.HasPrefix(link, "/") && !strings.HasPrefix(link, "/proc/") &&
		(!strings.HasPrefix(link, "/dev/") || strings.HasPrefix(link, "/dev/shm/"))
}

// parseSyscall parses "NUMBER 0xFD ..." of a thread that sleeps in a system call, "-1 ..." of a thread that sleeps
// elsewhere, and "running".
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

// slept returns how much of the sleep dt was in reads.
func (t *thread) slept(dt time.Duration) time.Duration {
	return time.Duration(t.in.share * float64(max(0, dt)))
}

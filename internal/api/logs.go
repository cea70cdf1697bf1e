package api

import (
	"cmp"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/progress/follow"
	"github.com/stallspan/stallspan/internal/source/kernfile"
	"github.com/stallspan/stallspan/internal/source/procfile"
	"github.com/stallspan/stallspan/internal/window"
)

// maxLogs bounds the body of POST /v1/logs, in bytes. A Collector sends many records at once.
const maxLogs = 4 << 20

// LogReader makes windows of lines that a process wrote into a log: see follow.Logs. Windows may implement it.
type LogReader interface {
	ReadLog(owner window.Window, lines []follow.LogLine) (left int)
}

// otlpLogs is what is read of OTLP's logs in JSON.
type otlpLogs struct {
	ResourceLogs []struct {
		Resource  struct{ Attributes attributes }
		ScopeLogs []struct {
			LogRecords []struct {
				TimeUnixNano, ObservedTimeUnixNano json.Number

				Body       struct{ StringValue string }
				Attributes attributes
			}
		}
	}
}

// attributes are those of a resource or a record.
type attributes []struct {
	Key   string
	Value struct {
		StringValue string
		IntValue    json.Number
	}
}

// logFiles are the processes that write to files, by path. The looks have the rights of this program. So a caller gets
// his own processes alone, and waits as long for a file of another user as for one that does not exist. It is
// safe for concurrent use.
type logFiles struct {
	mu              sync.Mutex
	writers, before map[string][]int // of the newest two looks
	looked          time.Time
}

// logOwners are the clients of processes whose logs were sent, as of when they ran.
type logOwners struct {
	sync.Mutex

	of map[int]string
}

const (
	maxLogFiles = 1 << 16
	lookAgain   = 2 * time.Second // a look reads the open files of all processes
)

// writer returns the process that writes to a file, and is the caller's, also if it ended a moment ago; 0 if none was
// seen. It does not touch the file, whose file system may hang.
func (l *logFiles) writer(path string, own func(pid int) bool) (pid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	find := func(files map[string][]int) int {
		i := slices.IndexFunc(files[path], own)
		if i < 0 {
			return 0
		}
		return files[path][i]
	}
	pid = find(l.writers)
	if (pid == 0 || unix.Kill(pid, 0) != nil) && time.Since(l.looked) >= lookAgain {
		l.before, l.writers, l.looked = l.writers, writers(), time.Now()
	}
	return cmp.Or(find(l.writers), find(l.before))
}

// runs reports whether a process is the caller's, or was his when it was last asked for.
func (s *Server) runs(who *caller, pid int) bool {
	if who.privileged() {
		return true
	}
	owner := s.callers.owners.Of(pid)
	s.owners.Lock()
	defer s.owners.Unlock()
	if owner.PID != 0 {
		if s.owners.of == nil || len(s.owners.of) == maxLogFiles {
			s.owners.of = map[int]string{}
		}
		s.owners.of[pid] = owner.Client
	}
	return !who.anonymous() && s.owners.of[pid] == who.name
}

// of returns the process that wrote a log: process.pid, or whose file it is. It is 0 if none is named, if none has had
// the file open, or if it is not the caller's.
func (a attributes) of(files *logFiles, own func(pid int) bool) (pid int, named bool) {
	for _, one := range a {
		switch one.Key {
		case "process.pid":
			number, err := strconv.Atoi(string(one.Value.IntValue))
			if named = err == nil && number > 0; named && own(number) {
				pid = number
			}
			return pid, named
		case "log.file.path":
			return files.writer(one.Value.StringValue, own), true
		}
	}
	return 0, false
}

// writers returns the processes that have each file open for writing. A process for which the kernel does not answer
// is left out.
func writers() map[string][]int {
	var pids []int
	names, _ := kernfile.Names(procfs.DefaultMountPoint, maxLogFiles)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	files := make([][]string, len(pids))
	procfile.NewBatch(procfs.DefaultMountPoint, func(pid int) int { return pid },
		func(pid int, _ []byte) []string { return writtenBy(pid) }, func(int) []string { return nil }).Each(pids, files)
	all, left := map[string][]int{}, maxLogFiles
	for i, pid := range pids {
		for _, path := range files[i][:min(len(files[i]), left)] {
			all[path] = append(all[path], pid)
		}
		left -= min(len(files[i]), left)
	}
	for _, list := range all {
		slices.Sort(list)
	}
	return all
}

// writtenBy returns the files that a process has open for writing. The links of /proc say by their mode how a file is
// open.
func writtenBy(pid int) (paths []string) {
	folder := filepath.Join(procfs.DefaultMountPoint, strconv.Itoa(pid), "fd")
	names, _ := kernfile.Names(folder, maxLogFiles)
	for _, name := range names {
		path, err := os.Readlink(filepath.Join(folder, name))
		if err != nil || !filepath.IsAbs(path) || strings.HasPrefix(path, "/dev/") {
			continue
		}
		if info, err := os.Lstat(filepath.Join(folder, name)); err == nil && info.Mode().Perm()&0o200 != 0 {
			paths = append(paths, path)
		}
	}
	return paths
}

// readLog reads the lines of programs' logs, as OTLP in JSON.
func (s *Server) readLog(w http.ResponseWriter, r *http.Request) error {
	who := peerOfRequest(r.Context())
	reader, reads := s.windows.(LogReader)
	switch {
	case who.anonymous():
		return refuse(http.StatusForbidden, "logs need a process that the server can see, on its unix socket, or a port "+
			"with token_file")
	case !reads:
		return refuse(http.StatusNotFound, "this server reads no logs: send them to an agent or a Collector")
	}
	body, err := readMost(w, r, maxLogs)
	if err != nil {
		return err
	}
	var all otlpLogs
	if err := json.Unmarshal(body, &all); err != nil {
		return refuse(http.StatusBadRequest, "the body is not OTLP's logs in JSON: with the Collector's exporter otlp_http, "+
			"set encoding: json and compression: none")
	}
	lines, left := s.linesOf(&all, &who.caller)
	for pid, list := range lines {
		left += reader.ReadLog(window.Window{PID: pid, Client: who.name}, list)
	}
	answer := map[string]any{}
	if left > 0 {
		answer["partialSuccess"] = map[string]any{"rejectedLogRecords": strconv.Itoa(left),
			"errorMessage": "their process is not known, ended or another user's, or they are older than five minutes"}
	}
	reply(w, http.StatusOK, answer)
	return nil
}

// linesOf returns the lines of each process. left is the number of those that no process of the caller wrote.
func (s *Server) linesOf(all *otlpLogs, who *caller) (lines map[int][]follow.LogLine, left int) {
	lines = map[int][]follow.LogLine{}
	known := map[int]bool{}
	own := func(pid int) bool {
		is, seen := known[pid]
		if !seen {
			is = s.runs(who, pid)
			known[pid] = is
		}
		return is
	}
	for _, resource := range all.ResourceLogs {
		for _, scope := range resource.ScopeLogs {
			for _, record := range scope.LogRecords {
				pid, named := slices.Concat(record.Attributes, resource.Resource.Attributes).of(&s.logFiles, own)
				if !named {
					pid = who.pid
				}
				if pid == 0 {
					left++
					continue
				}
				line := follow.LogLine{Text: record.Body.StringValue}
				for _, at := range []json.Number{record.ObservedTimeUnixNano, record.TimeUnixNano} {
					if ns, err := at.Int64(); err == nil && ns > 0 {
						line.At = time.Unix(0, ns)
					}
				}
				lines[pid] = append(lines[pid], line)
			}
		}
	}
	return lines, left
}

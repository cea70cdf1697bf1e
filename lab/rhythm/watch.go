//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/test/looks"
)

// watcher takes the facts of a job: its counters ten times a second, and the rest once a second.
type watcher struct {
	source *process.Source
	pid    int
	gpu    string // file of the emulated accelerator; "" for none
	data   []string
	opens  int // fanotify
	out    *looks.Writer
	boot   time.Duration // CLOCK_BOOTTIME - CLOCK_MONOTONIC
	rows   []looks.Row
	last   time.Duration
	events []detect.Event
	names  map[int]string
}

func clockNow(clock int32) time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(clock, &now) // cannot fail for these clocks
	return time.Duration(now.Nano())
}

// watch follows a process until it ends.
func (w *watcher) watch(done <-chan error) error {
	w.source = process.New("/")
	if err := w.source.Add("job", w.pid, process.Options{}); err != nil {
		return err
	}
	defer w.source.Close()
	w.boot = clockNow(unix.CLOCK_BOOTTIME) - clockNow(unix.CLOCK_MONOTONIC)
	w.last = clockNow(unix.CLOCK_MONOTONIC)
	w.names = map[int]string{}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var ended error
	for n := 0; ; n++ {
		over := false
		select {
		case ended = <-done:
			over = true
		case <-tick.C:
		}
		if err := w.tick(over || n%10 == 9); err != nil {
			return err
		}
		if over {
			return ended
		}
	}
}

func (w *watcher) tick(looks1 bool) error {
	var s sample.Sample
	if err := w.source.Read(&s); err != nil {
		return err
	}
	at := clockNow(unix.CLOCK_MONOTONIC)
	w.readOpens(s.Processes)
	j := &s.Jobs[0]
	row := looks.Row{At: at, Levels: [...]float64{
		float64(j.ReadBytes), float64(j.ReadChars), float64(j.WriteBytes), j.CPUTime.Seconds(), math.NaN()}}
	var drivers []int
	if w.gpu != "" {
		row.Levels[detect.GPUBusy], drivers = accelerator(w.gpu, at)
	}
	w.rows = append(w.rows, row)
	if !looks1 {
		return nil
	}
	l := looks.Look{Rows: w.rows, Facts: detect.Facts{
		Job: "job", At: at, Last: w.last, Events: w.events, Exact: w.opens > 0, HasGPU: len(drivers) > 0}}
	for i := range s.Processes {
		p := &s.Processes[i]
		memory := process.Memory("/", p.PID)
		l.Processes = append(l.Processes, detect.Process{
			PID: p.PID, Name: comm(p.PID), Started: p.Started - w.boot, CPUTime: p.CPUTime, Memory: memory.Files,
			Resident: memory.Resident, Drives: slices.Contains(drivers, p.PID)})
		l.Files = append(l.Files, files(p.PID)...)
	}
	w.rows, w.events, w.last = nil, nil, at
	return w.out.Write(&l)
}

func comm(pid int) string {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm") // it may have ended
	return strings.TrimSpace(string(text))
}

// accelerator returns the busy time of the emulated GPU, and which processes use it (testdata/fakenvml).
func accelerator(path string, at time.Duration) (busy float64, pids []int) {
	text, err := os.ReadFile(path)
	if err != nil || len(text) < 32 {
		return math.NaN(), nil
	}
	done, start, end := i64(text[8:]), i64(text[16:]), i64(text[24:])
	for rest := text[32:]; len(rest) >= 8; rest = rest[8:] {
		pids = append(pids, int(i64(rest)))
	}
	return (time.Duration(done) + max(0, min(at, time.Duration(end))-time.Duration(start))).Seconds(), pids
}

func i64(b []byte) int64 { return int64(binary.NativeEndian.Uint64(b)) }

// files returns the open regular files of a process.
func files(pid int) (all []detect.File) {
	dir := "/proc/" + strconv.Itoa(pid)
	entries, err := os.ReadDir(dir + "/fd")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		path, err := os.Readlink(dir + "/fd/" + e.Name())
		device := strings.HasPrefix(path, "/dev/") && !strings.HasPrefix(path, "/dev/shm/")
		if err != nil || !strings.HasPrefix(path, "/") || device {
			continue
		}
		var st unix.Stat_t
		if unix.Stat(dir+"/fd/"+e.Name(), &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		info, err := os.ReadFile(dir + "/fdinfo/" + e.Name())
		if err != nil {
			continue
		}
		f := detect.File{PID: pid, Path: path, Key: detect.FileKey{Device: st.Dev, Inode: st.Ino}, Size: st.Size}
		f.FD, _ = strconv.Atoi(e.Name())
		for line := range bytes.Lines(info) {
			name, value, _ := strings.Cut(strings.TrimSpace(string(line)), ":")
			value = strings.TrimSpace(value)
			switch name {
			case "pos":
				f.Offset, _ = strconv.ParseInt(value, 10, 64)
			case "flags":
				flags, _ := strconv.ParseUint(value, 8, 64)
				f.Write = flags&unix.O_ACCMODE != unix.O_RDONLY
			}
		}
		all = append(all, f)
	}
	return all
}

// listen asks the kernel for each open on the mounts of folders.
func (w *watcher) listen() error {
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK|unix.FAN_UNLIMITED_QUEUE,
		unix.O_RDONLY|unix.O_LARGEFILE|unix.O_CLOEXEC)
	if err != nil {
		return err
	}
	for _, dir := range w.data {
		const how = unix.FAN_MARK_ADD | unix.FAN_MARK_FILESYSTEM
		if err := unix.FanotifyMark(fd, how, unix.FAN_OPEN, unix.AT_FDCWD, dir); err != nil {
			return err
		}
	}
	w.opens = fd
	return nil
}

// readOpens takes the opens of the job's processes. Their time is that of this reading at the latest: a tenth of a
// second late at most.
func (w *watcher) readOpens(members []sample.Process) {
	if w.opens == 0 {
		return
	}
	own := map[int]bool{w.pid: true}
	for i := range members {
		own[members[i].PID] = true
	}
	buffer := make([]byte, 64*1024)
	for {
		n, err := unix.Read(w.opens, buffer)
		if err != nil || n <= 0 {
			return
		}
		at := clockNow(unix.CLOCK_MONOTONIC)
		for rest := buffer[:n]; len(rest) >= int(unsafe.Sizeof(unix.FanotifyEventMetadata{})); {
			e := (*unix.FanotifyEventMetadata)(unsafe.Pointer(&rest[0]))
			w.opened(e, at, own)
			rest = rest[e.Event_len:]
		}
	}
}

func (w *watcher) opened(e *unix.FanotifyEventMetadata, at time.Duration, own map[int]bool) {
	if e.Fd < 0 {
		return
	}
	defer func() { _ = unix.Close(int(e.Fd)) }()
	if !own[int(e.Pid)] && !w.descends(int(e.Pid)) {
		return
	}
	path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(e.Fd)))
	var st unix.Stat_t
	if err != nil || unix.Fstat(int(e.Fd), &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return
	}
	w.events = append(w.events, detect.Event{At: at, PID: int(e.Pid), Path: path,
		Key: detect.FileKey{Device: st.Dev, Inode: st.Ino}, Size: st.Size})
}

// descends reports whether a process that no reading has found yet belongs to the job.
func (w *watcher) descends(pid int) bool {
	for range 8 {
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			return false
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if pid, _ = strconv.Atoi(fields[1]); pid == w.pid {
			return true
		}
		if pid <= 1 {
			return false
		}
	}
	return false
}

package process

import (
	"bytes"
	"math"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/source/kernfile"
	"github.com/stallspan/stallspan/internal/source/procfile"
)

// Tick is the unit of times in /proc/PID/stat: USER_HZ is 100 on all platforms of Linux and Go.
const Tick = time.Second / 100

// Stat holds fields of /proc/PID/stat, of a process or of a thread (Documentation/filesystems/proc.rst, table 1-4).
// Times are in ticks. Those with the prefix c are of ended children that this process has waited for, and of their
// children.
type Stat struct {
	State           byte   // field 3: 'R', 'S', 'D', 'Z' for a zombie, ...
	Parent          int    // field 4
	session         uint64 // field 6, the process ID of its leader; 0 if not known
	terminal        bool   // field 7: it has a controlling terminal
	Kernel          bool   // a kernel thread, by field 9: it works for others, as the worker of a loop device does
	faults, cfaults uint64 // fields 10 and 11, minor page faults
	User, System    uint64 // fields 14 and 15, of all threads, ended ones included
	cuser, csystem  uint64 // fields 16 and 17
	Start           uint64 // field 22, in ticks since boot: unique together with the process ID
	Ended           bool   // the process has ended, and its parent has not waited for it yet
	exit            int    // status as of wait(2): field 52 of one that has ended, 0 if that may not be read; or stopped
}

// kernelThread is PF_KTHREAD (include/linux/sched.h).
const kernelThread = 0x00200000

// StatOf reads that of a process in the /proc below root. It reports false for a process that does not exist.
func StatOf(root string, pid int) (Stat, bool) {
	text, err := procfile.Text(filepath.Join("/", root, "proc"), pid, "stat", maxStat)
	if err != nil {
		return Stat{}, false
	}
	return ParseStat(text)
}

// maxStat is more than /proc/PID/stat has, in bytes: about 1.2 KiB.
const maxStat = 2048

// ParseStat parses the line of /proc/PID/stat or /proc/PID/task/TID/stat. The second field is the name of the program
// in parentheses, which may contain blanks and parentheses itself, so parsing starts after the last one.
func ParseStat(text []byte) (Stat, bool) {
	var s Stat
	var parent, flags, threads uint64
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return s, false
	}
	rest := text[end+1:]
	for field := 3; field <= 22; field++ {
		rest = bytes.TrimLeft(rest, " ")
		var word []byte
		word, rest, _ = bytes.Cut(rest, []byte{' '})
		var into *uint64
		switch field {
		case 3:
			if len(word) != 1 {
				return s, false
			}
			s.State = word[0]
		case 4:
			into = &parent
		case 6: // -1 for a process that is ending
			s.session, _ = kernfile.ParseUint(word)
		case 7:
			s.terminal = len(word) > 0 && word[0] != '0'
		case 9:
			into = &flags
		case 10:
			into = &s.faults
		case 11:
			into = &s.cfaults
		case 14:
			into = &s.User
		case 15:
			into = &s.System
		case 16:
			into = &s.cuser
		case 17:
			into = &s.csystem
		case 20:
			into = &threads
		case 22:
			into = &s.Start
			word = bytes.TrimRight(word, "\n")
		}
		if into == nil {
			continue
		}
		var ok bool
		if *into, ok = kernfile.ParseUint(word); !ok {
			return s, false
		}
	}
	s.Parent, s.Kernel = int(min(parent, math.MaxInt32)), flags&kernelThread != 0
	// The state is also 'Z' after the end of the first thread of several.
	if s.Ended = s.State == 'X' || s.State == 'Z' && threads <= 1; s.Ended {
		if more := bytes.Fields(rest); len(more) >= 52-22 {
			exit, _ := kernfile.ParseUint(more[52-23])
			s.exit = int(exit & math.MaxUint16)
		}
	}
	if s.State == 'T' {
		s.exit = stopped
	}
	return s, true
}

// stopped is the status of a process that SIGSTOP has stopped.
const stopped = int(syscall.SIGSTOP)<<8 | 0x7f

// counted returns c with the counters of s, own and inherited.
func (s *Stat) counted(c counts) counts {
	c[cpuTicks] = s.User + s.System + s.cuser + s.csystem
	c[sysTicks] = s.System + s.csystem
	c[faults] = s.faults + s.cfaults
	return c
}

// ParseIO parses three of the lines "name: bytes" of /proc/PID/io (Documentation/filesystems/proc.rst, section 3.3).
func ParseIO(text []byte) (readBytes, readChars, writeBytes uint64, ok bool) {
	readBytes, ok1 := value(text, "read_bytes: ")
	readChars, ok2 := value(text, "rchar: ")
	writeBytes, ok3 := value(text, "write_bytes: ")
	return readBytes, readChars, writeBytes, ok1 && ok2 && ok3
}

// usage is a CPU time and its part in the kernel.
type usage struct{ all, system time.Duration }

// parseUsage parses cpu.stat of a cgroup (Documentation/admin-guide/cgroup-v2.rst), with times in microseconds.
func parseUsage(text []byte) (usage, bool) {
	all, ok := value(text, "usage_usec ")
	system, _ := value(text, "system_usec ")
	if !ok || max(all, system) > math.MaxInt64/uint64(time.Microsecond) {
		return usage{}, false
	}
	return usage{time.Duration(all) * time.Microsecond, time.Duration(system) * time.Microsecond}, true
}

// Uptime returns the time since boot in ticks, from the /proc below root; 0 if it is not known.
func Uptime(root string) (ticks uint64) {
	if text, err := readSmall(filepath.Join("/", root, "proc/uptime")); err == nil {
		ticks, _ = parseUptime(text)
	}
	return ticks
}

// Name returns the name that the kernel keeps of a process, of 15 bytes at most; "" for one that has ended.
func Name(root string, pid int) string {
	return kernfile.Text(filepath.Join("/", root, "proc", strconv.Itoa(pid), "comm"))
}

// parseUptime parses the seconds since boot, with two decimals, and returns ticks.
func parseUptime(text []byte) (ticks uint64, ok bool) {
	seconds, rest, _ := bytes.Cut(text, []byte{'.'})
	hundredths, _, _ := bytes.Cut(rest, []byte{' '})
	whole, ok1 := kernfile.ParseUint(seconds)
	part, ok2 := kernfile.ParseUint(hundredths)
	if !ok1 || !ok2 || part > 99 || whole > math.MaxInt64/100 {
		return 0, false
	}
	return whole*100 + part, true
}

// value returns the number on the line with the prefix name.
func value(text []byte, name string) (uint64, bool) {
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte{'\n'})
		if len(line) >= len(name) && string(line[:len(name)]) == name {
			return kernfile.ParseUint(line[len(name):])
		}
	}
	return 0, false
}

// ParseSchedstat parses a thread's time on CPUs and its time waiting for one, in nanoseconds.
func ParseSchedstat(text []byte) (ran, ready uint64, ok bool) {
	first, rest, _ := bytes.Cut(text, []byte{' '})
	second, _, _ := bytes.Cut(rest, []byte{' '})
	ran, ok1 := kernfile.ParseUint(first)
	ready, ok2 := kernfile.ParseUint(second)
	return ran, ready, ok1 && ok2
}
